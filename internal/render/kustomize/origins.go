package kustomize

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/provenance"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// version is that of the kustomize program that has this library. Objects are labelled with it on request; the library would
// take the version of whatever program it is part of.
const version = "v5.8.2"

// The annotations that buildMetadata asks for.
const (
	originKey          = "config.kubernetes.io/origin"
	transformationsKey = "alpha.config.kubernetes.io/transformations"
)

// laidIn tells where a mount or a laid file really comes from.
type laidIn struct {
	// repository and ref of a remote; empty for a second mount of the source.
	repository, ref string
	// file is the path in the repository of a single file.
	file string
	// chartsOf is the kustomization whose charts lie here.
	chartsOf string
}

// restore makes the metadata of a build what the program would have written: it knows nothing of our mounts.
func (w *walker) restore(dir string, m resmap.ResMap) error {
	for _, o := range m.Resources() {
		if slices.Contains(w.metadata, types.ManagedByLabelOption) {
			labels := o.GetLabels()
			labels[konfig.ManagedbyLabelKey] = strings.Replace(labels[konfig.ManagedbyLabelKey], provenance.GetProvenance().Semver(), version, 1)
			if err := o.SetLabels(labels); err != nil {
				return err
			}
		}
		if err := w.restoreAnnotations(dir, o); err != nil {
			return fmt.Errorf("buildMetadata: %w", err)
		}
	}
	return nil
}

func (w *walker) restoreAnnotations(dir string, o *resource.Resource) error {
	annotations := o.GetAnnotations()
	if text, ok := annotations[originKey]; ok && slices.Contains(w.metadata, types.OriginAnnotations) {
		var origin resource.Origin
		if err := kyaml.Unmarshal([]byte(text), &origin); err != nil {
			return err
		}
		w.restoreOrigin(dir, &origin)
		text, err := origin.String()
		if err != nil {
			return err
		}
		annotations[originKey] = text
	}
	if text, ok := annotations[transformationsKey]; ok && slices.Contains(w.metadata, types.TransformerAnnotations) {
		var list resource.Transformations
		if err := kyaml.Unmarshal([]byte(text), &list); err != nil {
			return err
		}
		for _, origin := range list {
			w.restoreOrigin(dir, origin)
		}
		text, err := list.String()
		if err != nil {
			return err
		}
		annotations[transformationsKey] = text
	}
	if len(annotations) == 0 {
		return nil
	}
	return o.SetAnnotations(annotations)
}

// restoreOrigin gives a path that leads through a mount its repository, and a chart its generator.
func (w *walker) restoreOrigin(dir string, o *resource.Origin) {
	for _, field := range []*string{&o.Path, &o.ConfiguredIn} {
		at := path.Join(dir, *field)
		if *field == "" || !strings.Contains(at, mountDir) && !strings.Contains(at, laidPrefix) {
			continue
		}
		if from, ok := w.laidFrom[at]; ok && from.file != "" {
			o.Repo, o.Ref, *field = from.repository, from.ref, from.file
			continue
		}
		from, ok := w.laidFrom[mountOf(at)]
		switch {
		case !ok:
		case from.chartsOf != "":
			o.ConfiguredBy.APIVersion, o.ConfiguredBy.Kind = builtin, chartKind
			o.Path, o.ConfiguredIn = "", upwards(dir, from.chartsOf)
			w.restoreOrigin(dir, o)
		case from.repository == "":
			*field = upwards(dir, strings.TrimPrefix(at, mountOf(at)+"/"))
		default:
			o.Repo, o.Ref, *field = from.repository, from.ref, strings.TrimPrefix(at, mountOf(at)+"/")
		}
	}
}

// upwards is the way from a folder to a file as the program writes it.
func upwards(from, to string) string {
	if from == "." {
		return to
	}
	parts, target := strings.Split(from, "/"), strings.Split(to, "/")
	for len(parts) > 0 && len(target) > 1 && parts[0] == target[0] {
		parts, target = parts[1:], target[1:]
	}
	return strings.Repeat("../", len(parts)) + strings.Join(target, "/")
}

// remember notes where a mount comes from.
func (w *walker) remember(at string, from laidIn) { w.laidFrom[at] = from }

// chartsDir is a new folder for charts.
func (w *walker) chartsDir() string {
	w.laidFiles++
	return mountDir + "/charts-" + strconv.Itoa(w.laidFiles)
}
