package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/client"
	"github.com/lockstep-cd/lockstep/internal/engine"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// maxLocal is the size of the manifests that an operation takes, in bytes: the API server's database takes 1.5 MB in all.
const maxLocal = 1 << 20

// folderFlags name a folder of this machine that is synced in place of the source.
type folderFlags struct {
	dir     string
	yes     bool
	sources workshopFlags
}

func (f *folderFlags) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dir, "local", "", "folder of this machine that is rendered here and applied in place of the source; the values of Secrets are not sent")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask before --local deletes what the folder does not declare")
	f.sources.bind(cmd)
}

func (f *folderFlags) check(r *requestFlags) error {
	if f.dir != "" && len(r.revisions) > 0 {
		return errLocalRevision()
	}
	return nil
}

// agree asks before a folder decides about more than one application, or about what is deleted.
func (sh *shell) agree(f *syncFlags, refs []client.Ref) error {
	switch {
	case f.folder.dir == "":
		return nil
	case len(refs) != 1:
		return ofKind(errUsage, "--local: a folder stands for the source of one application, and %d are chosen", len(refs))
	case !f.request.prune || f.request.dryRun:
		return nil
	}
	return sh.confirm(f.folder.yes, fmt.Sprintf("what application %s has and %s does not declare will be deleted", refs[0], f.folder.dir))
}

// addFolder lays what the folder renders to into the request.
func (sh *shell) addFolder(ctx context.Context, s *scope, f *syncFlags, app *v1alpha1.Application, sync *v1alpha1.SyncOperation) error {
	config, err := s.config()
	if err != nil {
		return err
	}
	preview, err := engine.NewPreview(config, nil)
	if err != nil {
		return err
	}
	caps, err := preview.Capabilities()
	if err != nil {
		return err
	}
	objects, err := sh.renderLocal(ctx, app, f.folder.dir, caps, f.folder.sources)
	if err != nil {
		return err
	}
	sync.Manifests, err = sh.localManifests(objects, sync.Resources)
	return err
}

func errLocalRevision() error {
	return ofKind(errUsage, "--local and --revision exclude each other: a folder has no revisions")
}

// renderLocal renders a folder of this machine in place of the application's source, with the options of that source and as
// the cluster is.
func (sh *shell) renderLocal(ctx context.Context, app *v1alpha1.Application, dir string, caps job.Capabilities, w workshopFlags) ([]manifest.Object, error) {
	app = app.DeepCopy()
	switch source := app.Spec.Source; {
	case len(app.Spec.Sources) > 1:
		return nil, ofKind(errUsage, "--local: application %s has %d sources, and a folder can stand for one", app.Name, len(app.Spec.Sources))
	case app.Spec.SourceHydrator != nil, source == nil && len(app.Spec.Sources) == 0:
		return nil, ofKind(errUsage, "--local: application %s has no source that a folder can stand for", app.Name)
	case source != nil && source.Chart != "":
		source.Chart, source.RepoURL = "", "" // the folder is the chart
	}
	f := &renderFlags{workshop: w}
	objects, warnings, err := f.local(ctx, app, dir, caps)
	for _, text := range warnings {
		sh.note("warning: %s", text)
	}
	return objects, err
}

// localManifests are the objects as an operation takes them. The values of Secrets stay here: everybody who may read the
// application could read them.
func (sh *shell) localManifests(objects []manifest.Object, only []v1alpha1.SyncOperationResource) ([]string, error) {
	var out []string
	size := 0
	for _, o := range objects {
		k := o.Key()
		if !chosen(only, k) {
			continue
		}
		body := o.Object
		if k.Group == "" && k.Kind == "Secret" {
			sh.note("%s: it is left as it is; the values of a Secret are not sent.", k)
			bare := &unstructured.Unstructured{Object: map[string]any{}}
			bare.SetGroupVersionKind(o.GroupVersionKind())
			bare.SetNamespace(k.Namespace)
			bare.SetName(k.Name)
			body = bare.Object
		}
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		size += len(text)
		out = append(out, string(text))
	}
	switch {
	case len(out) == 0:
		return nil, ofKind(errUsage, "--local: the folder declares none of the objects")
	case size > maxLocal:
		return nil, ofKind(errUsage, "--local: the manifests have %.1f MB, and an operation takes 1 MB; choose some of them by --resource", float64(size)/(1<<20))
	}
	return out, nil
}

func chosen(only []v1alpha1.SyncOperationResource, k manifest.Key) bool {
	for _, r := range only {
		if r.Group == k.Group && r.Kind == k.Kind && r.Name == k.Name && (r.Namespace == "" || k.Namespace == "" || r.Namespace == k.Namespace) {
			return true
		}
	}
	return len(only) == 0
}

// confirm asks the person at the terminal; without one, the flag has to say yes.
func (sh *shell) confirm(yes bool, question string) error {
	switch {
	case yes:
		return nil
	case !sh.Terminal || sh.In == nil:
		return ofKind(errUsage, "%s; say --yes if that is what you want", question)
	}
	fmt.Fprintf(sh.Err, "%s. Go on? [y/N] ", question)
	answer, err := bufio.NewReader(sh.In).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
		return nil
	}
	if err != nil && answer == "" {
		sh.note("")
	}
	return errors.New("nothing was asked for")
}
