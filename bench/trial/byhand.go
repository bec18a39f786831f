package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-cd/lockstep/bench/kube"
	"github.com/lockstep-cd/lockstep/bench/observe"
	"github.com/lockstep-cd/lockstep/bench/report"
	"github.com/lockstep-cd/lockstep/bench/workload"
	"github.com/lockstep-cd/lockstep/test/local"
)

const (
	// handName is the name of the application that is synced by hand, of its project and of its repository.
	handName = "by-hand"
	// byHandLimit bounds one sync by hand.
	byHandLimit = time.Minute
	// allVersion is the version of the push to all applications; change uses the one before.
	allVersion = workload.FirstVersion + 2
)

// byHand pushes a commit that changes every application, and syncs one other application by hand again and again while they
// come into step. The time of a sync runs from before it is asked for until it has succeeded.
func (r *running) byHand(ctx context.Context) ([]report.Measure, error) {
	if err := r.makeByHand(ctx); err != nil {
		return nil, err
	}
	if err := r.quiet(ctx); err != nil {
		return nil, err
	}
	r.say("push a change of all %d applications, and sync another one by hand meanwhile", r.Spec.Applications)
	began, err := r.pushAll(ctx)
	if err != nil {
		return nil, err
	}
	done := make(chan pushed, 1)
	go func() { // ends with the observer or with ctx
		bounded, cancel := context.WithTimeout(ctx, r.Limit)
		defer cancel()
		at, err := r.observer.InStep(bounded)
		done <- pushed{at, err}
	}()
	var took []float64
	for {
		one, err := r.syncByHand(ctx, len(took))
		if err != nil {
			return nil, err
		}
		took = append(took, one.Seconds())
		select {
		case end := <-done:
			if end.err != nil {
				return nil, fmt.Errorf("push to all: %w; %s", end.err, r.observer.Progress().Waiting)
			}
			return byHandMeasures(r.Spec.Applications, took, end.at.Sub(began)), nil
		default:
		}
	}
}

// pushed is how a push to all applications ended.
type pushed struct {
	at  time.Time
	err error
}

func byHandMeasures(applications int, took []float64, push time.Duration) []report.Measure {
	return []report.Measure{
		{
			Name: fmt.Sprintf("sync by hand beside a push to %d applications", applications), Unit: "s", Value: new(slices.Max(took)),
			Later: &report.Target{Max: 2, Below: true},
			Note:  fmt.Sprintf("the slowest of %d, one after the other until the push was in step; median %.2f s", len(took), percentile(took, 50)),
		},
		{Name: fmt.Sprintf("push to %d applications → in step", applications), Unit: "s", Value: new(push.Seconds())},
	}
}

// makeByHand makes the other application, in a project and with a repository of its own, and waits until it was compared.
func (r *running) makeByHand(ctx context.Context) error {
	repo, err := r.git.Create(handName, map[string]string{"cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: by-hand}\ndata: {k: v}\n"})
	if err != nil {
		return fmt.Errorf("repository: %w", err)
	}
	all := []any{map[string]any{"server": "*", "namespace": "*"}}
	project := map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": map[string]any{"name": handName},
		"spec": map[string]any{"sourceRepos": []any{"*"}, "destinations": all},
	}
	app := map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": map[string]any{"name": handName},
		"spec": map[string]any{
			"project": handName, "source": map[string]any{"repoURL": repo.URL(), "path": ".", "targetRevision": "main"},
			"destination": map[string]any{"server": "https://kubernetes.default.svc", "namespace": r.Spec.Namespace(0)},
		},
	}
	namespace := "/apis/argoproj.io/v1alpha1/namespaces/" + r.Spec.ControlNamespace
	for path, object := range map[string]map[string]any{namespace + "/appprojects": project, namespace + "/applications": app} {
		body, err := json.Marshal(object)
		if err != nil {
			return err
		}
		if err := r.cluster.client.Post().AbsPath(path).Body(body).Do(ctx).Error(); err != nil {
			return fmt.Errorf("%s: create: %w", path, err)
		}
	}
	return until(ctx, pace{20 * time.Millisecond, byHandLimit}, func(ctx context.Context) error {
		st, err := r.statusByHand(ctx)
		if err == nil && st.Status.Sync.Status != "OutOfSync" {
			err = fmt.Errorf("application %s is not compared yet", handName)
		}
		return err
	})
}

// pushAll changes every application in one commit and announces it; it answers when.
func (r *running) pushAll(ctx context.Context) (time.Time, error) {
	files, all := map[string]string{}, make([]int, r.Spec.Applications)
	for i := range all {
		all[i] = i
		some, err := r.Spec.Files(i, allVersion)
		if err != nil {
			return time.Time{}, err
		}
		for name, text := range some {
			files[name] = text
		}
	}
	before, err := r.repo.Resolve("refs/heads/main")
	if err != nil {
		return time.Time{}, err
	}
	after, err := r.repo.CommitTo("all", files, "all: another version")
	if err != nil {
		return time.Time{}, fmt.Errorf("repository: commit: %w", err)
	}
	if err := r.observer.Expect(ctx, observe.Expected{Applications: all, Version: allVersion, Revision: after}); err != nil {
		return time.Time{}, err
	}
	if err := r.repo.SetBranch("main", after); err != nil {
		return time.Time{}, fmt.Errorf("repository: push: %w", err)
	}
	sent := time.Now()
	return sent, r.lockstep.Announce(ctx, local.Push{Repository: r.Spec.RepoURL, Branch: "main", Before: before, After: after})
}

// statusOfHand is what is read of the application that is synced by hand.
type statusOfHand struct {
	Operation *struct{} `json:"operation"`
	Status    struct {
		Sync struct {
			Status string `json:"status"`
		} `json:"sync"`
		OperationState struct {
			Phase     string `json:"phase"`
			Message   string `json:"message"`
			Operation struct {
				Info []struct {
					Value string `json:"value"`
				} `json:"info"`
			} `json:"operation"`
		} `json:"operationState"`
	} `json:"status"`
}

func (r *running) statusByHand(ctx context.Context) (st statusOfHand, err error) {
	text, err := r.cluster.client.Get().AbsPath(kube.Applications(r.Spec.ControlNamespace) + "/" + handName).Do(ctx).Raw()
	if err == nil {
		err = json.Unmarshal(text, &st)
	}
	return st, err
}

// syncByHand asks for a sync and waits until that one has succeeded.
func (r *running) syncByHand(ctx context.Context, n int) (time.Duration, error) {
	mark := fmt.Sprintf("sync %d", n)
	patch := fmt.Sprintf(`{"operation":{"sync":{},"info":[{"name":"bench","value":%q}],"initiatedBy":{"username":"bench"}}}`, mark)
	began := time.Now()
	err := r.cluster.client.Patch(types.MergePatchType).AbsPath(kube.Applications(r.Spec.ControlNamespace) + "/" + handName).
		Body([]byte(patch)).Do(ctx).Error()
	if err != nil {
		return 0, fmt.Errorf("application %s: sync: %w", handName, err)
	}
	err = until(ctx, pace{10 * time.Millisecond, byHandLimit}, func(ctx context.Context) error {
		st, err := r.statusByHand(ctx)
		if err != nil {
			return err
		}
		op := st.Status.OperationState
		if len(op.Operation.Info) == 0 || op.Operation.Info[0].Value != mark || op.Phase != "Succeeded" {
			return fmt.Errorf("application %s: the sync is %s: %s", handName, op.Phase, op.Message)
		}
		return nil
	})
	return time.Since(began), err
}
