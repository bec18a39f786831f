package kustomize

import (
	"bytes"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

const (
	builtin       = "builtin"
	chartKind     = "HelmChartInflationGenerator"
	functionLabel = "config.kubernetes.io/function"
)

// configs resolves generators, transformers and validators: configurations of plugins, in files, folders or inline.
func (r *references) configs() (err error) {
	k := r.kustomization
	if k.Generators, err = r.configList("generators", k.Generators); err != nil {
		return err
	}
	if k.Transformers, err = r.configList("transformers", k.Transformers); err != nil {
		return err
	}
	k.Validators, err = r.configList("validators", k.Validators)
	return err
}

func (r *references) configList(field string, entries []string) ([]string, error) {
	var out []string
	for _, entry := range entries {
		to, err := r.config(field, entry)
		if err != nil {
			return nil, err
		}
		if to != entry {
			r.changed = true
		}
		if to != "" {
			out = append(out, to)
		}
	}
	return out, nil
}

// config returns what takes the place of an entry: empty where nothing is left of it.
func (r *references) config(field, entry string) (string, error) {
	if isInline(entry) {
		return r.configText(field, entry, []byte(entry))
	}
	real, kind, err := r.here(entry)
	if err == nil && kind == tree.File {
		if err := r.checkFile(field, entry, real); err != nil {
			return "", err
		}
		data, err := r.space.readFile(real)
		if err != nil {
			return "", r.place.fail("%s: %s: %v", field, entry, err)
		}
		return r.configText(field, entry, data)
	}
	if isWeb(entry) && looksLikeFile(entry) {
		name, err := r.download(field, entry)
		if err != nil {
			return "", err
		}
		return r.config(field, name)
	}
	folder := *r
	folder.place.config = true
	to, err := folder.folder(field, entry)
	r.changed, r.hasCharts = folder.changed, folder.hasCharts
	return to, err
}

// configText checks the configurations of a text. Charts are rendered and taken out.
func (r *references) configText(field, entry string, text []byte) (string, error) {
	objects, _, err := manifest.Parse("", text, manifest.Options{LastKeyWins: true})
	if err != nil {
		return entry, nil // the library finds the same, and other words where it does not
	}
	var kept [][]byte
	changed := false
	for _, o := range objects {
		if err := r.checkConfig(field, o); err != nil {
			return "", err
		}
		if field == "generators" && o.GetKind() == chartKind {
			if err := r.inflateConfig(o); err != nil {
				return "", err
			}
			changed = true
			continue
		}
		rewritten, err := r.configFiles(field, o.Object)
		if err != nil {
			return "", err
		}
		changed = changed || rewritten
		doc, err := yaml.Marshal(o.Object)
		if err != nil {
			return "", r.place.fail("%s: %v", field, err)
		}
		kept = append(kept, doc)
	}
	if !changed {
		return entry, nil
	}
	return string(bytes.Join(kept, []byte("---\n"))), nil
}

// checkConfig refuses plugins that would run a program.
func (r *references) checkConfig(field string, o manifest.Object) error {
	name := o.GetKind() + " " + o.GetName()
	_, function := o.GetAnnotations()[functionLabel]
	switch {
	case function:
		return r.place.fail("%s: %s is a KRM function; functions that run programs or containers are not supported", field, name)
	case o.GetAPIVersion() != builtin:
		return r.place.fail("%s: %s (%s) is a plugin of its own; only kustomize's built-in generators and transformers are supported, no KRM exec or container functions", field, name, o.GetAPIVersion())
	}
	return nil
}

// configFiles resolves the files that a configuration names, and tells whether that changed it.
func (r *references) configFiles(field string, config map[string]any) (changed bool, err error) {
	one := func(m map[string]any, key string, resolve func(field, entry string) (string, error)) error {
		entry, ok := m[key].(string)
		if !ok || !isWeb(entry) && !strings.Contains(entry, "=http") {
			return nil
		}
		to, err := resolve(field, entry)
		m[key], changed = to, true
		return err
	}
	list := func(key string, resolve func(field, entry string) (string, error)) error {
		entries, _ := config[key].([]any)
		for i, entry := range entries {
			holder := map[string]any{"": entry}
			if err := one(holder, "", resolve); err != nil {
				return err
			}
			entries[i] = holder[""]
			if m, ok := entry.(map[string]any); ok {
				if err := one(m, "path", resolve); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for _, key := range []string{"path", "env"} {
		if err := one(config, key, r.file); err != nil {
			return false, err
		}
	}
	for _, key := range []string{"paths", "envs", "replacements"} {
		if err := list(key, r.file); err != nil {
			return false, err
		}
	}
	return changed, list("files", r.keyedFile)
}

// checkConfigFile looks at a file of a folder of configurations. Kustomize would load the URLs in it by itself, and the folder's
// kustomization can still patch it: so none are allowed.
func (r *references) checkConfigFile(name string) error {
	data, err := r.space.readFile(name)
	if err != nil {
		return r.place.fail("%s: %v", name, err)
	}
	if regexp.MustCompile(`(?i)https?:`).Match(data) {
		return r.place.fail("%s: a URL is not supported in a folder of generators or transformers; put its content into the source", name)
	}
	if bytes.Contains(data, []byte(chartKind)) {
		return r.place.fail("%s: %s is not supported in a folder of generators; name the file itself in generators", name, chartKind)
	}
	return nil
}

// inflateConfig renders the chart of a HelmChartInflationGenerator.
func (r *references) inflateConfig(o manifest.Object) error {
	text, err := yaml.Marshal(o.Object)
	if err != nil {
		return r.place.fail("generators: %v", err)
	}
	var c struct {
		types.HelmGlobals
		types.HelmChart
	}
	if err := yaml.Unmarshal(text, &c); err != nil {
		return r.place.fail("generators: %s %s: %v", chartKind, o.GetName(), err)
	}
	return r.chart("generators", c.HelmGlobals, c.HelmChart)
}
