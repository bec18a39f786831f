package install_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/install"
	"github.com/lockstep-cd/lockstep/test/env"
)

const (
	applications = "applications.argoproj.io"
	projects     = "appprojects.argoproj.io"
)

// The tests take definitions away, so they have a cluster of their own. Each starts without definitions.
func TestInstall(t *testing.T) {
	client, err := dynamic.NewForConfig(env.NewCluster(t).REST())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		run  func(*testing.T, cluster)
	}{
		{"empty cluster", installsIntoAnEmptyCluster},
		{"older definition with fields of its own", extendsAnOlderDefinition},
		{"definition that has all", leavesADefinitionThatHasAll},
		{"definition that can not serve", stopsBeforeTheFirstWrite},
		{"names that are taken", saysWhyADefinitionIsNotServed},
		{"several at once", runsSeveralTimesAtOnce},
		{"project that exists", keepsTheDefaultProject},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := cluster{client}
			for _, name := range []string{applications, projects, "others.argoproj.io"} {
				c.remove(t, name)
			}
			test.run(t, c)
		})
	}
}

func installsIntoAnEmptyCluster(t *testing.T, c cluster) {
	options := install.Options{Namespace: "first"}
	if diff := cmp.Diff(changes(
		"created CustomResourceDefinition/"+applications, "created CustomResourceDefinition/"+projects,
		"created Namespace/first", "created AppProject/first/default",
	), c.all(t, options)); diff != "" {
		t.Errorf("first (-want +got):\n%s", diff)
	}
	// The kinds are served at once, and keep what people write.
	values := map[string]any{"anything": []any{int64(1), map[string]any{"goes": true}}}
	app := application("first", map[string]any{"repoURL": "https://git.example.com/shop", "helm": map[string]any{"valuesObject": values}})
	app.Object["status"] = map[string]any{"sync": map[string]any{"status": "Synced"}}
	got, err := c.client.Resource(v1alpha1.Applications()).Namespace("first").Create(t.Context(), app, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kept, _, _ := unstructured.NestedMap(got.Object, "spec", "source", "helm", "valuesObject")
	if diff := cmp.Diff(values, kept); diff != "" {
		t.Errorf("valuesObject (-want +got):\n%s", diff)
	}
	if status, _, _ := unstructured.NestedString(got.Object, "status", "sync", "status"); status != "Synced" {
		t.Errorf("the status that was written with the object is %q", status)
	}
	before := c.versions(t)
	if diff := cmp.Diff(changes(
		"unchanged CustomResourceDefinition/"+applications, "unchanged CustomResourceDefinition/"+projects,
		"unchanged Namespace/first", "unchanged AppProject/first/default",
	), c.all(t, options)); diff != "" {
		t.Errorf("second (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, c.versions(t)); diff != "" {
		t.Errorf("the second run wrote:\n%s", diff)
	}
}

func extendsAnOlderDefinition(t *testing.T, c cluster) {
	c.define(t, applications, func(source map[string]any) {
		delete(source, "tagPrefix")
		source["ksonnet"] = map[string]any{"type": "object", "properties": map[string]any{"environment": map[string]any{"type": "string"}}}
	})
	c.namespace(t, "second")
	api := c.client.Resource(v1alpha1.Applications()).Namespace("second")
	old := application("second", map[string]any{"repoURL": "https://git.example.com/shop", "ksonnet": map[string]any{"environment": "prod"}})
	eventually(t, "the older kind is served", func(ctx context.Context) error {
		_, err := api.Create(ctx, old, metav1.CreateOptions{})
		return err
	})

	report, err := install.All(t.Context(), c.client, install.Options{Namespace: "second"})
	if err != nil {
		t.Fatal(err)
	}
	want := install.Difference{Missing: []string{"spec.source.tagPrefix"}, Extra: []string{"spec.source.ksonnet"}}
	if diff := cmp.Diff(want, report.Changes[0].Difference); diff != "" || report.Changes[0].Action != install.Updated {
		t.Errorf("%s (-want +got):\n%s", report.Changes[0].Action, diff)
	}
	// A server takes up a new schema a moment after it was written. The old field must outlive every write.
	eventually(t, "the new field is kept, and the old one too", func(ctx context.Context) error {
		patch := []byte(`{"spec":{"source":{"tagPrefix":"v"}}}`)
		got, err := api.Patch(ctx, "web", "application/merge-patch+json", patch, metav1.PatchOptions{})
		if err != nil {
			return err
		}
		source, _, _ := unstructured.NestedMap(got.Object, "spec", "source")
		if environment, _, _ := unstructured.NestedString(source, "ksonnet", "environment"); environment != "prod" {
			t.Fatalf("a field that the cluster had is lost: %v", source)
		}
		if source["tagPrefix"] != "v" {
			return errors.New("tagPrefix was dropped")
		}
		return nil
	})
}

func leavesADefinitionThatHasAll(t *testing.T, c cluster) {
	c.define(t, applications, func(source map[string]any) { source["tomorrow"] = map[string]any{"type": "string"} })
	c.define(t, projects, func(map[string]any) {})
	before := c.versionsWhen(t, established)
	c.all(t, install.Options{Namespace: "third"})
	if diff := cmp.Diff(before, c.versions(t)); diff != "" {
		t.Errorf("it was written:\n%s", diff)
	}
}

func stopsBeforeTheFirstWrite(t *testing.T, c cluster) {
	// The definition of projects comes first by name; it must not be written either.
	c.define(t, projects, func(map[string]any) {})
	c.define(t, applications, func(source map[string]any) { source["path"] = map[string]any{"type": "integer"} })
	before := c.versionsWhen(t, established)
	report, err := install.All(t.Context(), c.client, install.Options{Namespace: "fourth"})
	var conflict *install.ConflictError
	if !errors.As(err, &conflict) || !strings.Contains(err.Error(), "spec.source.path: integer in the cluster, string in ours") {
		t.Errorf("error %v", err)
	}
	if len(report.Changes) > 0 {
		t.Errorf("changes %v", report.Changes)
	}
	if diff := cmp.Diff(before, c.versions(t)); diff != "" {
		t.Errorf("it was written:\n%s", diff)
	}
	if _, err := c.client.Resource(namespaces()).Get(t.Context(), "fourth", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("namespace: %v", err)
	}
}

func saysWhyADefinitionIsNotServed(t *testing.T, c cluster) {
	other := c.definition(t, applications)
	other.SetName("others.argoproj.io")
	names := map[string]any{"kind": "Other", "listKind": "OtherList", "plural": "others", "singular": "other", "shortNames": []any{"app"}}
	if err := unstructured.SetNestedMap(other.Object, names, "spec", "names"); err != nil {
		t.Fatal(err)
	}
	c.create(t, other)
	c.versionsWhen(t, established)
	_, err := install.CRDs(t.Context(), c.client, install.Options{Timeout: time.Second})
	if err == nil || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `"app" is already in use`) {
		t.Errorf("error %v", err)
	}
}

func runsSeveralTimesAtOnce(t *testing.T, c cluster) {
	c.define(t, applications, func(source map[string]any) { delete(source, "tagPrefix") })
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if _, err := install.All(t.Context(), c.client, install.Options{Namespace: "fifth"}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func keepsTheDefaultProject(t *testing.T, c cluster) {
	options := install.Options{Namespace: "sixth"}
	c.all(t, options)
	api := c.client.Resource(v1alpha1.AppProjects()).Namespace("sixth")
	patch := []byte(`{"spec":{"sourceRepos":["https://git.example.com/*"]}}`)
	if _, err := api.Patch(t.Context(), "default", "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c.all(t, options)
	got, err := api.Get(t.Context(), "default", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"sourceRepos":              []any{"https://git.example.com/*"},
		"destinations":             []any{map[string]any{"server": "*", "namespace": "*"}},
		"clusterResourceWhitelist": []any{map[string]any{"group": "*", "kind": "*"}},
	}
	if diff := cmp.Diff(want, got.Object["spec"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
