package git

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Commits visits a commit and, with most above one, all that lead to it, newest first; more than most are an error of kind
// ErrRefused. Read gives the commit as Git keeps it, with its signature.
func (s *Store) Commits(ctx context.Context, r Repo, commit string, most int, visit func(id string, read func() ([]byte, error)) error) error {
	v, _, err := s.view(ctx, r, commit)
	if err != nil {
		return err
	}
	ids := []string{v.commit}
	if most > 1 {
		dir, _ := v.m.at()
		out, err := s.local(ctx, dir, "rev-list", "--max-count="+strconv.Itoa(most+1), "--end-of-options", v.commit)
		if err != nil {
			return explain(hideUserinfo(r.URL), err, nil)
		}
		ids = strings.Fields(string(out))
	}
	if len(ids) > most {
		return &Error{Repo: hideUserinfo(r.URL), Kind: ErrRefused, What: fmt.Sprintf("commit %s has more than %d before it", v.commit, most)}
	}
	for _, id := range ids {
		err := visit(id, func() ([]byte, error) {
			data, err := v.object(id, "commit", maxMeta)
			if err != nil {
				return nil, v.explain(err)
			}
			return data, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
