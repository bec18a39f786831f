package kustomize

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/kustomize/api/pkg/util"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// keep stands for "what the kustomization has" in an image.
const keep = "*"

// edit lays the options of the source over the kustomization, as kustomize edit would: names and namespace replace, images and
// replicas replace those of the same name, labels and annotations are added, patches and components come last.
func (w *walker) edit(p *place, k *types.Kustomization, o v1alpha1.ApplicationSourceKustomize) error {
	if o.NamePrefix != "" {
		k.NamePrefix = o.NamePrefix
	}
	if o.NameSuffix != "" {
		k.NameSuffix = o.NameSuffix
	}
	if o.Namespace != "" {
		k.Namespace = o.Namespace
	}
	for _, step := range []func() error{
		func() error { return w.editImages(k, o.Images) },
		func() error { return editReplicas(k, o.Replicas) },
		func() error { return w.editLabels(k, o) },
		func() error { return w.editAnnotations(k, o) },
		func() error { return w.editComponents(*p, k, o) },
	} {
		if err := step(); err != nil {
			return p.fail("spec.source.kustomize.%v", err)
		}
	}
	for _, patch := range o.Patches {
		to, err := patchOf(patch)
		if err != nil {
			return p.fail("spec.source.kustomize.patches: %v", err)
		}
		k.Patches = append(k.Patches, to)
	}
	return nil
}

func (w *walker) editImages(k *types.Kustomization, images []v1alpha1.KustomizeImage) error {
	if len(images) == 0 {
		return nil
	}
	byName := map[string]types.Image{}
	for _, text := range images {
		image, err := parseImage(w.in.Substitute(string(text)))
		if err != nil {
			return err
		}
		byName[image.Name] = image
	}
	for _, before := range k.Images {
		image, ok := byName[before.Name]
		if !ok {
			byName[before.Name] = before
			continue
		}
		byName[before.Name] = types.Image{
			Name:    image.Name,
			NewName: kept(image.NewName, before.NewName),
			NewTag:  kept(image.NewTag, before.NewTag),
			Digest:  kept(image.Digest, before.Digest),
		}
	}
	k.Images = k.Images[:0]
	for _, image := range byName {
		image.NewName, image.NewTag, image.Digest = kept(image.NewName, ""), kept(image.NewTag, ""), kept(image.Digest, "")
		k.Images = append(k.Images, image)
	}
	sort.Slice(k.Images, func(i, j int) bool { return k.Images[i].Name < k.Images[j].Name })
	return nil
}

func kept(value, before string) string {
	if value == keep {
		return before
	}
	return value
}

// parseImage reads [old=]name[:tag][@digest]; without old, a tag or a digest is needed.
func parseImage(s string) (types.Image, error) {
	old, value, renamed := strings.Cut(s, "=")
	if !renamed {
		value = s
	}
	name, tag, digest := util.SplitImageName(value)
	image := types.Image{Name: name, NewTag: tag, Digest: digest}
	if renamed {
		image.Name, image.NewName = old, name
	}
	if image.Name == "" || name == "" || !renamed && tag == "" && digest == "" {
		return types.Image{}, fmt.Errorf("images: %q is not of the form [old=]name:tag, [old=]name@digest or old=name", s)
	}
	return image, nil
}

func editReplicas(k *types.Kustomization, replicas []v1alpha1.KustomizeReplica) error {
	if len(replicas) == 0 {
		return nil
	}
	byName := map[string]types.Replica{}
	for _, before := range k.Replicas {
		byName[before.Name] = before
	}
	for _, r := range replicas {
		count := int64(r.Count.IntVal)
		if r.Count.Type == intstr.String {
			var err error
			if count, err = strconv.ParseInt(r.Count.StrVal, 10, 64); err != nil {
				return fmt.Errorf("replicas: count %q of %s is not a number", r.Count.StrVal, r.Name)
			}
		}
		if r.Name == "" || count < 0 {
			return fmt.Errorf("replicas: name %q and count %d: a name and a count from 0 are needed", r.Name, count)
		}
		byName[r.Name] = types.Replica{Name: r.Name, Count: count}
	}
	k.Replicas = k.Replicas[:0]
	for _, r := range byName {
		k.Replicas = append(k.Replicas, r)
	}
	sort.Slice(k.Replicas, func(i, j int) bool { return k.Replicas[i].Name < k.Replicas[j].Name })
	return nil
}

func (w *walker) editLabels(k *types.Kustomization, o v1alpha1.ApplicationSourceKustomize) error {
	if len(o.CommonLabels) == 0 {
		return nil
	}
	if o.LabelIncludeTemplates && !o.LabelWithoutSelector {
		return fmt.Errorf("labelIncludeTemplates needs labelWithoutSelector")
	}
	labels := map[string]string{}
	for name, value := range o.CommonLabels {
		labels[name] = unquoted(w.in.Substitute(value))
	}
	if !o.LabelWithoutSelector {
		if k.CommonLabels == nil {
			k.CommonLabels = map[string]string{}
		}
		return add(k.CommonLabels, labels, "commonLabels", o.ForceCommonLabels)
	}
	for i, l := range k.Labels {
		if !l.IncludeSelectors && l.IncludeTemplates == o.LabelIncludeTemplates {
			if l.Pairs == nil {
				k.Labels[i].Pairs = map[string]string{}
			}
			return add(k.Labels[i].Pairs, labels, "commonLabels", o.ForceCommonLabels)
		}
	}
	k.Labels = append(k.Labels, types.Label{Pairs: labels, IncludeTemplates: o.LabelIncludeTemplates})
	return nil
}

func (w *walker) editAnnotations(k *types.Kustomization, o v1alpha1.ApplicationSourceKustomize) error {
	if len(o.CommonAnnotations) == 0 {
		return nil
	}
	annotations := map[string]string{}
	for name, value := range o.CommonAnnotations {
		if o.CommonAnnotationsEnvsubst {
			value = w.in.Substitute(value)
		}
		annotations[name] = unquoted(value)
	}
	if k.CommonAnnotations == nil {
		k.CommonAnnotations = map[string]string{}
	}
	return add(k.CommonAnnotations, annotations, "commonAnnotations", o.ForceCommonAnnotations)
}

// unquoted takes double quotes off: kustomize edit reads key:"value" like that.
func unquoted(s string) string {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return s[1 : len(s)-1]
	}
	return s
}

// add refuses to change what is there, unless it is forced.
func add(to, more map[string]string, field string, force bool) error {
	names := make([]string, 0, len(more))
	for name := range more {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if _, ok := to[name]; ok && !force {
			return fmt.Errorf("%s: %s is set in the kustomization already; spec.source.kustomize.force%s overrides it", field, name, strings.ToUpper(field[:1])+field[1:])
		}
		to[name] = more[name]
	}
	return nil
}

func (w *walker) editComponents(p place, k *types.Kustomization, o v1alpha1.ApplicationSourceKustomize) error {
	r := &references{walker: w, place: p, kustomization: k}
	for _, c := range o.Components {
		if contains(k.Components, c) {
			continue
		}
		if _, isRemote := parseRemote(c); o.IgnoreMissingComponents && !isRemote {
			if _, _, err := r.here(c); isMissing(err) {
				continue
			}
		}
		k.Components = append(k.Components, c)
	}
	return nil
}

func contains(list []string, s string) bool {
	for _, item := range list {
		if item == s {
			return true
		}
	}
	return false
}

func patchOf(p v1alpha1.KustomizePatch) (types.Patch, error) {
	out := types.Patch{Path: p.Path, Patch: p.Patch}
	if len(p.Options) > 0 {
		out.Options = &types.PatchArgs{AllowNameChange: p.Options["allowNameChange"], AllowKindChange: p.Options["allowKindChange"]}
	}
	for name := range p.Options {
		if name != "allowNameChange" && name != "allowKindChange" {
			return out, fmt.Errorf("option %s is not known; there are allowNameChange and allowKindChange", name)
		}
	}
	if t := p.Target; t != nil {
		out.Target = &types.Selector{AnnotationSelector: t.AnnotationSelector, LabelSelector: t.LabelSelector}
		out.Target.Group, out.Target.Version, out.Target.Kind = t.Group, t.Version, t.Kind
		out.Target.Name, out.Target.Namespace = t.Name, t.Namespace
	}
	return out, nil
}
