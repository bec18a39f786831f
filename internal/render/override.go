package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// withOverrides is the source of in with the override files of its folder merged in, as JSON merge patches. What says where
// the source lies can not be overridden: the file would move itself.
func withOverrides(in job.Input) (v1alpha1.ApplicationSource, []string, error) {
	names := []string{".argocd-source.yaml"}
	// A name that is no plain file name (an application outside of Kubernetes) has no file of its own.
	if in.AppName != "" && !strings.ContainsAny(in.AppName, "/\x00") {
		names = append(names, ".argocd-source-"+in.AppName+".yaml")
	}
	view := tree.Follow(in.Tree)
	merged, warnings := in.Source, []string(nil)
	for _, name := range names {
		file := path.Join(in.Path, name)
		e, ok, err := tree.Exists(view, file)
		if err != nil {
			return merged, nil, &job.Error{File: file, Reason: err.Error()}
		}
		if !ok || e.Kind != tree.File {
			continue
		}
		data, err := view.ReadFile(file)
		if err != nil {
			return merged, nil, &job.Error{File: file, Reason: err.Error()}
		}
		var warning string
		if merged, warning, err = override(merged, data); err != nil {
			return merged, nil, &job.Error{File: file, Reason: err.Error()}
		}
		if warning != "" {
			warnings = append(warnings, file+": "+warning)
		}
	}
	fixed := in.Source
	merged.RepoURL, merged.Path, merged.Chart, merged.Ref, merged.Name = fixed.RepoURL, fixed.Path, fixed.Chart, fixed.Ref, fixed.Name
	merged.TargetRevision, merged.TagPrefix = fixed.TargetRevision, fixed.TagPrefix
	return merged, warnings, nil
}

func override(source v1alpha1.ApplicationSource, text []byte) (out v1alpha1.ApplicationSource, warning string, err error) {
	patchJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return out, "", fmt.Errorf("YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	var patch any
	if err := decode(patchJSON, &patch, false); err != nil {
		return out, "", err
	}
	if patch == nil {
		return source, "", nil
	}
	if _, ok := patch.(map[string]any); !ok {
		return out, "", fmt.Errorf("holds no mapping, but it has the shape of spec.source")
	}
	baseJSON, err := json.Marshal(source)
	if err != nil {
		return out, "", err
	}
	var base any
	if err := decode(baseJSON, &base, false); err != nil {
		return out, "", err
	}
	mergedJSON, err := json.Marshal(mergePatch(base, patch))
	if err != nil {
		return out, "", err
	}
	err = decode(mergedJSON, &out, true)
	if err == nil || !strings.Contains(err.Error(), "unknown field") {
		return out, "", err
	}
	warning = strings.TrimPrefix(err.Error(), "json: ") + " is left out"
	out = v1alpha1.ApplicationSource{}
	err = decode(mergedJSON, &out, false)
	return out, warning, err
}

func decode(data []byte, into any, strict bool) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// mergePatch is RFC 7386: null removes, mappings merge, everything else replaces.
func mergePatch(base, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	b, ok := base.(map[string]any)
	if !ok {
		b = map[string]any{}
	}
	for k, v := range p {
		if v == nil {
			delete(b, k)
		} else {
			b[k] = mergePatch(b[k], v)
		}
	}
	return b
}
