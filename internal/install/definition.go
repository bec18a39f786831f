package install

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ConflictError tells that a definition in the cluster can not serve Lockstep without losing what it has. Nothing was
// written.
type ConflictError struct {
	// Name of the definition, such as applications.argoproj.io.
	Name string
	// Reasons, one for each field or property that stands in the way.
	Reasons []string
}

// Error names the definition and every reason.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("CustomResourceDefinition/%s: can not be extended for Lockstep: %s", e.Name, strings.Join(e.Reasons, "; "))
}

// reconcile returns the definition to write in place of theirs, or nil when theirs already accepts all that ours does.
func reconcile(theirs, ours *unstructured.Unstructured) (*unstructured.Unstructured, Difference, error) {
	wanted := versionsOf(ours)[0]
	label := text(wanted, "name")
	result := skeleton(theirs)
	existing, reasons := usable(result, ours, label)
	if len(reasons) > 0 {
		return nil, Difference{}, &ConflictError{Name: theirs.GetName(), Reasons: reasons}
	}
	have, want := schemaOf(existing), schemaOf(wanted)
	merged, diff := Merge(have, want)
	if len(diff.Conflicts) > 0 {
		return nil, diff, &ConflictError{Name: theirs.GetName(), Reasons: diff.Conflicts}
	}
	if diff.Accepts() {
		return nil, diff, nil
	}
	// Ours takes the place of theirs only when nothing is lost; it brings the newer descriptions and columns.
	if _, back := Merge(want, have); back.Accepts() && len(back.Rules) == 0 && len(diff.Rules) == 0 {
		merged = want
		existing["additionalPrinterColumns"] = wanted["additionalPrinterColumns"]
	}
	existing["schema"] = map[string]any{"openAPIV3Schema": merged}
	return result, diff, nil
}

// skeleton is the part of a definition that is applied: the whole identity, since a field that its manager no longer
// sends is removed, and all versions, since they are one value to the server.
func skeleton(crd *unstructured.Unstructured) *unstructured.Unstructured {
	spec := object(crd.DeepCopy().Object["spec"])
	kept := map[string]any{}
	for _, field := range []string{"group", "names", "scope", "versions"} {
		kept[field] = spec[field]
	}
	result := &unstructured.Unstructured{Object: map[string]any{"spec": kept}}
	result.SetAPIVersion(crd.GetAPIVersion())
	result.SetKind(crd.GetKind())
	result.SetName(crd.GetName())
	// Somebody who writes in between makes the apply fail with a conflict, and the comparison is made again.
	result.SetResourceVersion(crd.GetResourceVersion())
	return result
}

// usable finds the version in the definition of the cluster, or the reasons why it can not serve.
func usable(theirs, ours *unstructured.Unstructured, label string) (map[string]any, []string) {
	var reasons []string
	for _, field := range [][]string{{"spec", "names", "kind"}, {"spec", "names", "plural"}, {"spec", "scope"}} {
		have, want := text(theirs.Object, field...), text(ours.Object, field...)
		if have != want {
			reasons = append(reasons, fmt.Sprintf("%s is %q, want %q", strings.Join(field, "."), have, want))
		}
	}
	for _, version := range versionsOf(theirs) {
		if text(version, "name") != label {
			continue
		}
		if version["served"] != true {
			reasons = append(reasons, fmt.Sprintf("version %s is not served", label))
		}
		if object(version["subresources"])["status"] != nil {
			reasons = append(reasons, fmt.Sprintf("version %s has a status subresource, which drops the status that is written with the object", label))
		}
		if schemaOf(version) == nil {
			reasons = append(reasons, fmt.Sprintf("version %s has no schema", label))
		}
		return version, reasons
	}
	return nil, append(reasons, fmt.Sprintf("version %s is missing", label))
}

func versionsOf(crd *unstructured.Unstructured) []map[string]any {
	list, _ := object(crd.Object["spec"])["versions"].([]any)
	versions := make([]map[string]any, 0, len(list))
	for _, entry := range list {
		versions = append(versions, object(entry))
	}
	return versions
}

func schemaOf(version map[string]any) map[string]any {
	return object(object(version["schema"])["openAPIV3Schema"])
}

func text(from map[string]any, path ...string) string {
	value, _, _ := unstructured.NestedString(from, path...)
	return value
}
