// Package workload owns what the benchmark deploys: the files of the repository, the Applications, the objects they
// declare and what each must look like in the cluster. The floor, the observer and the git repository are all made from
// one Spec, so that they can not disagree.
//
// It computes values only and may depend on api alone.
package workload

import (
	"fmt"
	"path"

	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// Spec says how much is deployed and from where. The zero value of Kinds and Namespaces is invalid; see Validate.
type Spec struct {
	// Applications is their number; they are numbered from 0.
	Applications int `json:"applications"`
	// Kinds are the short names of the objects of each application, one object a name. See KindNames.
	Kinds []string `json:"kinds"`
	// Namespaces is how many destination namespaces the applications are spread over.
	Namespaces int `json:"namespaces"`
	// ControlNamespace is where the Applications are.
	ControlNamespace string `json:"controlNamespace"`
	// RepoURL and Revision are the repository and the commit that is deployed first.
	RepoURL  string `json:"repoURL"`
	Revision string `json:"revision"`
}

// FirstVersion is the version of every object in the first commit.
const FirstVersion = 1

// Validate says what of the numbers and names makes no sense.
func (s Spec) Validate() error {
	if s.Applications < 1 {
		return fmt.Errorf("applications %d: at least 1 is needed", s.Applications)
	}
	if s.Namespaces < 1 {
		return fmt.Errorf("namespaces %d: at least 1 is needed", s.Namespaces)
	}
	if len(s.Kinds) == 0 {
		return fmt.Errorf("objects: at least one kind is needed")
	}
	seen := map[string]bool{}
	for _, name := range s.Kinds {
		if _, err := KindOf(name); err != nil {
			return err
		}
		if seen[name] {
			return fmt.Errorf("objects: %s is named twice", name)
		}
		seen[name] = true
	}
	return nil
}

// Name is the name of application i and of each of its objects.
func (s Spec) Name(i int) string { return fmt.Sprintf("app-%05d", i) }

// Index is the inverse of Name; ok is false for names of others.
func (s Spec) Index(name string) (i int, ok bool) {
	if _, err := fmt.Sscanf(name, "app-%05d", &i); err != nil || i < 0 || i >= s.Applications || s.Name(i) != name {
		return 0, false
	}
	return i, true
}

// Namespace is the destination of application i.
func (s Spec) Namespace(i int) string { return NamespaceName(i % s.Namespaces) }

// NamespaceName is the name of destination namespace n.
func NamespaceName(n int) string { return fmt.Sprintf("bench-%02d", n) }

// Path is the folder of application i in the repository.
func (s Spec) Path(i int) string { return "apps/" + s.Name(i) }

// Object is one object of an application, as it stands in a manifest.
type Object struct {
	Kind Kind
	// Content has no namespace, as manifests in repositories usually have none.
	Content map[string]any
}

// Objects are the objects of application i. Only the first kind changes with version; a version above FirstVersion is
// what the commit of the changed file brings.
func (s Spec) Objects(i, version int) ([]Object, error) {
	objects := make([]Object, 0, len(s.Kinds))
	for n, name := range s.Kinds {
		kind, err := KindOf(name)
		if err != nil {
			return nil, err
		}
		v := FirstVersion
		if n == 0 {
			v = version
		}
		objects = append(objects, Object{Kind: kind, Content: kind.build(s.Name(i), v)})
	}
	return objects, nil
}

// Files are the files of application i, one object each, by their path in the repository.
func (s Spec) Files(i, version int) (map[string]string, error) {
	objects, err := s.Objects(i, version)
	if err != nil {
		return nil, err
	}
	files := make(map[string]string, len(objects))
	for _, o := range objects {
		text, err := yaml.Marshal(o.Content)
		if err != nil {
			return nil, fmt.Errorf("%s %s: yaml: %w", o.Kind.Kind, s.Name(i), err)
		}
		files[path.Join(s.Path(i), o.Kind.Name+".yaml")] = string(text)
	}
	return files, nil
}

// Repository is every file of the first commit.
func (s Spec) Repository() (map[string]string, error) {
	all := map[string]string{"README.md": "Made by the benchmark.\n"}
	for i := range s.Applications {
		files, err := s.Files(i, FirstVersion)
		if err != nil {
			return nil, err
		}
		for name, text := range files {
			all[name] = text
		}
	}
	return all, nil
}

// Source is where application i comes from.
func (s Spec) Source(i int) v1alpha1.ApplicationSource {
	return v1alpha1.ApplicationSource{RepoURL: s.RepoURL, Path: s.Path(i), TargetRevision: "main"}
}

// Destination is where application i goes to.
func (s Spec) Destination(i int) v1alpha1.ApplicationDestination {
	return v1alpha1.ApplicationDestination{Server: "https://kubernetes.default.svc", Namespace: s.Namespace(i)}
}

// Application is application i as a person would create it: synced automatically, with prune and self-heal.
func (s Spec) Application(i int) map[string]any {
	source := s.Source(i)
	return map[string]any{
		"apiVersion": "argoproj.io/v1alpha1",
		"kind":       "Application",
		"metadata":   map[string]any{"name": s.Name(i), "namespace": s.ControlNamespace},
		"spec": v1alpha1.ApplicationSpec{
			Project: "default", Source: &source, Destination: s.Destination(i),
			SyncPolicy: &v1alpha1.SyncPolicy{Automated: &v1alpha1.SyncPolicyAutomated{Prune: true, SelfHeal: true}},
		},
	}
}

// TrackingID is the annotation value that names the owner of an object of application i.
func (s Spec) TrackingID(i int, k Kind) string {
	return fmt.Sprintf("%s:%s/%s:%s/%s", s.Name(i), k.Group, k.Kind, s.Namespace(i), s.Name(i))
}
