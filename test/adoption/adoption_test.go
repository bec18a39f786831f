package adoption_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// kept are the flags of a Lockstep that works beside Argo CD.
func kept() []string { return []string{"--applications", "lockstep.dev/manager=lockstep"} }

// content is what an application declares; each later version drops a field that the one before had, and an object, which
// was not touched since it was made.
func content(app string, version int) map[string]string {
	return map[string]string{
		app + "/spare.yaml": from(version, 1, spare(app, 1)) + from(version, 2, spare(app, 2)),
		app + "/cm.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + app + ", labels: {team: a}}\ndata: {keep: a" + from(version, 2, ", second: b") + from(version, 1, ", first: c") + "}\n",
		app + "/web.yaml":   deployment(app, version),
	}
}

func spare(app string, leaves int) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-spare-%d}\n", app, leaves)
}

// from is text in the versions up to last.
func from(version, last int, text string) string {
	if version <= last {
		return text
	}
	return ""
}

func deployment(name string, version int) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, annotations: {note: text%[2]s}}
spec:
  replicas: 2
  minReadySeconds: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: c, image: "registry.example/web:1", ports: [{name: http, containerPort: 80}]}]}
`, name, from(version, 1, ", old: text"))
}

// ways are how Argo CD applies.
func ways() map[string]func(*v1alpha1.Application) {
	return map[string]func(*v1alpha1.Application){
		"client": func(*v1alpha1.Application) {},
		"server": func(a *v1alpha1.Application) {
			a.Spec.SyncPolicy.SyncOptions = v1alpha1.SyncOptions{"ServerSideApply=true"}
		},
	}
}

// TestThereAndBack hands what a real Argo CD made to Lockstep and back again. Neither way restarts a pod or shows a
// difference, and each of the two removes a field that left the source while it keeps the application.
func TestThereAndBack(t *testing.T) {
	for _, method := range []string{"annotation", "annotation+label", "label"} {
		t.Run(method, func(t *testing.T) {
			files := map[string]string{}
			for app := range ways() {
				maps.Copy(files, content(app, 1))
			}
			s := newStage(t, method, files)
			s.startArgo()
			s.startLockstep(kept()...)
			for app, change := range ways() {
				s.app(app, change)
			}
			for app := range ways() {
				s.settled(app, s.head())
			}
			for app := range ways() {
				s.there(app)
				s.back(app)
			}
		})
	}
}

// TestBesideOne runs Lockstep for all applications of a namespace in which Argo CD works: it leaves them alone and says why,
// until one is handed over.
func TestBesideOne(t *testing.T) {
	files := content("kept", 1)
	maps.Copy(files, content("handed", 1))
	s := newStage(t, "annotation", files)
	s.startArgo()
	s.app("kept")
	s.app("handed")
	s.settled("kept", s.head())
	s.settled("handed", s.head())
	s.startLockstep()
	sentence := "Argo CD manages the application, too (it wrote its status at "
	for _, app := range []string{"kept", "handed"} {
		s.until(app+" to be left alone", func() string { return s.missing(app, sentence) })
	}
	s.run(0, "adopt", s.real("handed"), "--quiet", "1s")
	files = content("kept", 2)
	maps.Copy(files, content("handed", 2))
	second := s.commit(files)
	s.settled("handed", second)
	s.settled("kept", second)
	s.owned("handed", "lockstep")
	s.owned("kept", "")
	for _, f := range s.raw("kept").GetManagedFields() {
		if f.Manager == "lockstep" {
			t.Error("an application that Argo CD keeps was written")
		}
	}
}

// missing looks for an Event of the application that says something; it answers what the Events say instead.
func (s *stage) missing(app, text string) string {
	s.t.Helper()
	events := schema.GroupVersionResource{Version: "v1", Resource: "events"}
	list, err := s.client.Resource(events).Namespace(s.control).List(s.t.Context(), metav1.ListOptions{})
	s.must(err)
	said := "no event"
	for i := range list.Items {
		object, _, _ := unstructured.NestedString(list.Items[i].Object, "involvedObject", "name")
		message, _, _ := unstructured.NestedString(list.Items[i].Object, "message")
		if object != s.real(app) {
			continue
		}
		if strings.Contains(message, text) {
			return ""
		}
		said += "; " + message
	}
	return said
}

// there adopts an application and commits a version with a field less.
func (s *stage) there(app string) {
	s.t.Helper()
	s.run(0, "shadow", s.real(app)) // rendering, objects and health are the same
	before, first := s.pods(), s.head()
	generation := s.object("apps/v1", "deployments", app).GetGeneration()
	s.run(0, "adopt", s.real(app), "--quiet", "1s")
	s.looked(app)
	s.settled(app, first)
	s.run(0, "app", "diff", s.real(app), "--exit-code")
	s.samePods(before, app+" adopted")
	if now := s.object("apps/v1", "deployments", app).GetGeneration(); now != generation {
		s.t.Errorf("%s adopted: its Deployment was written", app)
	}
	second := s.commit(content(app, 2))
	s.settled(app, second)
	s.data(app, "keep second")
	s.spares(app, 2)
	s.owned(app, "lockstep")
	s.samePods(before, app+" synced by Lockstep")
}

// back releases an application and commits a version with one field less again.
func (s *stage) back(app string) {
	s.t.Helper()
	before, second := s.pods(), s.head()
	s.run(0, "release", s.real(app))
	s.owned(app, "argocd-controller")
	s.writtenBy(app, "argocd-application-controller")
	s.settled(app, second)
	s.samePods(before, app+" released")
	third := s.commit(content(app, 3))
	s.settled(app, third)
	s.data(app, "keep")
	s.spares(app)
	s.samePods(before, app+" synced by Argo CD")
}

// looked asks for a look at an adopted application and waits until Lockstep has made it; what is in step is not written.
func (s *stage) looked(app string) {
	s.t.Helper()
	_, err := s.apps().Patch(s.t.Context(), s.real(app), types.MergePatchType, []byte(`{"metadata":{"annotations":{"argocd.argoproj.io/refresh":"normal"}}}`), metav1.PatchOptions{})
	s.must(err)
	s.until("a look at "+app, func() string { return s.raw(app).GetAnnotations()["argocd.argoproj.io/refresh"] })
}

// writtenBy waits until a controller has written the application after all others.
func (s *stage) writtenBy(app, manager string) {
	s.t.Helper()
	s.until(app+" to be written by "+manager, func() string {
		var last metav1.ManagedFieldsEntry
		for _, f := range s.raw(app).GetManagedFields() {
			if strings.Contains(f.FieldsV1.String(), "f:status") && (last.Time == nil || f.Time.After(last.Time.Time)) {
				last = f
			}
		}
		if last.Manager == manager {
			return ""
		}
		return "it was written by " + last.Manager
	})
}

// spares tells which of the application's spare ConfigMaps there are.
func (s *stage) spares(app string, want ...int) {
	s.t.Helper()
	list, err := s.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(s.dest).List(s.t.Context(), metav1.ListOptions{})
	s.must(err)
	var found []int
	for i := range list.Items {
		if leaves, is := strings.CutPrefix(list.Items[i].GetName(), app+"-spare-"); is && list.Items[i].GetDeletionTimestamp() == nil {
			found = append(found, int(leaves[0]-'0'))
		}
	}
	if !slices.Equal(found, want) {
		s.t.Errorf("%s: the spare ConfigMaps %v are there, want %v", app, found, want)
	}
}

// data tells which keys the application's ConfigMap has.
func (s *stage) data(app, keys string) {
	s.t.Helper()
	data, _, err := unstructured.NestedStringMap(s.object("v1", "configmaps", app).Object, "data")
	s.must(err)
	if len(data) != len(strings.Fields(keys)) {
		s.t.Errorf("%s: data %v, want the keys %s", app, data, keys)
	}
}

// owned tells who declared the fields of the application's objects.
func (s *stage) owned(app, manager string) {
	s.t.Helper()
	for _, u := range []*unstructured.Unstructured{s.object("v1", "configmaps", app), s.object("apps/v1", "deployments", app)} {
		found := ""
		for _, f := range u.GetManagedFields() {
			if f.Operation == metav1.ManagedFieldsOperationApply && f.Subresource == "" {
				found += f.Manager
			}
		}
		if found != manager {
			s.t.Errorf("%s %s is declared by %q, want %s", u.GetKind(), app, found, manager)
		}
	}
}
