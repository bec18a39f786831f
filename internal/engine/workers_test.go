package engine_test

import (
	"testing"
	"time"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/render/pool"
)

// chartFiles is a chart with one template.
func chartFiles(template string) map[string]string {
	return map[string]string{"Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "templates/x.yaml": template}
}

const chartObject = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\n"

// A chart without end fails alone and says why; its neighbours come into step meanwhile, and it does once it is mended.
func TestAChartWithoutEndFailsAlone(t *testing.T) {
	w := newWorld(t)
	w.stop()
	w.bounds = pool.Options{CPU: 3 * time.Second, Size: 1, Patience: 200 * time.Millisecond}
	w.start()
	bad := w.repo("bad", chartFiles(chartObject+"{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}"))
	good := w.repo("good", chartFiles(chartObject))
	source := func(url string) v1alpha1.ApplicationSource {
		return v1alpha1.ApplicationSource{RepoURL: url, Path: "."}
	}
	w.app("bad", source(bad.URL()))
	w.copyProject("other")
	w.app("good", source(good.URL()), func(a *v1alpha1.Application) { a.Spec.Project = "other" })
	w.settled("good", "")
	t.Log(w.condition("bad", v1alpha1.ConditionComparisonError, "was stopped after 3s of processor time"))
	w.settled("bad", w.commit(bad, chartFiles(chartObject)))
}
