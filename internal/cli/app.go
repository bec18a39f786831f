package cli

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/client"
)

func newApp(sh *shell) *cobra.Command {
	s := &scope{}
	cmd := &cobra.Command{
		Use:     "app",
		Aliases: []string{"application", "apps"},
		Short:   "Look at applications and act on them",
		Args:    noSubcommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	s.bind(cmd, sh)
	cmd.AddCommand(
		newAppList(sh, s),
		newAppGet(sh, s),
		newAppDiff(sh, s),
		newAppSync(sh, s),
		newAppWait(sh, s),
		newAppTerminate(sh, s),
		newAppHistory(sh, s),
	)
	return cmd
}

// selection are the flags that select applications by what they are rather than by name.
type selection struct {
	selector string
	projects []string
}

func (f *selection) bind(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.selector, "selector", "l", "", "label selector, such as team=shop")
	cmd.Flags().StringSliceVar(&f.projects, "project", nil, "only applications of these projects")
}

func (f *selection) empty() bool { return f.selector == "" && len(f.projects) == 0 }

func (f *selection) query(namespace string) client.Query {
	return client.Query{Namespace: namespace, Selector: f.selector, Projects: f.projects}
}

// check tells whether names and flags together name anything; it is what Args of a command calls.
func (f *selection) check(names []string) error {
	switch {
	case len(names) > 0 && !f.empty():
		return ofKind(errUsage, "names and a selection exclude each other")
	case len(names) == 0 && f.empty():
		return ofKind(errUsage, "no application is named; name one, or select by --selector or --project")
	}
	return nil
}

// target is what a command acts on: names, or a selection in the scope's namespace.
func (f *selection) target(cmd *cobra.Command, apps client.Reader, s *scope, names []string) ([]client.Ref, error) {
	if len(names) > 0 {
		return s.refs(names)
	}
	list, err := apps.List(cmd.Context(), f.query(s.namespace))
	if err != nil {
		return nil, err
	}
	refs := make([]client.Ref, len(list))
	for i := range list {
		refs[i] = client.RefOf(&list[i])
	}
	if len(refs) == 0 {
		return nil, ofKind(client.ErrNotFound, "no application in namespace %s is selected", s.namespace)
	}
	return refs, nil
}

// sourceText names the place an application comes from, in one line.
func sourceText(app *v1alpha1.Application) string {
	sources := app.Spec.Sources
	if len(sources) == 0 && app.Spec.Source != nil {
		sources = []v1alpha1.ApplicationSource{*app.Spec.Source}
	}
	texts := make([]string, len(sources))
	for i, s := range sources {
		texts[i] = s.RepoURL
		switch {
		case s.Chart != "":
			texts[i] += " chart " + s.Chart
		case s.Path != "" && s.Path != ".":
			texts[i] += " " + s.Path
		}
		texts[i] += " at " + orHead(s.TargetRevision)
	}
	return strings.Join(texts, ", ")
}

func orHead(revision string) string {
	if revision == "" {
		return "HEAD"
	}
	return revision
}

// destinationText names where an application runs.
func destinationText(d v1alpha1.ApplicationDestination) string {
	cluster := d.Name
	if cluster == "" {
		cluster = d.Server
	}
	if d.Namespace == "" {
		return cluster
	}
	return cluster + " " + d.Namespace
}

// revisionText shortens commits; versions stay whole.
func revisionText(one string, several []string) string {
	if len(several) == 0 {
		several = []string{one}
	}
	short := make([]string, len(several))
	for i, r := range several {
		short[i] = r
		if len(r) == 40 && strings.Trim(r, "0123456789abcdef") == "" {
			short[i] = r[:7]
		}
	}
	return strings.Join(short, ",")
}

// phaseText is the operation of app, if one runs or waits.
func phaseText(app *v1alpha1.Application) v1alpha1.OperationPhase {
	state := app.Status.OperationState
	switch {
	case state != nil && !state.Phase.Completed():
		return state.Phase
	case app.Operation != nil:
		return "Pending"
	case state != nil:
		return state.Phase
	}
	return ""
}

// age is how long ago t was, in one or two units.
func (sh *shell) age(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return duration.HumanDuration(sh.Now().Sub(t))
}

// orUnknown is what a status says that was not written yet.
func orUnknown(s string) string {
	if s == "" {
		return "Unknown"
	}
	return s
}

func projectOf(app *v1alpha1.Application) string {
	if app.Spec.Project == "" {
		return "default"
	}
	return app.Spec.Project
}
