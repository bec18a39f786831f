package compare

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/lockstep-cd/lockstep/internal/manifest/ownership"
)

// Inherit tells what taking over adds to the apply whose dry run answered normal: the fields that predecessors declared,
// that the desired object does not declare and that nobody else owns go away. It answers normal without them, and their
// set; a nil set when there are none. What goes may come back as a default: only the API server knows, so the answer is to
// be put to it before it is compared (apply.Writer.Foresee). Taking over an object that an apply would not change is thus
// no difference.
func Inherit(normal *unstructured.Unstructured, predecessors []string) (*unstructured.Unstructured, *fieldpath.Set, error) {
	in, err := ownership.InheritanceOf(normal, predecessors)
	if err != nil || in.Fields.Empty() {
		return normal, nil, err
	}
	stay := &fieldpath.Set{}
	for _, f := range in.Rest {
		set, err := ownership.FieldsOf(f)
		if err != nil {
			return nil, nil, fmt.Errorf("%s/%s: %w", normal.GetKind(), normal.GetName(), err)
		}
		stay = stay.Union(set)
	}
	gone := &fieldpath.Set{}
	in.Fields.Difference(stay).Iterate(func(p fieldpath.Path) {
		if _, there := ownership.At(normal.Object, p); there && !hasChildren(stay, p) {
			gone.Insert(p.Copy())
		}
	})
	if gone.Empty() {
		return normal, nil, nil
	}
	left, _ := ownership.Without(normal.Object, gone, stay).(map[string]any)
	return &unstructured.Unstructured{Object: left}, gone, nil
}
