package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/client"
	"github.com/lockstep-cd/lockstep/internal/compare"
	"github.com/lockstep-cd/lockstep/internal/engine"
)

type shadowFlags struct {
	scope
	selection
	output  outputFlag
	sources workshopFlags
}

func newShadow(sh *shell) *cobra.Command {
	f := &shadowFlags{}
	cmd := &cobra.Command{
		Use:   "shadow [NAME... | -l SELECTOR | --project PROJECT]",
		Short: "Compare Lockstep with the Argo CD that runs, without writing anything",
		Long: "Renders each application here, at the revision that Argo CD compared last, and reports whether that is what Argo CD has\n" +
			"applied, what a sync by Lockstep would change and prune, and the health that Lockstep sees beside the one that Argo CD\n" +
			"reports. Without names it looks at all applications of the namespace. Nothing is written; it needs the right to read\n" +
			"the objects and to apply them as a dry run, and git. The values of Secrets are not shown.\n\n" +
			"RENDERING is equal, different, or unknown where Argo CD has applied nothing yet. CHANGES and PRUNES count objects. An\n" +
			"application differs when its rendering does, when anything would be changed or pruned, when its health is another, or\n" +
			"when it can't be compared. One that is OutOfSync in Argo CD differs too: sync it there first. Exit codes: 0 none\n" +
			"differs, 1 some differ, 6 there is none.",
		Example: "  lockstep shadow -n argocd\n  lockstep shadow shop -n argocd -o json",
		RunE:    func(cmd *cobra.Command, args []string) error { return sh.shadow(cmd, f, args) },
	}
	f.scope.bind(cmd, sh)
	f.selection.bind(cmd)
	f.output.bind(cmd, formatJSON, formatYAML)
	f.sources.bind(cmd)
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 && f.empty() {
			return nil
		}
		return f.check(args)
	}
	return cmd
}

func (sh *shell) shadow(cmd *cobra.Command, f *shadowFlags, args []string) error {
	if err := f.output.check(); err != nil {
		return err
	}
	ctx := cmd.Context()
	apps, err := f.applications()
	if err != nil {
		return err
	}
	refs, err := f.target(cmd, apps, &f.scope, args)
	if err != nil {
		return err
	}
	b, err := sh.openBench(ctx, &f.scope, f.sources)
	if err != nil {
		return err
	}
	defer b.close()
	// One that can't be compared is a finding, not the end of the report.
	reports := make([]shadowReport, len(refs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(shadowAtOnce)
	for i, ref := range refs {
		group.Go(func() (err error) {
			app, err := apps.Get(ctx, ref)
			if err == nil {
				reports[i] = b.shadow(ctx, app)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := cmd.Context().Err(); err != nil { // the reports hold it as a finding
		return err
	}
	return sh.printShadows(reports, f.output)
}

// shadowAtOnce bounds the applications that are looked at at a time.
const shadowAtOnce = 4

// shadowReport is what shadow says of an application. The JSON names are part of the interface.
type shadowReport struct {
	Application string   `json:"application"`
	Revisions   []string `json:"revisions"`
	// Rendering is equal, different or unknown.
	Rendering string `json:"rendering"`
	// Rendered are the objects that are rendered another way, with the fields.
	Rendered []shadowObject `json:"renderedDifferently"`
	Changes  []change       `json:"changes"`
	Prunes   []string       `json:"prunes"`
	Sync     pairOf         `json:"sync"`
	Health   pairOf         `json:"health"`
	// Problem says why the application can't be compared.
	Problem string `json:"problem,omitempty"`
	Differs bool   `json:"differs"`
}

type shadowObject struct {
	Object string   `json:"object"`
	Paths  []string `json:"paths"`
}

// pairOf is what the two systems say.
type pairOf struct {
	Lockstep string `json:"lockstep"`
	ArgoCD   string `json:"argocd"`
}

func (b *bench) shadow(ctx context.Context, app *v1alpha1.Application) shadowReport {
	r := shadowReport{
		Application: client.RefOf(app).String(), Rendering: "unknown", Differs: true,
		Revisions: []string{}, Rendered: []shadowObject{}, Changes: []change{}, Prunes: []string{},
	}
	r.Sync.ArgoCD, r.Health.ArgoCD = string(app.Status.Sync.Status), string(app.Status.Health.Status)
	rules, err := b.access.Rules(ctx, projectOf(app))
	if err != nil {
		r.Problem = err.Error()
		return r
	}
	s, err := b.preview.Shadow(ctx, app, rules)
	if err != nil {
		r.Problem = err.Error()
		return r
	}
	r.take(s)
	return r
}

func (r *shadowReport) take(s engine.Shadow) {
	r.Revisions = append(r.Revisions, s.Revisions...)
	switch s.Rendering {
	case compare.Alike:
		r.Rendering = "equal"
	case compare.Unlike:
		r.Rendering = "different"
	}
	for _, d := range s.Objects {
		switch {
		case d.Extra:
			r.Prunes = append(r.Prunes, d.Key.String())
		case d.Verdict != compare.Equal || d.Note != "":
			r.Changes = append(r.Changes, changeOf(d))
		}
		if d.Rendering == compare.Unlike {
			r.Rendered = append(r.Rendered, shadowObject{d.Key.String(), d.Unlike})
		}
	}
	r.Sync.Lockstep, r.Health.Lockstep = string(s.Sync), string(s.Health.Status)
	r.Differs = s.Rendering == compare.Unlike || len(r.Changes)+len(r.Prunes) > 0 || r.Health.Lockstep != r.Health.ArgoCD
}

func (sh *shell) printShadows(reports []shadowReport, output outputFlag) error {
	differ := 0
	for i := range reports {
		if reports[i].Differs {
			differ++
		}
	}
	done, err := output.encode(sh.Out, reports)
	if err != nil {
		return err
	}
	if !done {
		t := sh.newTable("APPLICATION", "RENDERING", "CHANGES", "PRUNES", "HEALTH", "DIFFERS")
		rows := make([][]cell, len(reports))
		for i := range reports {
			rows[i] = reports[i].row()
		}
		t.print(rows)
		sh.note("%d of %d applications differ.", differ, len(reports))
	}
	if differ > 0 {
		return silentError{errDiffers}
	}
	return nil
}

func (r *shadowReport) row() []cell {
	verdict, tone := "no", good
	if r.Differs {
		verdict, tone = r.why(), warn
	}
	health := r.Health.Lockstep
	if r.Health.Lockstep != r.Health.ArgoCD {
		health = r.Health.Lockstep + ", Argo CD " + r.Health.ArgoCD
	}
	return []cell{
		text(r.Application), text(r.Rendering), text(fmt.Sprint(len(r.Changes))), text(fmt.Sprint(len(r.Prunes))), text(health), {verdict, tone},
	}
}

// why names the first objects that make the application differ.
func (r *shadowReport) why() string {
	if r.Problem != "" {
		return r.Problem
	}
	var parts []string
	for _, c := range r.Changes {
		parts = append(parts, strings.TrimSpace(c.Action+" "+c.Object+" "+strings.Join(c.Paths, " ")))
	}
	for _, p := range r.Prunes {
		parts = append(parts, "prune "+p)
	}
	for _, o := range r.Rendered {
		parts = append(parts, "rendered differently: "+o.Object+" "+strings.Join(o.Paths, " "))
	}
	const most = 3
	if len(parts) > most {
		parts = append(parts[:most], fmt.Sprintf("%d more", len(parts)-most))
	}
	if len(parts) == 0 {
		return "yes"
	}
	return strings.Join(parts, "; ")
}
