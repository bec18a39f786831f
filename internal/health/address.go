package health

import (
	"context"
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
)

// WithoutAddress reads a list of classes whose Ingresses and LoadBalancer Services are well although nobody writes an address
// into their status: words between commas or spaces, each the name of a class, with * for any characters. Ingress/ or Service/
// before the name limits it to that kind. An object without a class has the name "".
func WithoutAddress(classes string) (Override, error) {
	words := strings.FieldsFunc(classes, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' })
	for _, word := range words {
		kind, _, limited := strings.Cut(word, "/")
		if _, err := path.Match(word, ""); err != nil || limited && kind != "Ingress" && kind != "Service" {
			return nil, fmt.Errorf("%q is no class; write its name, or Ingress/NAME or Service/NAME, with * for any characters", word)
		}
	}
	return func(_ context.Context, obj *unstructured.Unstructured) (v1alpha1.HealthStatus, bool, bool) {
		kind, class, waits := addressed(obj)
		if !waits {
			return v1alpha1.HealthStatus{}, false, false
		}
		for _, word := range words {
			pattern := strings.TrimPrefix(word, kind+"/")
			if fits, _ := path.Match(pattern, class); fits { // checked above; a pattern with a slash fits no class
				return healthy(""), true, true
			}
		}
		return v1alpha1.HealthStatus{}, false, false
	}, nil
}

// addressed tells whether an object counts as well only when it has an address, and the class that gives it one.
func addressed(obj *unstructured.Unstructured) (kind, class string, waits bool) {
	f, gk := field.Map(obj.Object), obj.GroupVersionKind().GroupKind()
	switch {
	case gk.Kind == "Service" && gk.Group == "":
		return "Service", f.Text("spec", "loadBalancerClass"), f.Text("spec", "type") == "LoadBalancer"
	case gk.Kind == "Ingress" && (gk.Group == "networking.k8s.io" || gk.Group == "extensions"):
		class := f.Text("spec", "ingressClassName")
		if class == "" {
			class = obj.GetAnnotations()["kubernetes.io/ingress.class"]
		}
		return "Ingress", class, true
	}
	return "", "", false
}
