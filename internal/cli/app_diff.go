package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/client"
	"github.com/lockstep-cd/lockstep/internal/compare"
	"github.com/lockstep-cd/lockstep/internal/engine"
)

type diffFlags struct {
	output    outputFlag
	revisions []string
	local     string
	exitCode  bool
	sources   workshopFlags
}

func newAppDiff(sh *shell, s *scope) *cobra.Command {
	f := &diffFlags{}
	cmd := &cobra.Command{
		Use:   "diff NAME",
		Short: "Show what a sync would change",
		Long: "Renders the application's source here, asks the cluster what an apply of each object would make of it, and shows\n" +
			"the difference. Nothing is written. It needs the right to read the objects and to apply them as a dry run, and\n" +
			"git. The values of Secrets are not shown.",
		Example: "  lockstep app diff shop\n  lockstep app diff shop --revision v1.4.0 --exit-code\n" +
			"  lockstep app diff shop --revision 2:v1.4.0\n  lockstep app diff shop --local ~/src/shop/deploy",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return sh.appDiff(cmd.Context(), s, f, args[0]) },
	}
	f.output.bind(cmd, formatJSON, formatYAML, formatName)
	f.sources.bind(cmd)
	cmd.Flags().StringArrayVar(&f.revisions, "revision", nil, revisionHelp)
	cmd.Flags().StringVar(&f.local, "local", "", "folder of this machine that stands in for the application's source")
	cmd.Flags().BoolVar(&f.exitCode, "exit-code", false, fmt.Sprintf("end with %d when something differs", CodeDifferent))
	return cmd
}

func (sh *shell) appDiff(ctx context.Context, s *scope, f *diffFlags, name string) error {
	if err := f.output.check(); err != nil {
		return err
	}
	if f.local != "" && len(f.revisions) > 0 {
		return errLocalRevision()
	}
	ref, err := client.ParseRef(name, s.namespace)
	if err != nil {
		return err
	}
	apps, err := s.applications()
	if err != nil {
		return err
	}
	app, err := apps.Get(ctx, ref)
	if err != nil {
		return err
	}
	all, err := sh.compare(ctx, s, f, app)
	if err != nil {
		return err
	}
	var changes []change
	for _, d := range all {
		if d.Verdict != compare.Equal || d.Note != "" {
			changes = append(changes, changeOf(d))
		}
	}
	if err := sh.printChanges(ref, changes, len(all), f.output); err != nil {
		return err
	}
	if f.exitCode && len(changes) > 0 {
		return silentError{errDifferent}
	}
	return nil
}

// compare runs the chain here, with the project's rules and the credentials of the cluster.
func (sh *shell) compare(ctx context.Context, s *scope, f *diffFlags, app *v1alpha1.Application) ([]engine.Difference, error) {
	if f.local != "" {
		return sh.compareLocal(ctx, s, f, app)
	}
	at := *s
	at.namespace = app.Namespace
	b, err := sh.openBench(ctx, &at, f.sources)
	if err != nil {
		return nil, err
	}
	defer b.close()
	rules, err := b.access.Rules(ctx, projectOf(app))
	if err != nil {
		return nil, err
	}
	fixed, err := fixedRevisions(app, f.revisions)
	if err != nil {
		return nil, err
	}
	return b.preview.Diff(ctx, app, rules, fixed...)
}

// compareLocal does the same with a folder of this machine.
func (sh *shell) compareLocal(ctx context.Context, s *scope, f *diffFlags, app *v1alpha1.Application) ([]engine.Difference, error) {
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // the API server has fair limits of its own
	access, err := engine.NewAccess(config, app.Namespace)
	if err != nil {
		return nil, err
	}
	rules, err := access.Rules(ctx, projectOf(app))
	if err != nil {
		return nil, err
	}
	preview, err := engine.NewPreview(config, nil)
	if err != nil {
		return nil, err
	}
	caps, err := preview.Capabilities()
	if err != nil {
		return nil, err
	}
	objects, err := sh.renderLocal(ctx, app, f.local, caps, f.sources)
	if err != nil {
		return nil, err
	}
	return preview.DiffObjects(ctx, app, rules, objects)
}

// change is one object that a sync would touch. The JSON names are part of the interface.
type change struct {
	Object string   `json:"object"`
	Action string   `json:"action"`
	Origin string   `json:"origin,omitempty"`
	Paths  []string `json:"paths,omitempty"`
	Note   string   `json:"note,omitempty"`
	Live   any      `json:"live,omitempty"`
	Next   any      `json:"next,omitempty"`
	diff   string
}

// The actions of a change.
const (
	actionCreate = "create"
	actionUpdate = "update"
	actionPrune  = "prune"
)

func changeOf(d engine.Difference) change { return changeBetween(d, "live", "after a sync") }

// changeBetween is the change from one state to another, which are named in the difference.
func changeBetween(d engine.Difference, from, to string) change {
	c := change{Object: d.Key.String(), Action: actionUpdate, Origin: d.Origin.String(), Paths: d.Paths, Note: d.Note}
	switch {
	case d.Extra:
		c.Action, c.Note = actionPrune, "left the source; a sync with --prune deletes it"
	case d.Verdict == compare.Missing:
		c.Action = actionCreate
	}
	before, after := asYAML(d.Live), asYAML(d.Next)
	if d.Live != nil {
		c.Live = d.Live.Object
	}
	if d.Next != nil {
		c.Next = d.Next.Object
	}
	// An error of the writer below is impossible: it writes to a string.
	c.diff, _ = difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(before), B: difflib.SplitLines(after), FromFile: from, ToFile: to, Context: 3,
	})
	return c
}

func asYAML(u *unstructured.Unstructured) string {
	if u == nil {
		return ""
	}
	data, err := yaml.Marshal(u.Object)
	if err != nil {
		return err.Error() + "\n"
	}
	return strings.TrimSuffix(string(data), "\n")
}

func (sh *shell) printChanges(ref client.Ref, changes []change, objects int, output outputFlag) error {
	if output.format == formatName {
		for _, c := range changes {
			fmt.Fprintln(sh.Out, c.Object)
		}
		return nil
	}
	if changes == nil {
		changes = []change{} // an empty list, not null
	}
	if done, err := output.encode(sh.Out, changes); done {
		return err
	}
	if len(changes) == 0 {
		sh.note("%s: nothing differs; objects compared: %d.", ref, objects)
		return nil
	}
	for _, c := range changes {
		sh.printChange(c)
	}
	sh.note("%s: %d of %d objects differ.", ref, len(changes), objects)
	return nil
}

func (sh *shell) printChange(c change) {
	title := c.Action + " " + c.Object
	if c.Origin != "" {
		title += " (" + c.Origin + ")"
	}
	fmt.Fprintln(sh.Out, sh.paint.as(strong, title))
	if c.Note != "" {
		fmt.Fprintln(sh.Out, "  "+oneLine(c.Note))
	}
	for line := range strings.Lines(c.diff) {
		line = strings.TrimRight(line, "\n")
		tone := plain
		switch {
		case strings.HasPrefix(line, "+"):
			tone = good
		case strings.HasPrefix(line, "-"):
			tone = bad
		case strings.HasPrefix(line, "@@"):
			tone = dim
		}
		fmt.Fprintln(sh.Out, sh.paint.as(tone, line))
	}
	fmt.Fprintln(sh.Out)
}
