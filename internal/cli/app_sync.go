package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/client"
)

type syncFlags struct {
	selection
	request requestFlags
	output  outputFlag
	folder  folderFlags
	async   bool
	timeout time.Duration
}

func newAppSync(sh *shell, s *scope) *cobra.Command {
	f := &syncFlags{}
	cmd := &cobra.Command{
		Use:   "sync NAME... | -l SELECTOR | --project PROJECT",
		Short: "Apply what the source says, and wait for the result",
		Long: "Asks for a sync and waits until it has ended. It does not wait for health: app wait does.\n" +
			"While another operation runs the sync is refused.",
		Example: "  lockstep app sync shop\n  lockstep app sync shop --revision v1.4.0 --prune\n" +
			"  lockstep app sync shop --resource apps:Deployment:web\n  lockstep app sync -l team=shop --async\n" +
			"  lockstep app sync shop --local ~/src/shop/deploy --dry-run",
		Args: func(_ *cobra.Command, args []string) error { return f.check(args) },
		RunE: func(cmd *cobra.Command, args []string) error { return sh.appSync(cmd, s, f, args) },
	}
	f.selection.bind(cmd)
	f.request.bind(cmd)
	f.folder.bind(cmd)
	f.output.bind(cmd, formatWide, formatJSON, formatYAML, formatName)
	cmd.Flags().BoolVar(&f.async, "async", false, "do not wait for the result")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 10*time.Minute, "how long to wait for the result; 0 is without end. The sync itself goes on")
	return cmd
}

func (sh *shell) appSync(cmd *cobra.Command, s *scope, f *syncFlags, names []string) error {
	if err := errors.Join(f.output.check(), f.request.check(), f.folder.check(&f.request)); err != nil {
		return err
	}
	apps, err := s.applications()
	if err != nil {
		return err
	}
	refs, err := f.target(cmd, apps, s, names)
	if err != nil {
		return err
	}
	if err := sh.agree(f, refs); err != nil {
		return err
	}
	ctx, stop := limit(cmd.Context(), f.timeout)
	defer stop()
	w := &syncWait{sh: sh, pending: map[client.Ref]client.Mark{}, said: map[client.Ref]string{}}
	for _, ref := range refs {
		mark, err := sh.start(ctx, s, apps, ref, f)
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("application %s: sync not asked for for certain: %w", ref, context.Cause(ctx))
		}
		if err != nil {
			w.errs = append(w.errs, err)
			continue
		}
		w.pending[ref] = mark
		w.asked = append(w.asked, ref)
	}
	if f.async || len(w.asked) == 0 {
		for _, ref := range w.asked {
			sh.note("%s: sync asked for.", ref)
		}
		return errors.Join(w.errs...)
	}
	return w.finish(ctx, apps, f.output)
}

// start asks for the sync of one application. The request takes what the application's own policy says of options.
func (sh *shell) start(ctx context.Context, s *scope, apps client.Applications, ref client.Ref, f *syncFlags) (client.Mark, error) {
	app, err := apps.Get(ctx, ref)
	if err != nil {
		return client.Mark{}, err
	}
	op, err := f.request.operation(app)
	if err != nil {
		return client.Mark{}, err
	}
	if f.folder.dir != "" {
		if err := sh.addFolder(ctx, s, f, app, op.Sync); err != nil {
			return client.Mark{}, err
		}
	}
	return apps.Start(ctx, ref, op)
}

// syncWait follows syncs that were asked for to their ends.
type syncWait struct {
	sh    *shell
	asked []client.Ref
	// pending are those without an end.
	pending map[client.Ref]client.Mark
	ended   []v1alpha1.Application
	errs    []error
	// said is the last line told of each.
	said map[client.Ref]string
	seen map[client.Ref]bool
}

// finish waits, prints the results and returns what went wrong.
func (w *syncWait) finish(ctx context.Context, apps client.Watcher, output outputFlag) error {
	w.seen = map[client.Ref]bool{}
	err := followAll(ctx, apps, w.asked, w.visit)
	if ctx.Err() != nil && err != nil {
		err = context.Cause(ctx)
		for ref := range w.pending {
			w.sh.note("%s: the sync goes on; lockstep app get %s shows it.", ref, ref)
		}
	}
	if err != nil {
		w.errs = append(w.errs, err)
	}
	if err := w.print(output); err != nil {
		return err
	}
	return errors.Join(w.errs...)
}

func (w *syncWait) visit(e client.Event) error {
	if e.Kind == client.Listed {
		for _, ref := range w.asked {
			if _, waits := w.pending[ref]; waits && !w.seen[ref] {
				w.drop(ref, fmt.Errorf("application %s: %w: it was deleted before its sync ended", ref, client.ErrNotFound))
			}
		}
		return w.more()
	}
	ref := client.RefOf(e.App)
	w.seen[ref] = true
	mark, waits := w.pending[ref]
	switch {
	case !waits:
	case e.Kind == client.Deleted:
		w.drop(ref, fmt.Errorf("application %s: %w: it was deleted before its sync ended", ref, client.ErrNotFound))
	default:
		w.look(ref, mark, e.App)
	}
	return w.more()
}

func (w *syncWait) more() error {
	if len(w.pending) == 0 {
		return client.ErrStop
	}
	return nil
}

func (w *syncWait) drop(ref client.Ref, err error) {
	delete(w.pending, ref)
	w.errs = append(w.errs, err)
}

// look takes notice of where the sync of ref stands.
func (w *syncWait) look(ref client.Ref, mark client.Mark, app *v1alpha1.Application) {
	switch mark.Stage(app) {
	case client.Waiting:
		w.say(ref, "Pending: not taken up yet")
	case client.Running:
		w.say(ref, phaseLine(app.Status.OperationState))
	case client.Replaced:
		w.drop(ref, ofKind(errReplaced, "application %s: another operation took the place of this sync; its result is not known", ref))
	case client.Ended:
		state := app.Status.OperationState
		w.say(ref, phaseLine(state))
		delete(w.pending, ref)
		w.ended = append(w.ended, *app)
		if state.Phase != v1alpha1.OperationSucceeded {
			w.errs = append(w.errs, ofKind(errSyncFailed, "application %s: the sync ended as %s: %s", ref, state.Phase, state.Message))
		}
	}
}

func phaseLine(state *v1alpha1.OperationState) string {
	if state.Message == "" {
		return string(state.Phase)
	}
	return string(state.Phase) + ": " + oneLine(state.Message)
}

// say tells a line unless it was the last one.
func (w *syncWait) say(ref client.Ref, line string) {
	if w.said[ref] != line {
		w.said[ref] = line
		w.sh.note("%s: %s", ref, line)
	}
}

// print shows what the syncs did, object by object.
func (w *syncWait) print(output outputFlag) error {
	p := &appPrinter{sh: w.sh, output: output, namespaced: true}
	switch {
	case output.format == formatName:
		p.rows(w.ended)
		return nil
	case p.documents() && len(w.asked) == 1:
		for i := range w.ended {
			if _, err := output.encode(w.sh.Out, &w.ended[i]); err != nil {
				return err
			}
		}
		return nil
	case p.documents():
		return p.list(w.ended)
	}
	for i := range w.ended {
		w.sh.results(&w.ended[i], len(w.asked) > 1)
	}
	return nil
}

// results prints what the last sync of app did.
func (sh *shell) results(app *v1alpha1.Application, named bool) {
	result := app.Status.OperationState.SyncResult
	if result == nil || len(result.Resources) == 0 {
		return
	}
	if named {
		fmt.Fprintln(sh.Out, sh.paint.as(strong, client.RefOf(app).String()))
	}
	t := sh.newTable("OBJECT", "NAMESPACE", "NAME", "RESULT", "MESSAGE")
	var rows [][]cell
	for _, r := range result.Resources {
		kind := r.Kind
		if r.Group != "" {
			kind += "." + r.Group
		}
		outcome := cell{string(r.Status), resultTone(r.Status)}
		if r.HookType != "" {
			kind += " (hook " + string(r.HookType) + ")"
			outcome = cell{string(r.HookPhase), phaseTone(r.HookPhase)}
		}
		rows = append(rows, []cell{text(kind), text(r.Namespace), text(r.Name), outcome, text(r.Message)})
	}
	t.print(rows)
}
