package kustomize_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/render/kustomize"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

const edited = `-- app/kustomization.yaml --
resources: [dep.yaml, svc.yaml]
images:
- {name: nginx, newName: mirror/nginx, newTag: "1.21"}
- {name: busybox, newTag: "2.0"}
replicas:
- {name: web, count: 2}
commonAnnotations: {owner: base}
labels:
- pairs: {tier: front}
-- app/patch.yaml --
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: NodePort}
-- parts/a/kustomization.yaml --
kind: Component
nameSuffix: -part
-- app/svc.yaml --
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80}]
-- app/dep.yaml --
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers: [{name: i, image: "busybox:1"}]
      containers: [{name: c, image: "nginx:1"}, {name: d, image: "host:5000/d"}]
`

func TestOptionsEqualKustomizeEdit(t *testing.T) {
	const digest = "sha256:24a0c4b4a4c0eb97a1aabb8e29f18e917d05abfe1b7a7c07857230879ce7d3d3"
	env := map[string]string{"ARGOCD_APP_NAME": "shop", "ARGOCD_APP_REVISION": "abc123"}
	for name, c := range map[string]struct {
		options v1alpha1.ApplicationSourceKustomize
		// edits are commands of kustomize edit, their words separated by spaces; more is appended to the file after them.
		edits []string
		more  string
	}{
		"nothing": {},
		"names":   {v1alpha1.ApplicationSourceKustomize{NamePrefix: "a-", NameSuffix: "-z", Namespace: "team"}, []string{"set nameprefix -- a-", "set namesuffix -- -z", "set namespace team"}, ""},
		"images": {
			v1alpha1.ApplicationSourceKustomize{Images: []v1alpha1.KustomizeImage{"nginx:1.27", "busybox=mirror/busybox@" + digest, "host:5000/d=other"}},
			[]string{"set image nginx:1.27 busybox=mirror/busybox@" + digest + " host:5000/d=other"}, "",
		},
		"image with tag and digest": {
			v1alpha1.ApplicationSourceKustomize{Images: []v1alpha1.KustomizeImage{"nginx=n:1@" + digest}}, []string{"set image nginx=n:1@" + digest}, "",
		},
		"image that keeps": {
			v1alpha1.ApplicationSourceKustomize{Images: []v1alpha1.KustomizeImage{"nginx=*:9", "host:5000/d=x:*"}}, []string{"set image nginx=*:9 host:5000/d=x:*"}, "",
		},
		"image with variable": {
			v1alpha1.ApplicationSourceKustomize{Images: []v1alpha1.KustomizeImage{"nginx:$ARGOCD_APP_REVISION"}}, []string{"set image nginx:abc123"}, "",
		},
		"replicas": {
			v1alpha1.ApplicationSourceKustomize{Replicas: []v1alpha1.KustomizeReplica{{Name: "web", Count: intstr.FromString("6")}}},
			[]string{"set replicas web=6"}, "",
		},
		"labels": {
			v1alpha1.ApplicationSourceKustomize{CommonLabels: map[string]string{"app.kubernetes.io/part-of": "$ARGOCD_APP_NAME", "quoted": `"true"`}},
			[]string{`add label app.kubernetes.io/part-of:shop quoted:"true"`}, "",
		},
		"labels without selector": {
			v1alpha1.ApplicationSourceKustomize{CommonLabels: map[string]string{"a": "b"}, LabelWithoutSelector: true},
			[]string{"add label --without-selector a:b"}, "",
		},
		"labels in templates": {
			v1alpha1.ApplicationSourceKustomize{CommonLabels: map[string]string{"a": "b"}, LabelWithoutSelector: true, LabelIncludeTemplates: true},
			[]string{"add label --without-selector --include-templates a:b"}, "",
		},
		"forced labels": {
			v1alpha1.ApplicationSourceKustomize{CommonLabels: map[string]string{"tier": "back"}, LabelWithoutSelector: true, ForceCommonLabels: true},
			[]string{"add label --force --without-selector tier:back"}, "",
		},
		"annotations": {
			v1alpha1.ApplicationSourceKustomize{CommonAnnotations: map[string]string{"plain": "$ARGOCD_APP_NAME"}},
			[]string{"add annotation plain:$ARGOCD_APP_NAME"}, "",
		},
		"annotations with variables, forced": {
			v1alpha1.ApplicationSourceKustomize{CommonAnnotations: map[string]string{"owner": "$ARGOCD_APP_NAME"}, CommonAnnotationsEnvsubst: true, ForceCommonAnnotations: true},
			[]string{"add annotation --force owner:shop"}, "",
		},
		"components": {
			v1alpha1.ApplicationSourceKustomize{Components: []string{"../parts/a", "../parts/none"}, IgnoreMissingComponents: true},
			[]string{"add component ../parts/a"}, "",
		},
		"patches": {
			v1alpha1.ApplicationSourceKustomize{Patches: []v1alpha1.KustomizePatch{
				{Path: "patch.yaml"},
				{
					Patch:   "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: new}\n",
					Target:  &v1alpha1.KustomizeSelector{KustomizeResId: v1alpha1.KustomizeResId{KustomizeGvk: v1alpha1.KustomizeGvk{Group: "apps", Kind: "Deployment"}, Name: "web"}},
					Options: map[string]bool{"allowNameChange": true},
				},
				{Patch: `[{"op":"add","path":"/spec/paused","value":true}]`, Target: &v1alpha1.KustomizeSelector{KustomizeResId: v1alpha1.KustomizeResId{KustomizeGvk: v1alpha1.KustomizeGvk{Kind: "Deployment"}}, LabelSelector: "tier!=back"}},
			}},
			nil, `patches:
- path: patch.yaml
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: new}
  target: {group: apps, kind: Deployment, name: web}
  options: {allowNameChange: true}
- patch: '[{"op":"add","path":"/spec/paused","value":true}]'
  target: {kind: Deployment, labelSelector: tier!=back}
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := parseArchive(edited)
			dir := onDisk(t, files)
			app := filepath.Join(dir, "app")
			for _, edit := range c.edits {
				if _, err := run(t, app, append([]string{"edit"}, strings.Fields(edit)...)...); err != nil {
					t.Fatal(err)
				}
			}
			appendTo(t, filepath.Join(app, "kustomization.yaml"), c.more)
			want, err := run(t, dir, "build", "app")
			if err != nil {
				t.Fatal(err)
			}
			source := v1alpha1.ApplicationSource{Kustomize: &c.options}
			got, _, err := kustomize.Build(t.Context(), job.Input{Source: source, Tree: files, Path: "app", Env: env}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func appendTo(t *testing.T, file, text string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(data, text...), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestOptionErrors(t *testing.T) {
	for want, options := range map[string]v1alpha1.ApplicationSourceKustomize{
		"spec.source.kustomize.commonLabels: tier is set in the kustomization already; spec.source.kustomize.forceCommonLabels overrides it": {
			CommonLabels: map[string]string{"tier": "x"}, LabelWithoutSelector: true,
		},
		"spec.source.kustomize.commonAnnotations: owner is set in the kustomization already; spec.source.kustomize.forceCommonAnnotations overrides it": {
			CommonAnnotations: map[string]string{"owner": "x"},
		},
		"spec.source.kustomize.labelIncludeTemplates needs labelWithoutSelector": {
			CommonLabels: map[string]string{"a": "x"}, LabelIncludeTemplates: true,
		},
		`spec.source.kustomize.images: "nginx" is not of the form [old=]name:tag, [old=]name@digest or old=name`: {
			Images: []v1alpha1.KustomizeImage{"nginx"},
		},
		`spec.source.kustomize.replicas: count "many" of web is not a number`: {
			Replicas: []v1alpha1.KustomizeReplica{{Name: "web", Count: intstr.FromString("many")}},
		},
		"spec.source.kustomize.patches: option force is not known; there are allowNameChange and allowKindChange": {
			Patches: []v1alpha1.KustomizePatch{{Path: "patch.yaml", Options: map[string]bool{"force": true}}},
		},
		"components: ../parts/none is not in the source": {Components: []string{"../parts/none"}},
		"patches: none.yaml is not in the source":        {Patches: []v1alpha1.KustomizePatch{{Path: "none.yaml"}}},
	} {
		source := v1alpha1.ApplicationSource{Kustomize: &options}
		_, err := kustomize.Render(t.Context(), job.Input{Source: source, Tree: parseArchive(edited), Path: "app"}, nil)
		if err == nil || err.Error() != "app/kustomization.yaml: "+want {
			t.Errorf("error is %v\nwant app/kustomization.yaml: %s", err, want)
		}
	}
}

func TestOtherVersionIsSaid(t *testing.T) {
	source := v1alpha1.ApplicationSource{Kustomize: &v1alpha1.ApplicationSourceKustomize{Version: "v4.5.7"}}
	out, err := kustomize.Render(t.Context(), job.Input{Source: source, Tree: parseArchive(edited), Path: "app"}, nil)
	want := []string{"spec.source.kustomize.version: v4.5.7 is not available, the build is that of v5.8.2"}
	if diff := cmp.Diff(want, out.Warnings); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// The destination namespace is no option of Kustomize: it is put on objects later, and only on those that have none.
func TestC005NamespaceAndSubjects(t *testing.T) {
	files := archive(t, "C005-namespace")
	out, err := kustomize.Render(t.Context(), job.Input{Tree: files, Path: "app", Namespace: "other-ns"}, nil)
	if err != nil || len(out.Objects) != 2 {
		t.Fatalf("%d objects, %v", len(out.Objects), err)
	}
	binding, account := out.Objects[1], out.Objects[0]
	if account.GetKind() != "ServiceAccount" {
		binding, account = account, binding
	}
	if account.GetNamespace() != "team-a" || binding.GetNamespace() != "" {
		t.Errorf("namespaces are %q and %q", account.GetNamespace(), binding.GetNamespace())
	}
	var namespaces []string
	for _, s := range binding.Object["subjects"].([]any) {
		namespaces = append(namespaces, s.(map[string]any)["namespace"].(string))
	}
	if diff := cmp.Diff([]string{"team-a", "ops"}, namespaces); diff != "" {
		t.Error(diff)
	}
	if binding.Origin.File != "app/kustomization.yaml" || out.Type != v1alpha1.SourceTypeKustomize {
		t.Errorf("origin %s, type %s", binding.Origin, out.Type)
	}
}

// What a build reads is asked for when it is needed: nothing else of a large repository is touched.
func TestBuildReadsOnlyItsFiles(t *testing.T) {
	files := parseArchive(edited)
	counting := &counter{FS: files, read: map[string]bool{}}
	if _, err := kustomize.Render(t.Context(), job.Input{Tree: counting, Path: "app"}, nil); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"app/kustomization.yaml": true, "app/dep.yaml": true, "app/svc.yaml": true}
	if diff := cmp.Diff(want, counting.read); diff != "" {
		t.Error(diff)
	}
}

type counter struct {
	tree.FS
	read map[string]bool
}

func (c *counter) ReadFile(name string) ([]byte, error) {
	c.read[name] = true
	return c.FS.ReadFile(name)
}
