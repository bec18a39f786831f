package engine_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// monorepo is one repository of many applications; the first shared ones read a common folder.
type monorepo struct {
	*world
	apps, shared int
}

func (m monorepo) name(n int) string { return fmt.Sprintf("a%03d", n) }

func (m monorepo) file(n int) string { return "apps/" + m.name(n) + "/cm.yaml" }

func (m monorepo) files() map[string]string {
	files := map[string]string{
		"README.md": "1", "common/kustomization.yaml": "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\ncommonAnnotations: {common: \"1\"}\n",
	}
	for n := 1; n <= m.apps; n++ {
		files[m.file(n)] = configMap(m.name(n), "1")
		if n <= m.shared {
			files["apps/"+m.name(n)+"/kustomization.yaml"] = "resources: [cm.yaml]\ncomponents: [../../common]\n"
		}
	}
	return files
}

// deployments are how often each application was deployed, and whether all are in step but those that except names.
func (m monorepo) deployments(except ...string) (counts map[string]int, rest string) {
	m.t.Helper()
	list, err := m.world.apps().List(m.t.Context(), metav1.ListOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
	counts = map[string]int{}
	out := map[string]bool{}
	for _, name := range except {
		out[m.real(name)] = true
	}
	for _, u := range list.Items {
		history, _, _ := unstructured.NestedSlice(u.Object, "status", "history")
		counts[u.GetName()] = len(history)
		status, _, _ := unstructured.NestedString(u.Object, "status", "sync", "status")
		if want := map[bool]string{false: "Synced", true: "OutOfSync"}[out[u.GetName()]]; status != want {
			rest = u.GetName() + " is " + status
		}
	}
	return counts, rest
}

// renders is how many renderings were made so far.
func (m monorepo) renders() int {
	m.t.Helper()
	families, err := m.metrics.Gather()
	if err != nil {
		m.t.Fatal(err)
	}
	total := 0.0
	for _, f := range families {
		if f.GetName() == "lockstep_renders_total" {
			for _, metric := range f.GetMetric() {
				total += metric.GetCounter().GetValue()
			}
		}
	}
	return int(total)
}

// taken waits until the commit was seen and every look that it caused has been made.
func (m monorepo) taken(sha string) {
	m.t.Helper()
	last := m.name(m.apps)
	m.refresh(last, "normal")
	m.until("the commit is seen", func() (string, bool) {
		got := m.get(last).Status.Sync.Revision
		state := m.engine.Queue()
		return fmt.Sprint(got, state.Waiting), got == sha && state.Waiting == 0
	})
}

// C058: in a repository of many applications a push renders those that read what it changed, syncs those that render to
// something else, and reverts nothing that nobody asked to be put back.
func TestC058Monorepo(t *testing.T) {
	m := monorepo{world: newWorld(t), apps: 300, shared: 10}
	r := m.repo("mono", m.files())
	for n := 1; n <= m.apps; n++ {
		m.app(m.name(n), v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "apps/" + m.name(n)}, func(a *v1alpha1.Application) {
			a.Spec.SyncPolicy.Automated = &v1alpha1.SyncPolicyAutomated{}
		})
	}
	m.until("all in step", func() (string, bool) { _, rest := m.deployments(); return rest, rest == "" })
	m.edit("a200", "by hand")
	m.until("a200 differs", func() (string, bool) { _, rest := m.deployments("a200"); return rest, rest == "" })
	before, _ := m.deployments()
	want := func(step, sha string, renders int, deployed ...int) {
		t.Helper()
		m.taken(sha)
		m.until(step, func() (string, bool) {
			now, rest := m.deployments("a200")
			for _, n := range deployed {
				if name := m.real(m.name(n)); now[name] == before[name] {
					return name + " was not deployed", false
				}
			}
			return rest, rest == ""
		})
		for _, n := range deployed {
			before[m.real(m.name(n))]++
		}
		now, _ := m.deployments()
		for name, n := range now {
			if n != before[name] {
				t.Errorf("%s: %s has %d deployments, want %d", step, name, n, before[name])
			}
		}
		if data, _ := m.configMap("a200"); data["k"] != "by hand" {
			t.Errorf("%s: a200 was reverted to %v", step, data)
		}
		if got := m.renders() - renders; got != len(deployed) {
			t.Errorf("%s: %d renderings for %d applications", step, got, len(deployed))
		}
	}
	start := m.renders()
	want("a push to a001", m.commit(r, map[string]string{m.file(1): configMap(m.name(1), "2")}), start, 1)

	start = m.renders()
	common := "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\ncommonAnnotations: {common: \"2\"}\n"
	want("a push to the common folder", m.commit(r, map[string]string{"common/kustomization.yaml": common}), start, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)

	start = m.renders()
	want("a push to README.md", m.commit(r, map[string]string{"README.md": "2"}), start)

	start = m.renders()
	m.commit(r, map[string]string{m.file(5): configMap(m.name(5), "3")})
	want("two pushes at once", m.commit(r, map[string]string{m.file(6): configMap(m.name(6), "3")}), start, 5, 6)
	for n, value := range map[int]string{1: "2", 5: "3", 6: "3", 7: "1", 300: "1"} {
		if data, _ := m.configMap(m.name(n)); data["k"] != value {
			t.Errorf("%s is %v, want %s", m.name(n), data, value)
		}
	}
}
