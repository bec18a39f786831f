package spec

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/bmatcuk/doublestar/v4"
	"github.com/gobwas/glob"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// Source checks what a source says of its tool; field is the path that it stands at.
func Source(field string, s v1alpha1.ApplicationSource) error {
	if _, err := tree.Clean(s.Path); err != nil {
		return fault(field+".path", "%w", err)
	}
	if s.Helm != nil {
		if err := helm(field+".helm", *s.Helm); err != nil {
			return err
		}
	}
	if s.Kustomize != nil {
		if err := kustomize(field+".kustomize", *s.Kustomize); err != nil {
			return err
		}
	}
	if s.Directory != nil {
		return directory(field+".directory", *s.Directory)
	}
	return nil
}

func helm(field string, h v1alpha1.ApplicationSourceHelm) error {
	if h.ReleaseName != "" && !variable(h.ReleaseName) && (len(h.ReleaseName) > maxRelease || len(validation.IsDNS1123Subdomain(h.ReleaseName)) > 0) {
		return fault(field+".releaseName", "%q is no name of a release: it has at most %d lower-case letters, digits, - and .", h.ReleaseName, maxRelease)
	}
	for i, f := range h.ValueFiles {
		if f == "" {
			return fault(fmt.Sprintf("%s.valueFiles[%d]", field, i), "is empty")
		}
		if strings.ContainsAny(f, "*?[{") && !strings.Contains(f, "://") && !doublestar.ValidatePattern(f) {
			return fault(fmt.Sprintf("%s.valueFiles[%d]", field, i), "%q is no pattern: a bracket or brace is not closed", f)
		}
	}
	for i, p := range h.Parameters {
		if p.Name == "" {
			return fault(fmt.Sprintf("%s.parameters[%d].name", field, i), "is empty")
		}
	}
	for i, p := range h.FileParameters {
		if p.Name == "" || p.Path == "" {
			missing := "name"
			if p.Name != "" {
				missing = "path"
			}
			return fault(fmt.Sprintf("%s.fileParameters[%d].%s", field, i, missing), "is empty")
		}
	}
	if h.ValuesObject != nil && len(h.ValuesObject.Raw) > 0 {
		var object map[string]any
		if json.Unmarshal(h.ValuesObject.Raw, &object) != nil {
			return fault(field+".valuesObject", "is no mapping")
		}
	}
	if err := namespace(field+".namespace", h.Namespace); err != nil {
		return err
	}
	if err := version(field+".kubeVersion", h.KubeVersion); err != nil {
		return err
	}
	return filled(field+".apiVersions", h.APIVersions)
}

// maxRelease is Helm's bound.
const maxRelease = 53

// variable tells that a text holds a build variable, and is not final yet.
func variable(text string) bool { return strings.Contains(text, "$") }

func version(field, text string) error {
	if text == "" {
		return nil
	}
	if _, err := semver.NewVersion(text); err != nil {
		return fault(field, "%q is no version such as 1.37.0", text)
	}
	return nil
}

func namespace(field, text string) error {
	if text == "" || variable(text) {
		return nil
	}
	if why := validation.IsDNS1123Label(text); len(why) > 0 {
		return fault(field, "%q is no name of a namespace: %s", text, why[0])
	}
	return nil
}

func filled(field string, list []string) error {
	if i := slices.Index(list, ""); i >= 0 {
		return fault(fmt.Sprintf("%s[%d]", field, i), "is empty")
	}
	return nil
}

func kustomize(field string, k v1alpha1.ApplicationSourceKustomize) error {
	for i, image := range k.Images {
		if !isImage(string(image)) {
			return fault(fmt.Sprintf("%s.images[%d]", field, i), "%q is not of the form [old=]name:tag, [old=]name@digest or old=name", image)
		}
	}
	for i, r := range k.Replicas {
		at := fmt.Sprintf("%s.replicas[%d]", field, i)
		count, err := int64(r.Count.IntVal), error(nil)
		if r.Count.Type == intstr.String {
			count, err = strconv.ParseInt(r.Count.StrVal, 10, 64)
		}
		switch {
		case r.Name == "":
			return fault(at+".name", "is empty")
		case err != nil || count < 0:
			return fault(at+".count", "%q is no number from 0 on", r.Count.String())
		}
	}
	if err := labelsOf(field+".commonLabels", k.CommonLabels); err != nil {
		return err
	}
	if err := annotations(field+".commonAnnotations", k.CommonAnnotations); err != nil {
		return err
	}
	if err := namespace(field+".namespace", k.Namespace); err != nil {
		return err
	}
	if err := version(field+".kubeVersion", k.KubeVersion); err != nil {
		return err
	}
	for i, p := range k.Patches {
		if err := patch(fmt.Sprintf("%s.patches[%d]", field, i), p); err != nil {
			return err
		}
	}
	if err := filled(field+".components", k.Components); err != nil {
		return err
	}
	return filled(field+".apiVersions", k.APIVersions)
}

func isImage(text string) bool {
	if variable(text) {
		return true
	}
	old, name, renamed := strings.Cut(text, "=")
	if renamed {
		return old != "" && name != ""
	}
	at := strings.LastIndexAny(text, ":@")
	return at > 0 && at < len(text)-1 && !strings.Contains(text[at:], "/")
}

func patch(field string, p v1alpha1.KustomizePatch) error {
	switch {
	case p.Path == "" && p.Patch == "":
		return fault(field+".patch", "is empty, and there is no path either; set one of them")
	case p.Path != "" && p.Patch != "":
		return fault(field+".patch", "path and patch exclude each other; set one of them")
	}
	for option := range p.Options {
		if option != "allowNameChange" && option != "allowKindChange" {
			return fault(field+".options", "%q is not known; there are allowNameChange and allowKindChange", option)
		}
	}
	if p.Target == nil {
		return nil
	}
	t := p.Target
	for _, one := range []struct{ name, text string }{{"group", t.Group}, {"version", t.Version}, {"kind", t.Kind}, {"name", t.Name}, {"namespace", t.Namespace}} {
		if _, err := regexp.Compile(one.text); err != nil {
			return fault(field+".target."+one.name, "%q is no regular expression", one.text)
		}
	}
	for _, one := range []struct{ name, text string }{{"labelSelector", t.LabelSelector}, {"annotationSelector", t.AnnotationSelector}} {
		if _, err := labels.Parse(one.text); err != nil {
			return fault(field+".target."+one.name, "%q is no selector: %w", one.text, err)
		}
	}
	return nil
}

func directory(field string, d v1alpha1.ApplicationSourceDirectory) error {
	for _, one := range []struct{ name, text string }{{"include", d.Include}, {"exclude", d.Exclude}} {
		if err := Pattern(one.text); err != nil {
			return fault(field+"."+one.name, "%q is no pattern: %w", one.text, err)
		}
	}
	for i, v := range d.Jsonnet.ExtVars {
		if v.Name == "" {
			return fault(fmt.Sprintf("%s.jsonnet.extVars[%d].name", field, i), "is empty")
		}
	}
	for i, v := range d.Jsonnet.TLAs {
		if v.Name == "" {
			return fault(fmt.Sprintf("%s.jsonnet.tlas[%d].name", field, i), "is empty")
		}
	}
	for i, lib := range d.Jsonnet.Libs {
		at := fmt.Sprintf("%s.jsonnet.libs[%d]", field, i)
		if lib == "" {
			return fault(at, "is empty")
		}
		if _, err := tree.Clean(lib); err != nil {
			return fault(at, "%w", err)
		}
	}
	return nil
}

// Pattern says what is wrong with a glob; nil when nothing is.
func Pattern(text string) (err error) {
	defer func() { // the pattern comes from outside, and the library has panicked for odd ones
		if recover() != nil {
			err = fmt.Errorf("it can't be read")
		}
	}()
	_, err = glob.Compile(text)
	return err
}

func labelsOf(field string, m map[string]string) error {
	plain := map[string]string{}
	for k, v := range m {
		if v = strings.Trim(v, `"`); variable(v) {
			v = ""
		}
		plain[k] = v
	}
	return metaLabels(field, plain)
}

func metaLabels(field string, m map[string]string) error {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if why := validation.IsQualifiedName(k); len(why) > 0 {
			return fault(field, "%q is no name of a label: %s", k, why[0])
		}
		if why := validation.IsValidLabelValue(m[k]); len(why) > 0 {
			return fault(field+"["+k+"]", "%q is no value of a label: %s", m[k], why[0])
		}
	}
	return nil
}

func annotations(field string, m map[string]string) error {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if why := validation.IsQualifiedName(strings.ToLower(k)); len(why) > 0 {
			return fault(field, "%q is no name of an annotation: %s", k, why[0])
		}
	}
	return nil
}
