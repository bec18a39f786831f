package git

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/lockstep-cd/lockstep/internal/tree"
)

// Changes lists the paths that differ between two commits, folders that came or went among them. Commits that are not here
// are fetched. A difference that takes more than 64 MiB to list is an error.
func (s *Store) Changes(ctx context.Context, r Repo, from, to string) ([]tree.Change, error) {
	a, err := s.Ensure(ctx, r, Want{Commit: from})
	if err != nil {
		return nil, err
	}
	b, err := s.Ensure(ctx, r, Want{Commit: to})
	if err != nil {
		return nil, err
	}
	dir, _ := s.mirror(Normalize(r.URL)).at()
	text, err := s.local(ctx, dir, "diff-tree", "-r", "-t", "-z", "--raw", "--no-renames", "--no-abbrev", "--no-ext-diff", a, b)
	if err != nil {
		return nil, &Error{Repo: hideUserinfo(r.URL), What: "the difference of " + a + " and " + b + " can not be read", Cause: err, Hint: err.Error()}
	}
	return parseChanges(text)
}

// parseChanges reads what git diff-tree --raw -z prints: ":100644 100644 <id> <id> M", NUL, the path, NUL.
func parseChanges(text []byte) ([]tree.Change, error) {
	var list []tree.Change
	for len(text) > 0 {
		meta, rest, ok := bytes.Cut(text, []byte{0})
		path, rest, whole := bytes.Cut(rest, []byte{0})
		fields := strings.Fields(strings.TrimPrefix(string(meta), ":"))
		const parts = 5
		if !ok || !whole || len(fields) != parts {
			return nil, fmt.Errorf("git diff-tree: %q is no line of it: %w", meta, errObject)
		}
		text = rest
		before, wasThere := kindOf(fields[0])
		after, isThere := kindOf(fields[1])
		moved := wasThere && isThere && after == tree.Submodule
		c := tree.Change{
			Path: string(path), Kind: wasThere != isThere || before != after || moved,
			Submodule: before == tree.Submodule || after == tree.Submodule || string(path) == modulesTxt,
		}
		if !c.Kind && (before == tree.Dir || fields[2] == fields[3]) {
			continue // something below it differs, which has lines of its own; or only the right to execute it
		}
		list = append(list, c)
	}
	return list, nil
}
