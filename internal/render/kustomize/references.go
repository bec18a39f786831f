package kustomize

import (
	"fmt"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// references resolves what one kustomization names.
type references struct {
	*walker
	place         place
	kustomization *types.Kustomization
	// changed says that the kustomization is no longer what the file says.
	changed, hasCharts bool
	// inflated are texts of charts rendered for generators.
	inflated [][]byte
}

func (r *references) resolve() error {
	k := r.kustomization
	if err := r.each("resources", k.Resources, r.resource); err != nil {
		return err
	}
	if err := r.each("components", k.Components, r.component); err != nil {
		return err
	}
	if err := r.configs(); err != nil {
		return err
	}
	if err := r.files(); err != nil {
		return err
	}
	return r.generatorFiles()
}

// each replaces the entries of a list by what resolve makes of them.
func (r *references) each(field string, entries []string, resolve func(field, entry string) (string, error)) error {
	for i, entry := range entries {
		to, err := resolve(field, entry)
		if err != nil {
			return err
		}
		if to != entry {
			entries[i], r.changed = to, true
		}
	}
	return nil
}

// resource resolves an entry that is a file or a folder, here or elsewhere.
func (r *references) resource(field, entry string) (string, error) {
	real, kind, err := r.here(entry)
	switch {
	case err == nil && kind == tree.File:
		r.resources = append(r.resources, real)
		return entry, r.checkFile(field, entry, real)
	case err != nil && !isMissing(err):
		return "", r.place.fail("%s: %s: %v", field, entry, err)
	}
	if isWeb(entry) && looksLikeFile(entry) {
		to, err := r.download(field, entry)
		if err == nil || r.ctx.Err() != nil {
			return to, err
		}
		if repository, ok := parseRemote(entry); ok {
			if to, remoteErr := r.remote(field, entry, repository); remoteErr == nil {
				return to, nil
			}
		}
		return "", err
	}
	return r.folder(field, entry)
}

// component resolves an entry that is a folder.
func (r *references) component(field, entry string) (string, error) {
	return r.folder(field, entry)
}

func (r *references) folder(field, entry string) (string, error) {
	if repository, ok := parseRemote(entry); ok {
		to, err := r.remote(field, entry, repository)
		if err != nil && isWeb(entry) && !looksLikeFile(entry) && field != "components" && r.ctx.Err() == nil {
			if file, fileErr := r.download(field, entry); fileErr == nil {
				return file, nil
			}
		}
		return to, err
	}
	real, kind, err := r.here(entry)
	switch {
	case isMissing(err):
		return "", r.place.fail("%s: %s is not in the source", field, entry)
	case err != nil:
		return "", r.place.fail("%s: %s: %v", field, entry, err)
	case kind == tree.Submodule:
		return "", r.place.fail("%s: %s is a submodule that is not laid in", field, entry)
	case kind != tree.Dir:
		return "", r.place.fail("%s: %s is a %s, not a folder", field, entry, kind)
	}
	if err := r.place.cycle(real); err != nil {
		return "", err
	}
	dir, err := r.enter(r.place.child(r.kustomization, real))
	if err != nil || dir == real {
		return entry, err
	}
	return relative(r.place.dir, dir), nil
}

// enter visits a folder and returns where it is to be found. A folder whose charts were rendered for another namespace is
// visited in a second mount of its tree, so that both stay.
func (r *references) enter(child place) (string, error) {
	if before, ok := r.visited[child.key()]; ok && before.hasCharts && before.namespace != child.namespace {
		f, rest, err := r.space.split(child.dir)
		if err != nil {
			return "", err
		}
		again := r.space.mount(f)
		r.remember(again, r.laidFrom[mountOf(child.dir)])
		child.dir = path.Join(again, rest)
	}
	if err := r.below(child); err != nil {
		return "", err
	}
	r.hasCharts = r.hasCharts || r.visited[child.key()].hasCharts
	return child.dir, nil
}

// here finds an entry beside the kustomization.
func (r *references) here(entry string) (real string, kind tree.Kind, err error) {
	if path.IsAbs(entry) || entry == "" {
		return "", 0, tree.NotExist("open", entry)
	}
	name, err := tree.Join(r.place.dir, entry)
	if err != nil {
		return "", 0, err
	}
	if mountOf(name) != mountOf(r.place.dir) {
		return "", 0, tree.ErrOutside
	}
	return r.space.find(name)
}

// checkFile holds kustomize's rule that files lie in or below the folder of the kustomization.
func (r *references) checkFile(field, entry, real string) error {
	if r.place.dir == "." && mountOf(real) == "." || strings.HasPrefix(real, r.place.dir+"/") {
		if r.place.config {
			return r.checkConfigFile(real)
		}
		return nil
	}
	return r.place.fail("%s: file %s lies outside of the kustomization's folder, which kustomize does not allow", field, entry)
}

// remote lays a repository in and visits the folder in it.
func (r *references) remote(field, entry string, to remote) (string, error) {
	key := fmt.Sprintf("%s//%s?ref=%s", to.url, to.dir, to.ref)
	for _, above := range r.place.above {
		if above == key {
			return "", r.place.fail("%s: %s is on the way to itself", field, entry)
		}
	}
	mounted, err := r.fetch(to.locator())
	if err != nil {
		return "", r.place.fail("%s: %s: %v", field, entry, err)
	}
	real, kind, err := r.space.find(path.Join(mounted, to.dir))
	switch {
	case isMissing(err):
		return "", r.place.fail("%s: %s: %s has no folder %s", field, entry, to.locator(), to.dir)
	case err != nil:
		return "", r.place.fail("%s: %s: %v", field, entry, err)
	case kind != tree.Dir:
		return "", r.place.fail("%s: %s: %s in %s is a %s, not a folder", field, entry, to.dir, to.locator(), kind)
	}
	dir, err := r.enter(r.place.child(r.kustomization, real, key))
	if err != nil {
		return "", err
	}
	return relative(r.place.dir, dir), nil
}

// fetch mounts what a locator leads to, once.
func (w *walker) fetch(l job.Locator) (string, error) {
	if at, ok := w.mounted[l]; ok {
		return at, nil
	}
	if w.fetches++; w.fetches > maxFetches {
		return "", fmt.Errorf("more than %d sources of other places are named", maxFetches)
	}
	f, err := job.FetchFrom(w.ctx, w.in.Fetch, l)
	if err != nil {
		return "", err
	}
	at := w.space.mount(f)
	w.mounted[l] = at
	w.remember(at, laidIn{repository: l.URL, ref: l.Revision})
	return at, nil
}

// download lays the file behind a URL into the folder of the kustomization, where files must lie.
func (r *references) download(field, url string) (string, error) {
	at, err := r.fetch(job.Locator{Kind: job.LocateHTTP, URL: url})
	if err != nil {
		if strings.HasPrefix(err.Error(), url) { // say it once
			return "", r.place.fail("%s: %v", field, err)
		}
		return "", r.place.fail("%s: %s: %v", field, url, err)
	}
	data, err := r.read(at + "/resource")
	if err != nil {
		return "", r.place.fail("%s: %s: %v", field, url, err)
	}
	return r.lay(url, data), nil
}

// laidPrefix starts the names of files laid into folders.
const laidPrefix = ".lockstep-file-"

// lay puts the file behind a URL into the folder of the kustomization and returns its name.
func (r *references) lay(url string, data []byte) string {
	r.laidFiles++
	name := fmt.Sprintf("%s%d.yaml", laidPrefix, r.laidFiles)
	at := path.Join(r.place.dir, name)
	r.space.laid[at] = data
	// Kustomize takes the URL for one of a repository where it can.
	from := laidIn{file: path.Join(r.place.dir, url)}
	if repository, ok := parseRemote(url); ok {
		from = laidIn{repository: repository.url, ref: repository.ref, file: repository.dir}
	}
	r.remember(at, from)
	return name
}
