package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/client"
	"github.com/lockstep-cd/lockstep/internal/engine"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/render"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

type renderFlags struct {
	file        string
	name        string
	namespace   string
	kubeVersion string
	apiVersions []string
	source      sourceFlags
	workshop    workshopFlags
	output      outputFlag
}

func newRender(sh *shell) *cobra.Command {
	f := &renderFlags{}
	cmd := &cobra.Command{
		Use:   "render DIR | render -f application.yaml [DIR]",
		Short: "Render a folder as an application would be, without a cluster",
		Long: "Renders DIR with the tool that its files call for: Helm, Kustomize, Jsonnet or plain manifests. The repository is\n" +
			"the Git checkout that DIR lies in, or DIR itself. With -f the options are those of the Application in the file, and\n" +
			"its sources are fetched; with DIR, a checkout of its repository, that is read instead.\n" +
			"Chart dependencies and remote bases are fetched as far as no credentials are needed.",
		Example: "  lockstep render deploy/prod\n  lockstep render charts/web --name web --values values-prod.yaml --helm-set image.tag=1.4\n" +
			"  lockstep render -f application.yaml\n  lockstep render -f application.yaml ~/src/shop --kube-version 1.36",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 0 && f.file == "" {
				return ofKind(errUsage, "it takes one folder, or -f application.yaml")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return sh.render(cmd.Context(), f, args) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.file, "file", "f", "", "file with an Application whose source is rendered; - reads standard input")
	flags.StringVar(&f.name, "name", "", "name of the application, and by default of a Helm release (default the folder's)")
	flags.StringVarP(&f.namespace, "namespace", "n", "", "namespace of the destination (default \"default\")")
	flags.StringVar(&f.kubeVersion, "kube-version", "", "version of Kubernetes that charts see (default that of the Helm library)")
	flags.StringSliceVar(&f.apiVersions, "api-versions", nil, "APIs that charts see, such as monitoring.coreos.com/v1")
	f.source.bind(cmd)
	f.workshop.bind(cmd)
	f.output.bind(cmd, formatYAML, formatJSON, formatName)
	return cmd
}

func (sh *shell) render(ctx context.Context, f *renderFlags, args []string) error {
	if err := f.output.check(); err != nil {
		return err
	}
	app, err := f.application(sh)
	if err != nil {
		return err
	}
	caps := job.Capabilities{KubeVersion: f.kubeVersion, APIVersions: f.apiVersions}
	var objects []manifest.Object
	var warnings []string
	if len(args) == 1 {
		objects, warnings, err = f.local(ctx, app, args[0], caps)
	} else {
		objects, warnings, err = f.remote(ctx, app, caps)
	}
	if err != nil {
		return err
	}
	for _, w := range warnings {
		sh.note("warning: %s", w)
	}
	return sh.manifests(objects, f.output)
}

// remote renders the sources that the application names.
func (f *renderFlags) remote(ctx context.Context, app *v1alpha1.Application, caps job.Capabilities) ([]manifest.Object, []string, error) {
	w, err := openWorkshop(f.workshop)
	if err != nil {
		return nil, nil, err
	}
	defer w.close()
	out, err := engine.Render(ctx, w.sources, app, caps)
	return out.Objects, out.Warnings, err
}

// local renders a folder of this machine.
func (f *renderFlags) local(ctx context.Context, app *v1alpha1.Application, dir string, caps job.Capabilities) ([]manifest.Object, []string, error) {
	source, err := f.singleSource(app)
	if err != nil {
		return nil, nil, err
	}
	place, err := f.place(source, dir)
	if err != nil {
		return nil, nil, err
	}
	if app.Name == "" {
		app.Name = filepath.Base(filepath.Join(place.root, filepath.FromSlash(place.path)))
	}
	root, done, err := tree.Open(place.root)
	if err != nil {
		return nil, nil, fmt.Errorf("folder %s: %w", place.root, err)
	}
	defer func() { _ = done() }()
	fetch := &lateFetcher{flags: f.workshop, app: app}
	defer fetch.close()
	out, err := render.Render(ctx, job.Input{
		Source: *source, Tree: root, Path: place.path, AppName: app.Name, Namespace: app.Spec.Destination.Namespace,
		Capabilities: caps, Env: buildVariables(app, source, place.path, caps), Fetch: fetch,
	})
	return out.Objects, out.Warnings, err
}

// application is what is rendered: the one of the file, or one made of the flags.
func (f *renderFlags) application(sh *shell) (*v1alpha1.Application, error) {
	app := &v1alpha1.Application{}
	if f.file != "" {
		data, err := sh.readFile(f.file)
		if err != nil {
			return nil, err
		}
		if app, err = parseApplication(f.file, data); err != nil {
			return nil, err
		}
	}
	if f.name != "" {
		app.Name = f.name
	}
	if f.namespace != "" {
		app.Spec.Destination.Namespace = f.namespace
	}
	if app.Spec.Destination.Namespace == "" {
		app.Spec.Destination.Namespace = "default"
	}
	for i := range app.Spec.Sources {
		if err := f.source.lay(&app.Spec.Sources[i]); err != nil {
			return nil, err
		}
	}
	if app.Spec.Source == nil {
		app.Spec.Source = &v1alpha1.ApplicationSource{}
	}
	return app, f.source.lay(app.Spec.Source)
}

// singleSource is the source that a folder can stand for.
func (f *renderFlags) singleSource(app *v1alpha1.Application) (*v1alpha1.ApplicationSource, error) {
	source := app.Spec.Source
	switch {
	case len(app.Spec.Sources) > 1:
		return nil, ofKind(errUsage, "%s: %d sources; a folder can stand for one; leave it out to fetch them", f.file, len(app.Spec.Sources))
	case len(app.Spec.Sources) == 1:
		source = &app.Spec.Sources[0]
	}
	if source.Chart != "" {
		return nil, ofKind(errUsage, "%s: chart %s lies in a Helm repository; leave the folder out to fetch it", f.file, source.Chart)
	}
	return source, nil
}

// place is a folder of this machine: the root of the repository and the path of the application in it.
type place struct{ root, path string }

// place finds the folder to render: dir, or the source's path in the checkout that dir lies in.
func (f *renderFlags) place(source *v1alpha1.ApplicationSource, dir string) (place, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return place{}, err
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return place{}, fmt.Errorf("folder %s: %w", dir, client.ErrNotFound)
	case err != nil:
		return place{}, fmt.Errorf("folder %s: %w", dir, err)
	case !info.IsDir():
		return place{}, ofKind(errUsage, "%s: it is a file; name the folder it lies in", dir)
	}
	root := checkout(abs)
	if f.file != "" {
		p, err := tree.Clean(source.Path)
		return place{root: root, path: p}, err
	}
	rel, err := filepath.Rel(root, abs)
	return place{root: root, path: filepath.ToSlash(rel)}, err
}

// checkout is the folder with .git that dir lies in; without one it is dir.
func checkout(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return dir
		}
	}
}

// parseApplication reads the one Application of a file.
func parseApplication(file string, data []byte) (*v1alpha1.Application, error) {
	app := &v1alpha1.Application{}
	if err := yaml.UnmarshalStrict(data, app); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if app.Kind != v1alpha1.ApplicationKind {
		return nil, ofKind(errUsage, "%s: kind %q; an Application is needed", file, app.Kind)
	}
	if app.Spec.Source == nil && len(app.Spec.Sources) == 0 && app.Spec.SourceHydrator == nil {
		return nil, ofKind(errUsage, "%s: spec.source is missing", file)
	}
	return app, nil
}

// manifests prints objects: YAML documents by default.
func (sh *shell) manifests(objects []manifest.Object, output outputFlag) error {
	switch output.format {
	case formatName:
		for _, o := range objects {
			fmt.Fprintln(sh.Out, o.Key())
		}
		return nil
	case formatJSON:
		items := make([]any, len(objects))
		for i, o := range objects {
			items[i] = o.Object
		}
		_, err := output.encode(sh.Out, map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
		return err
	}
	output.format = formatYAML
	for _, o := range objects {
		if _, err := output.encodeNext(sh.Out, o.Object); err != nil {
			return err
		}
	}
	return nil
}
