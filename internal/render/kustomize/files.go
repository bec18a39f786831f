package kustomize

import (
	"path"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/internal/tree"
)

// file resolves an entry that is a file, here or behind a URL.
func (r *references) file(field, entry string) (string, error) {
	real, kind, err := r.here(entry)
	switch {
	case err == nil && kind == tree.File:
		return entry, r.checkFile(field, entry, real)
	case err == nil:
		return "", r.place.fail("%s: %s is a %s, not a file", field, entry, kind)
	case isWeb(entry):
		return r.download(field, entry)
	case isMissing(err):
		return "", r.place.fail("%s: %s is not in the source", field, entry)
	}
	return "", r.place.fail("%s: %s: %v", field, entry, err)
}

// optional resolves the entry behind a pointer, if there is one.
func (r *references) optional(field string, entry *string) error {
	if *entry == "" {
		return nil
	}
	to, err := r.file(field, *entry)
	if err == nil && to != *entry {
		*entry, r.changed = to, true
	}
	return err
}

// files resolves the fields that name files.
func (r *references) files() error {
	k := r.kustomization
	for field, list := range map[string][]string{"configurations": k.Configurations, "crds": k.Crds} {
		if err := r.each(field, list, r.file); err != nil {
			return err
		}
	}
	for i := range k.Patches {
		if err := r.optional("patches", &k.Patches[i].Path); err != nil {
			return err
		}
	}
	for i := range k.PatchesJson6902 {
		if err := r.optional("patchesJson6902", &k.PatchesJson6902[i].Path); err != nil {
			return err
		}
	}
	for i, p := range k.PatchesStrategicMerge {
		if isInline(string(p)) {
			continue
		}
		to := string(p)
		if err := r.optional("patchesStrategicMerge", &to); err != nil {
			return err
		}
		k.PatchesStrategicMerge[i] = types.PatchStrategicMerge(to)
	}
	for i := range k.Replacements {
		if err := r.optional("replacements", &k.Replacements[i].Path); err != nil {
			return err
		}
	}
	return r.schemaFile()
}

func (r *references) schemaFile() error {
	if len(r.kustomization.OpenAPI) > 0 {
		r.schema = true
	}
	at, ok := r.kustomization.OpenAPI["path"]
	if !ok {
		return nil
	}
	if err := r.optional("openapi.path", &at); err != nil {
		return err
	}
	r.kustomization.OpenAPI["path"] = at
	return nil
}

// generatorFiles resolves the files of configMapGenerator and secretGenerator.
func (r *references) generatorFiles() error {
	for i := range r.kustomization.ConfigMapGenerator {
		if err := r.pairs("configMapGenerator", &r.kustomization.ConfigMapGenerator[i].KvPairSources); err != nil {
			return err
		}
	}
	for i := range r.kustomization.SecretGenerator {
		if err := r.pairs("secretGenerator", &r.kustomization.SecretGenerator[i].KvPairSources); err != nil {
			return err
		}
	}
	return nil
}

func (r *references) pairs(field string, p *types.KvPairSources) error {
	if err := r.each(field, p.EnvSources, r.file); err != nil {
		return err
	}
	if err := r.optional(field, &p.EnvSource); err != nil {
		return err
	}
	return r.each(field, p.FileSources, r.keyedFile)
}

// keyedFile resolves [key=]file; the key of a file behind a URL is the last element of the URL.
func (r *references) keyedFile(field, entry string) (string, error) {
	key, name, keyed := strings.Cut(entry, "=")
	if !keyed {
		key, name = path.Base(entry), entry
	} else if key == "" || name == "" || strings.Contains(name, "=") {
		return "", r.place.fail("%s: %q is not of the form file or key=file", field, entry)
	}
	to, err := r.file(field, name)
	if err != nil || to == name {
		return entry, err
	}
	return key + "=" + to, nil
}

// isInline tells whether an entry that can be a path is YAML text instead.
func isInline(entry string) bool {
	var v any
	if err := yaml.Unmarshal([]byte(entry), &v); err != nil {
		return strings.Contains(entry, "\n")
	}
	_, isText := v.(string)
	return !isText
}
