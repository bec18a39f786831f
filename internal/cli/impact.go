package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/client"
	"github.com/lockstep-cd/lockstep/internal/engine"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/project"
)

type impactFlags struct {
	repo, from, to string
	file           string
	anyRevision    bool
	everywhere     bool
	exitCode       bool
	kubeVersion    string
	apiVersions    []string
	sources        workshopFlags
	output         outputFlag
}

func newImpact(sh *shell) *cobra.Command {
	f, s := &impactFlags{}, &scope{}
	cmd := &cobra.Command{
		Use:   "impact --repo URL --from REVISION --to REVISION",
		Short: "Show which applications a range of commits changes, and what in each",
		Long: "Renders the applications of a repository here, as they are declared at one commit and at another, and shows the\n" +
			"objects and fields that differ. An application that reads nothing of what the commits change is rendered once, and\n" +
			"not shown. Applications are those of the namespace in the cluster, with the rules of their projects and the\n" +
			"credentials of its repositories; or with -f those of a file, without a cluster.\n" +
			"What an application follows counts when it is at --from or at --to; --any-revision takes the range for all of them.\n" +
			"Nothing is written. The values of Secrets are not shown.",
		Example: "  lockstep impact --repo https://git.example/shop.git --from main --to pr-17\n" +
			"  lockstep impact --repo https://git.example/shop.git --from 4be0c11 --to HEAD -f applications.yaml -o json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return sh.impact(cmd.Context(), s, f) },
	}
	s.bind(cmd, sh)
	f.output.bind(cmd, formatJSON, formatYAML, formatName)
	f.sources.bind(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.repo, "repo", "", "URL of the repository")
	flags.StringVar(&f.from, "from", "", "branch, tag or commit before the change")
	flags.StringVar(&f.to, "to", "", "branch, tag or commit after the change")
	flags.StringVarP(&f.file, "file", "f", "", "file with Applications to look at instead of those in the cluster; - reads standard input")
	flags.BoolVar(&f.anyRevision, "any-revision", false, "also of applications that follow another revision of the repository")
	flags.BoolVar(&f.everywhere, "everywhere", false, "also look at applications of other repositories, whose sources may name this one; renders all of them")
	flags.BoolVar(&f.exitCode, "exit-code", false, fmt.Sprintf("end with %d when an application changes", CodeDifferent))
	flags.StringVar(&f.kubeVersion, "kube-version", "", "version of Kubernetes that charts see (default the cluster's; with -f that of the Helm library)")
	flags.StringSliceVar(&f.apiVersions, "api-versions", nil, "APIs that charts see, such as monitoring.coreos.com/v1 (default the cluster's)")
	return cmd
}

func (sh *shell) impact(ctx context.Context, s *scope, f *impactFlags) error {
	if err := f.output.check(); err != nil {
		return err
	}
	for name, value := range map[string]string{"repo": f.repo, "from": f.from, "to": f.to} {
		if value == "" {
			return ofKind(errUsage, "--%s is missing; --repo, --from and --to say which commits", name)
		}
	}
	w, err := openWorkshop(f.sources)
	if err != nil {
		return err
	}
	defer w.close()
	o := engine.ImpactOptions{Repository: f.repo, From: f.from, To: f.to, AnyRevision: f.anyRevision, Everywhere: f.everywhere}
	var apps []v1alpha1.Application
	if f.file != "" {
		apps, err = f.fromFile(sh)
		o.Rules = func(context.Context, string) (project.Rules, error) { return project.Anything(), nil }
	} else {
		apps, err = sh.fromCluster(ctx, s, w, &o)
	}
	if err != nil {
		return err
	}
	if f.kubeVersion != "" {
		o.Capabilities.KubeVersion = f.kubeVersion
	}
	if len(f.apiVersions) > 0 {
		o.Capabilities.APIVersions = f.apiVersions
	}
	found, err := engine.FindImpacts(ctx, w.sources, apps, o)
	if err != nil {
		return err
	}
	return sh.printImpacts(found, f)
}

// fromFile reads Applications; other kinds in the file are passed over.
func (f *impactFlags) fromFile(sh *shell) ([]v1alpha1.Application, error) {
	data, err := sh.readFile(f.file)
	if err != nil {
		return nil, err
	}
	objects, _, err := manifest.Parse(f.file, data, manifest.Options{})
	if err != nil {
		return nil, err
	}
	var apps []v1alpha1.Application
	for _, o := range objects {
		if o.GetKind() != v1alpha1.ApplicationKind {
			continue
		}
		text, err := o.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Origin, err)
		}
		app, err := parseApplication(o.Origin.String(), text)
		if err != nil {
			return nil, err
		}
		apps = append(apps, *app)
	}
	if len(apps) == 0 {
		return nil, ofKind(errUsage, "%s: holds no Application", f.file)
	}
	return apps, nil
}

// fromCluster lists the applications, and takes rules, credentials and capabilities from the cluster.
func (sh *shell) fromCluster(ctx context.Context, s *scope, w *workshop, o *engine.ImpactOptions) ([]v1alpha1.Application, error) {
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // the API server has fair limits of its own
	reader, err := s.applications()
	if err != nil {
		return nil, err
	}
	apps, err := reader.List(ctx, client.Query{Namespace: s.namespace})
	if err != nil {
		return nil, err
	}
	access, err := engine.NewAccess(config, s.namespace)
	if err != nil {
		return nil, err
	}
	o.Rules = access.Rules
	if err := access.Repositories(ctx, w.sources.Repositories); apierrors.IsForbidden(err) {
		sh.note("You may not read the Secrets of repositories, so only public ones can be reached.")
	} else if err != nil {
		return nil, err
	}
	o.Capabilities, err = access.Capabilities()
	return apps, err
}

// impacted is an application in the result. The JSON names are part of the interface.
type impacted struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Changes are the objects that differ; an empty list says that what it reads changes and what it declares does not.
	Changes []change `json:"changes"`
	Error   string   `json:"error,omitempty"`
}

type impactResult struct {
	Repository   string     `json:"repository"`
	From         string     `json:"from"`
	To           string     `json:"to"`
	Applications []impacted `json:"applications"`
}

func (sh *shell) printImpacts(found engine.Impacts, f *impactFlags) error {
	result := impactResult{Repository: f.repo, From: found.From, To: found.To, Applications: []impacted{}}
	changed, failed := 0, 0
	for _, i := range found.Concerned {
		one := impacted{Namespace: i.App.Namespace, Name: i.App.Name, Changes: []change{}}
		for _, d := range i.Changes {
			c := changeBetween(d, "before", "after")
			if d.Extra {
				c.Note = ""
			}
			one.Changes = append(one.Changes, c)
		}
		if len(one.Changes) > 0 {
			changed++
		}
		if i.Err != nil {
			one.Error = i.Err.Error()
			failed++
		}
		result.Applications = append(result.Applications, one)
	}
	if done, err := f.output.encode(sh.Out, result); err != nil {
		return err
	} else if !done {
		sh.showImpacts(result, f.output.format == formatName)
	}
	sh.note("%s", impactSummary(found, changed, failed))
	switch {
	case failed > 0:
		return fmt.Errorf("applications that can not be rendered: %d", failed)
	case f.exitCode && changed > 0:
		return silentError{errDifferent}
	}
	return nil
}

func (sh *shell) showImpacts(r impactResult, names bool) {
	for _, app := range r.Applications {
		name := client.Ref{Namespace: app.Namespace, Name: app.Name}.String()
		if app.Namespace == "" {
			name = app.Name
		}
		if names {
			if len(app.Changes) > 0 {
				fmt.Fprintln(sh.Out, name)
			}
			continue
		}
		fmt.Fprintln(sh.Out, sh.paint.as(strong, "application "+name))
		if app.Error != "" {
			fmt.Fprintln(sh.Out, "  "+sh.paint.as(bad, oneLine(app.Error)))
		} else if len(app.Changes) == 0 {
			fmt.Fprintln(sh.Out, "  reads what changes and declares the same")
		}
		for _, c := range app.Changes {
			if len(c.Paths) > 0 {
				c.Note = strings.Join(c.Paths, ", ")
			}
			sh.printChange(c)
		}
	}
}

func impactSummary(found engine.Impacts, changed, failed int) string {
	total := len(found.Concerned) + len(found.Elsewhere) + found.Others
	text := fmt.Sprintf("%.7s..%.7s changes %d of %d applications.", found.From, found.To, changed, total)
	if n := len(found.Elsewhere); n > 0 {
		text += fmt.Sprintf(" %d follow another revision of the repository (--any-revision looks at them too).", n)
	}
	if failed > 0 {
		text += fmt.Sprintf(" %d can not be rendered.", failed)
	}
	return text
}
