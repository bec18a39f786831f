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
	output      outputFlag
}

func newRender(sh *shell) *cobra.Command {
	f := &renderFlags{}
	cmd := &cobra.Command{
		Use:   "render DIR | render -f application.yaml [DIR]",
		Short: "Render a folder as an application would be, without a cluster",
		Long: "Renders DIR with the tool that its files call for: Helm, Kustomize, Jsonnet or plain manifests. The repository is\n" +
			"the Git checkout that DIR lies in, or DIR itself. With -f the options are those of the Application in the file; DIR\n" +
			"is then a checkout of its repository, by default the one that the file lies in.",
		Example: "  lockstep render deploy/prod\n  lockstep render charts/web --name web --values values-prod.yaml --helm-set image.tag=1.4\n" +
			"  lockstep render -f application.yaml ~/src/shop --kube-version 1.36",
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
	place, err := f.place(app, args)
	if err != nil {
		return err
	}
	if f.name == "" && app.Name == "" {
		app.Name = filepath.Base(filepath.Join(place.root, filepath.FromSlash(place.path)))
	}
	root, done, err := tree.Open(place.root)
	if err != nil {
		return fmt.Errorf("folder %s: %w", place.root, err)
	}
	defer func() { _ = done() }()
	in := job.Input{
		Source: *app.Spec.Source, Tree: root, Path: place.path,
		AppName: app.Name, Namespace: app.Spec.Destination.Namespace,
		Capabilities: job.Capabilities{KubeVersion: f.kubeVersion, APIVersions: f.apiVersions},
		Env:          buildVariables(app, place.path),
	}
	out, err := render.Render(ctx, in)
	if err != nil {
		return err
	}
	for _, w := range out.Warnings {
		sh.note("warning: %s", w)
	}
	return sh.manifests(out.Objects, f.output)
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
	if app.Spec.Source == nil {
		app.Spec.Source = &v1alpha1.ApplicationSource{}
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
	return app, f.source.lay(app.Spec.Source)
}

// place is a folder of this machine: the root of the repository and the path of the application in it.
type place struct{ root, path string }

// place finds the folder to render. Of an Application from a file it is the source's path in the checkout.
func (f *renderFlags) place(app *v1alpha1.Application, args []string) (place, error) {
	dir := filepath.Dir(f.file)
	switch {
	case len(args) == 1:
		dir = args[0]
	case f.file == "-":
		return place{}, ofKind(errUsage, "with -f - the folder of the checkout must be named")
	}
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
		p, err := tree.Clean(app.Spec.Source.Path)
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
	switch {
	case app.Kind != v1alpha1.ApplicationKind:
		return nil, ofKind(errUsage, "%s: kind %q; an Application is needed", file, app.Kind)
	case len(app.Spec.Sources) == 1:
		app.Spec.Source = &app.Spec.Sources[0]
	case len(app.Spec.Sources) > 1:
		return nil, ofKind(errUsage, "%s: %d sources; render needs one checkout and takes one source", file, len(app.Spec.Sources))
	case app.Spec.Source == nil:
		return nil, ofKind(errUsage, "%s: spec.source is missing", file)
	}
	if app.Spec.Source.Chart != "" {
		return nil, ofKind(errUsage, "%s: chart %s lies in a Helm repository; pull it and name its folder", file, app.Spec.Source.Chart)
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
