package git

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// hold peels what was fetched to a commit and keeps it; err comes from the step before.
func (f *fetch) hold(ctx context.Context, err error) (string, error) {
	if err != nil {
		return "", err
	}
	commit, err := f.peel(ctx, f.want.Commit)
	if err != nil {
		return "", err
	}
	return commit, f.s.keep(ctx, f.m, f.want.Commit, commit)
}

func (f *fetch) peel(ctx context.Context, id string) (string, error) {
	dir, _ := f.m.at()
	for range 10 { // tags of tags
		var h header
		var data []byte
		err := f.s.readers.do(ctx, dir, func(r *reader) (err error) {
			if h, err = r.info(id); err != nil || h.kind != "tag" {
				return err
			}
			h, data, err = r.contents(id, maxMeta)
			return err
		})
		switch {
		case errors.Is(err, errMissing):
			return "", fmt.Errorf("%s: %w", id, ErrCorrupt)
		case err != nil:
			return "", err
		case h.kind == "commit":
			return id, nil
		case h.kind != "tag":
			return "", f.unknown(fmt.Sprintf("%s is a %s, not a commit", f.want.Commit, h.kind))
		}
		if id, _, err = parseTag(data); err != nil {
			return "", err
		}
	}
	return "", f.unknown(f.want.Commit + " is a tag of too many tags")
}

// short finds the one commit that starts with the given characters, after every branch and tag was fetched: with fewer, the
// answer would depend on what happens to be here.
func (f *fetch) short(ctx context.Context) (string, error) {
	if err := f.all(ctx); err != nil {
		return "", err
	}
	dir, _ := f.m.at()
	out, err := f.s.local(ctx, dir, "rev-parse", "--disambiguate="+f.want.Commit)
	if err != nil {
		return "", err
	}
	var found []string
	for _, id := range strings.Fields(string(out)) {
		if h, err := f.info(ctx, id); err == nil && h.kind == "commit" {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 0:
		return "", f.unknown("no branch or tag leads to a commit that starts with " + f.want.Commit)
	case 1:
		// It may be a leftover that no branch leads to: then it must prove that it is whole.
		whole := *f
		whole.want.Commit = found[0]
		if ok, err := whole.complete(ctx); err != nil || !ok {
			return "", errors.Join(err, f.unknown("no branch or tag leads to a commit that starts with "+f.want.Commit))
		}
		return found[0], f.s.keep(ctx, f.m, f.want.Commit, found[0])
	}
	return "", f.unknown(fmt.Sprintf("%d commits start with %s; write more of it", len(found), f.want.Commit))
}
