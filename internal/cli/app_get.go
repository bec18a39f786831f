package cli

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/client"
)

type getFlags struct {
	output  outputFlag
	watch   bool
	refresh bool
	hard    bool
}

func newAppGet(sh *shell, s *scope) *cobra.Command {
	f := &getFlags{}
	cmd := &cobra.Command{
		Use:     "get NAME",
		Short:   "Show an application: its state, why, and its objects",
		Example: "  lockstep app get shop\n  lockstep app get team-a/shop -o yaml\n  lockstep app get shop --watch",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return sh.appGet(cmd.Context(), s, f, args[0]) },
	}
	f.output.bind(cmd, formatWide, formatJSON, formatYAML, formatName)
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "go on with a line for every change")
	cmd.Flags().BoolVar(&f.refresh, "refresh", false, "ask for a new look at the source first, without waiting for it")
	cmd.Flags().BoolVar(&f.hard, "hard-refresh", false, "like --refresh, and drop what was rendered before")
	return cmd
}

func (sh *shell) appGet(ctx context.Context, s *scope, f *getFlags, name string) error {
	if err := f.output.check(); err != nil {
		return err
	}
	ref, err := client.ParseRef(name, s.namespace)
	if err != nil {
		return err
	}
	apps, err := s.applications()
	if err != nil {
		return err
	}
	if f.refresh || f.hard {
		if err := apps.Refresh(ctx, ref, f.hard); err != nil {
			return err
		}
	}
	app, err := apps.Get(ctx, ref)
	if err != nil {
		return err
	}
	p := &appPrinter{sh: sh, output: f.output}
	if f.watch {
		if !p.documents() && f.output.format != formatName {
			sh.describe(app, f.output.format == formatWide)
			fmt.Fprintln(sh.Out)
		}
		return p.follow(ctx, apps, client.Query{Namespace: ref.Namespace, Name: ref.Name})
	}
	switch f.output.format {
	case formatTable, formatWide:
		sh.describe(app, f.output.format == formatWide)
		return nil
	case formatName:
		p.rows([]v1alpha1.Application{*app})
		return nil
	}
	_, err = f.output.encode(sh.Out, app)
	return err
}

// describe prints an application for people: the verdict first, then facts, then what needs a look, then the objects.
func (sh *shell) describe(app *v1alpha1.Application, wide bool) {
	fmt.Fprintln(sh.Out, sh.verdict(app))
	if cause := client.Cause(app); cause != "" {
		fmt.Fprintln(sh.Out, oneLine(cause))
	}
	fmt.Fprintln(sh.Out)
	for _, fact := range sh.facts(app) {
		fmt.Fprintf(sh.Out, "%s %s\n", sh.paint.as(dim, fmt.Sprintf("%-12s", fact[0])), fact[1])
	}
	sh.conditions(app.Status.Conditions)
	sh.objects(app.Status.Resources, wide)
}

func (sh *shell) verdict(app *v1alpha1.Application) string {
	health, sync := app.Status.Health.Status, app.Status.Sync.Status
	return fmt.Sprintf("%s is %s and %s.",
		sh.paint.as(strong, client.RefOf(app).String()),
		sh.paint.as(healthTone(health), orUnknown(string(health))),
		sh.paint.as(syncTone(sync), orUnknown(string(sync))))
}

// facts are name and value, without those that say nothing.
func (sh *shell) facts(app *v1alpha1.Application) [][2]string {
	status := &app.Status
	health := orUnknown(string(status.Health.Status))
	if t := status.Health.LastTransitionTime; t != nil {
		health += " for " + sh.age(t.Time)
	}
	sync := orUnknown(string(status.Sync.Status))
	if r := revisionText(status.Sync.Revision, status.Sync.Revisions); r != "" {
		sync += " with " + r
	}
	if status.ReconciledAt != nil {
		sync += ", compared " + sh.age(status.ReconciledAt.Time) + " ago"
	}
	facts := [][2]string{
		{"Project", projectOf(app)},
		{"Source", sourceText(app)},
		{"Destination", destinationText(app.Spec.Destination)},
		{"Policy", policyText(app.Spec.SyncPolicy)},
		{"Sync", sync},
		{"Health", health},
		{"Operation", sh.operationText(app)},
		{"Images", strings.Join(status.Summary.Images, ", ")},
		{"URLs", strings.Join(status.Summary.ExternalURLs, ", ")},
	}
	kept := facts[:0]
	for _, f := range facts {
		if f[1] != "" {
			kept = append(kept, [2]string{f[0], oneLine(f[1])})
		}
	}
	return kept
}

func policyText(p *v1alpha1.SyncPolicy) string {
	if p == nil || p.Automated == nil || p.Automated.Enabled != nil && !*p.Automated.Enabled {
		return "synced by hand"
	}
	text := "automated"
	if p.Automated.Prune {
		text += ", prune"
	}
	if p.Automated.SelfHeal {
		text += ", self-heal"
	}
	return text
}

func (sh *shell) operationText(app *v1alpha1.Application) string {
	state := app.Status.OperationState
	switch {
	case app.Operation != nil && (state == nil || state.Phase.Completed()):
		return "Pending: asked for, not taken up yet"
	case state == nil:
		return ""
	}
	when := "since " + sh.age(state.StartedAt.Time)
	if state.FinishedAt != nil {
		when = sh.age(state.FinishedAt.Time) + " ago"
	}
	text := fmt.Sprintf("%s %s", state.Phase, when)
	if by := initiator(state.Operation.InitiatedBy); by != "" {
		text += ", by " + by
	}
	if state.RetryCount > 0 {
		text += fmt.Sprintf(", after %d retries", state.RetryCount)
	}
	if state.Message != "" {
		text += ": " + state.Message
	}
	return text
}

func initiator(by v1alpha1.OperationInitiator) string {
	if by.Username == "" && by.Automated {
		return "the automated policy"
	}
	return by.Username
}

func (sh *shell) conditions(list []v1alpha1.ApplicationCondition) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(sh.Out)
	t := sh.newTable("CONDITION", "AGE", "MESSAGE")
	rows := make([][]cell, len(list))
	for i, c := range list {
		tone := warn
		if strings.HasSuffix(string(c.Type), "Error") {
			tone = bad
		}
		since := time.Time{}
		if c.LastTransitionTime != nil {
			since = c.LastTransitionTime.Time
		}
		rows[i] = []cell{{string(c.Type), tone}, text(sh.age(since)), text(c.Message)}
	}
	t.print(rows)
}

// objects prints the objects, those that need a look first. wide adds version and wave.
func (sh *shell) objects(list []v1alpha1.ResourceStatus, wide bool) {
	if len(list) == 0 {
		return
	}
	list = append([]v1alpha1.ResourceStatus(nil), list...)
	sort.SliceStable(list, func(i, j int) bool { return urgency(&list[i]) < urgency(&list[j]) })
	fmt.Fprintln(sh.Out)
	head := []string{"OBJECT", "NAMESPACE", "NAME", "SYNC", "HEALTH"}
	if wide {
		head = append(head, "VERSION", "WAVE")
	}
	t := sh.newTable(append(head, "MESSAGE")...)
	rows := make([][]cell, len(list))
	for i := range list {
		rows[i] = objectRow(&list[i], wide)
	}
	t.print(rows)
}

func objectRow(r *v1alpha1.ResourceStatus, wide bool) []cell {
	kind := r.Kind
	if r.Group != "" {
		kind += "." + r.Group
	}
	health := v1alpha1.HealthStatus{}
	if r.Health != nil {
		health = *r.Health
	}
	message := health.Message
	if r.RequiresPruning {
		message = "left the source"
	}
	row := []cell{
		text(kind), text(r.Namespace), text(r.Name),
		{string(r.Status), syncTone(r.Status)}, {string(health.Status), healthTone(health.Status)},
	}
	if wide {
		row = append(row, text(r.Version), text(fmt.Sprint(r.SyncWave)))
	}
	return append(row, text(message))
}

// urgency orders objects: trouble, then change, then difference, then the rest.
func urgency(r *v1alpha1.ResourceStatus) int {
	if r.Health != nil {
		switch r.Health.Status {
		case v1alpha1.HealthDegraded:
			return 0
		case v1alpha1.HealthMissing:
			return 1
		case v1alpha1.HealthUnknown:
			return 2
		case v1alpha1.HealthProgressing:
			return 3
		}
	}
	if r.Status == v1alpha1.SyncOutOfSync {
		return 4
	}
	return 5
}
