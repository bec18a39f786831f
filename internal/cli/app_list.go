package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/client"
)

type listFlags struct {
	selection
	output outputFlag
	all    bool
	watch  bool
}

func newAppList(sh *shell, s *scope) *cobra.Command {
	f := &listFlags{}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List applications, and what is not so with each",
		Example: "  lockstep app list\n  lockstep app list -A -l team=shop -o wide\n  lockstep app list --watch",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return sh.appList(cmd, s, f) },
	}
	f.selection.bind(cmd)
	f.output.bind(cmd, formatWide, formatJSON, formatYAML, formatName)
	cmd.Flags().BoolVarP(&f.all, "all-namespaces", "A", false, "in all namespaces")
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "go on with a line for every change")
	return cmd
}

func (sh *shell) appList(cmd *cobra.Command, s *scope, f *listFlags) error {
	if err := f.output.check(); err != nil {
		return err
	}
	namespace := s.namespace
	if f.all {
		namespace = ""
	}
	apps, err := s.applications()
	if err != nil {
		return err
	}
	p := &appPrinter{sh: sh, output: f.output, namespaced: f.all}
	if f.watch {
		return p.follow(cmd.Context(), apps, f.query(namespace))
	}
	list, err := apps.List(cmd.Context(), f.query(namespace))
	if err != nil {
		return err
	}
	if len(list) == 0 && (f.output.format == formatTable || f.output.format == formatWide) {
		where := "in namespace " + namespace
		if f.all {
			where = "in any namespace"
		}
		sh.note("No application %s%s.", where, selected(f.selection))
		return nil
	}
	return p.list(list)
}

func selected(f selection) string {
	if f.empty() {
		return ""
	}
	return " is selected"
}

// appPrinter prints applications as rows or documents.
type appPrinter struct {
	sh     *shell
	output outputFlag
	// namespaced shows namespace/name rather than the name.
	namespaced bool
	table      *table
}

// list prints a whole list as one result.
func (p *appPrinter) list(apps []v1alpha1.Application) error {
	list := v1alpha1.ApplicationList{Items: apps}
	list.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.ApplicationKind + "List"}
	if list.Items == nil {
		list.Items = []v1alpha1.Application{}
	}
	if done, err := p.output.encode(p.sh.Out, list); done {
		return err
	}
	p.rows(apps)
	return nil
}

// one prints a single application as a result of its own, under the table that may be there already.
func (p *appPrinter) one(app *v1alpha1.Application) error {
	if done, err := p.output.encodeNext(p.sh.Out, app); done {
		return err
	}
	p.rows([]v1alpha1.Application{*app})
	return nil
}

func (p *appPrinter) rows(apps []v1alpha1.Application) {
	if p.output.format == formatName {
		for i := range apps {
			fmt.Fprintln(p.sh.Out, client.RefOf(&apps[i]))
		}
		return
	}
	if p.table == nil {
		p.table = p.sh.newTable(p.head()...)
	}
	rows := make([][]cell, len(apps))
	for i := range apps {
		rows[i] = p.row(&apps[i])
	}
	p.table.print(rows)
}

func (p *appPrinter) head() []string {
	head := []string{"NAME", "PROJECT", "SYNC", "HEALTH", "OPERATION", "REVISION"}
	if p.output.format == formatWide {
		head = append(head, "SOURCE", "DESTINATION", "AGE")
	}
	return append(head, "CAUSE")
}

func (p *appPrinter) row(app *v1alpha1.Application) []cell {
	name := app.Name
	if p.namespaced {
		name = client.RefOf(app).String()
	}
	status := &app.Status
	phase := phaseText(app)
	if phase == v1alpha1.OperationSucceeded {
		phase = "" // quiet when fine
	}
	row := []cell{
		text(name), text(projectOf(app)),
		{orUnknown(string(status.Sync.Status)), syncTone(status.Sync.Status)},
		{orUnknown(string(status.Health.Status)), healthTone(status.Health.Status)},
		{string(phase), phaseTone(phase)},
		text(revisionText(status.Sync.Revision, status.Sync.Revisions)),
	}
	if p.output.format == formatWide {
		row = append(row, text(sourceText(app)), text(destinationText(app.Spec.Destination)), text(p.sh.age(app.CreationTimestamp.Time)))
	}
	return append(row, text(client.Cause(app)))
}
