package spec_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/spec"
)

// What works with the original tools is no fault.
func TestGoodFields(t *testing.T) {
	factor := int64(1)
	good := v1alpha1.ApplicationSpec{
		Destination: v1alpha1.ApplicationDestination{Namespace: "team-a"},
		SyncPolicy: &v1alpha1.SyncPolicy{
			Retry: &v1alpha1.RetryStrategy{Limit: -1, Backoff: &v1alpha1.Backoff{Duration: "5", MaxDuration: "3m", Factor: &factor}},
			ManagedNamespaceMetadata: &v1alpha1.ManagedNamespaceMetadata{
				Labels: map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}, Annotations: map[string]string{"Example.com/Note": strings.Repeat("long ", 2000)},
			},
		},
		Sources: []v1alpha1.ApplicationSource{{
			RepoURL: "https://example.com/a.git", Path: "/apps/web", Helm: &v1alpha1.ApplicationSourceHelm{
				ReleaseName: "web-$ARGOCD_APP_NAME", ValueFiles: []string{"$vals/env/*.yaml", "https://example.com/a?b=[c", "values.yaml"},
				Values: strings.Repeat("a: b\n", 10000), KubeVersion: "v1.30", Version: "v3",
			},
		}, {
			RepoURL: "https://example.com/b.git", Path: ".", Kustomize: &v1alpha1.ApplicationSourceKustomize{
				Images:       []v1alpha1.KustomizeImage{"nginx:1.2", "old=registry:5000/new:1", "a=b", "web@sha256:00", "x:$ARGOCD_APP_REVISION"},
				Replicas:     []v1alpha1.KustomizeReplica{{Name: "web", Count: intstr.FromString("3")}},
				CommonLabels: map[string]string{"rev": "$ARGOCD_APP_REVISION_SHORT", "quoted": `"yes"`},
				Patches:      []v1alpha1.KustomizePatch{{Path: "p.yaml", Target: &v1alpha1.KustomizeSelector{LabelSelector: "a in (b,c)"}, Options: map[string]bool{"allowKindChange": true}}},
			},
		}, {
			RepoURL: "https://example.com/c.git", Path: "x", Directory: &v1alpha1.ApplicationSourceDirectory{Include: "{a,b}/*.yaml", Exclude: "[a-c]?.json"},
		}},
	}
	if err := spec.Check(good); err != nil {
		t.Error(err)
	}
	if r := spec.Remarks(good); len(r) > 0 {
		t.Error(r)
	}
}

func TestMisfit(t *testing.T) {
	object := func(source any) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": "x"}, "spec": map[string]any{"project": "p", "sources": []any{map[string]any{"repoURL": "u"}, source}}}
	}
	for want, source := range map[string]any{
		"": map[string]any{"repoURL": "u", "helm": map[string]any{"valuesObject": map[string]any{"a": []any{int64(1)}}}},
		"spec.sources[1]: is text; a mapping is expected":                                    "u",
		"spec.sources[1].repoURL: is a number; text is expected":                             map[string]any{"repoURL": int64(1)},
		"spec.sources[1].helm.parameters[0].forceString: is text; true or false is expected": map[string]any{"helm": map[string]any{"parameters": []any{map[string]any{"forceString": "yes"}}}},
		"spec.sources[1].kustomize.commonLabels[team]: is a list; text is expected":          map[string]any{"kustomize": map[string]any{"commonLabels": map[string]any{"team": []any{}}}},
		"spec.sources[1].kustomize.patches[0].target.kind: is a boolean; text is expected":   map[string]any{"kustomize": map[string]any{"patches": []any{map[string]any{"target": map[string]any{"kind": true}}}}},
	} {
		err := spec.Misfit(object(source))
		if got := errText(err); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
