package cli

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/client"
)

type waitFlags struct {
	selection
	output  outputFlag
	wants   wants
	timeout time.Duration
}

// wants is what is waited for. The zero value wants sync, health and no operation.
type wants struct {
	sync, health, operation, deleted bool
}

func newAppWait(sh *shell, s *scope) *cobra.Command {
	f := &waitFlags{}
	cmd := &cobra.Command{
		Use:   "wait NAME... | -l SELECTOR | --project PROJECT",
		Short: "Wait until applications are in step and healthy",
		Long: "Waits until each application is Synced, is Healthy, and runs no operation; --sync, --health and --operation wait\n" +
			"for those only. A status that was made from another source than the application has now does not count.",
		Example: "  lockstep app wait shop\n  lockstep app wait -l team=shop --health --timeout 5m",
		Args:    func(_ *cobra.Command, args []string) error { return f.check(args) },
		RunE:    func(cmd *cobra.Command, args []string) error { return sh.appWait(cmd, s, f, args) },
	}
	f.selection.bind(cmd)
	f.output.bind(cmd, formatWide, formatJSON, formatYAML, formatName)
	cmd.Flags().BoolVar(&f.wants.sync, "sync", false, "wait until it is Synced")
	cmd.Flags().BoolVar(&f.wants.health, "health", false, "wait until it is Healthy")
	cmd.Flags().BoolVar(&f.wants.operation, "operation", false, "wait until no operation runs or waits")
	cmd.Flags().BoolVar(&f.wants.deleted, "delete", false, "wait until it is gone")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 10*time.Minute, "how long to wait; 0 is without end")
	return cmd
}

func (sh *shell) appWait(cmd *cobra.Command, s *scope, f *waitFlags, names []string) error {
	if err := f.output.check(); err != nil {
		return err
	}
	if f.wants.deleted && (f.wants.sync || f.wants.health || f.wants.operation) {
		return ofKind(errUsage, "--delete excludes --sync, --health and --operation")
	}
	apps, err := s.applications()
	if err != nil {
		return err
	}
	refs, err := f.target(cmd, apps, s, names)
	if err != nil {
		return err
	}
	if f.wants == (wants{}) {
		f.wants = wants{sync: true, health: true, operation: true}
	}
	ctx, stop := limit(cmd.Context(), f.timeout)
	defer stop()
	w := &stateWait{sh: sh, wants: f.wants, latest: map[client.Ref]*v1alpha1.Application{}, said: map[client.Ref]string{}}
	w.open = map[client.Ref]bool{}
	for _, ref := range refs {
		w.open[ref] = true
	}
	err = followAll(ctx, apps, refs, w.visit)
	if err != nil && ctx.Err() != nil {
		err = w.late(context.Cause(ctx))
	}
	if printErr := w.print(f.output, len(refs)); printErr != nil {
		return printErr
	}
	return err
}

// stateWait follows applications until they are as wanted. One that is so and ceases to be so is waited for again.
type stateWait struct {
	sh    *shell
	wants wants
	// open are those that are not as wanted, or not seen yet.
	open   map[client.Ref]bool
	latest map[client.Ref]*v1alpha1.Application
	said   map[client.Ref]string
	// listed is set once everything that exists was seen.
	listed bool
}

func (w *stateWait) visit(e client.Event) error {
	if e.Kind == client.Listed {
		w.listed = true
		for ref := range w.open {
			if w.latest[ref] != nil {
				continue
			}
			if !w.wants.deleted {
				return fmt.Errorf("application %s: %w", ref, client.ErrNotFound)
			}
			delete(w.open, ref)
		}
		return w.more()
	}
	ref := client.RefOf(e.App)
	if _, ours := w.said[ref]; !ours && !w.open[ref] {
		return nil
	}
	if e.Kind == client.Deleted {
		delete(w.latest, ref)
		if !w.wants.deleted {
			return fmt.Errorf("application %s: %w: it was deleted meanwhile", ref, client.ErrNotFound)
		}
		delete(w.open, ref)
		return w.more()
	}
	w.latest[ref] = e.App
	missing := w.wants.missing(e.App)
	w.say(ref, e.App, missing)
	if missing == "" {
		delete(w.open, ref)
	} else {
		w.open[ref] = true
	}
	return w.more()
}

// more ends the wait when nothing is open. With several namespaces each is listed by itself; what was not seen is open.
func (w *stateWait) more() error {
	if len(w.open) == 0 {
		return client.ErrStop
	}
	return nil
}

// missing says what is not as wanted; empty when all is.
func (w wants) missing(app *v1alpha1.Application) string {
	var list []string
	if w.deleted {
		list = append(list, "there")
	}
	if w.operation {
		if _, busy := client.Busy(app); busy {
			list = append(list, "an operation is "+string(phaseText(app)))
		}
	}
	status := &app.Status
	if w.sync && !client.InStep(app) {
		if status.Sync.Status == v1alpha1.SyncSynced {
			list = append(list, "compared with an earlier spec")
		} else {
			list = append(list, orUnknown(string(status.Sync.Status)))
		}
	}
	if w.health && status.Health.Status != v1alpha1.HealthHealthy {
		list = append(list, orUnknown(string(status.Health.Status)))
	}
	return strings.Join(list, ", ")
}

func (w *stateWait) say(ref client.Ref, app *v1alpha1.Application, missing string) {
	line := "as wanted"
	if missing != "" {
		line = "waits: " + missing
		if cause := client.Cause(app); cause != "" {
			line += ": " + oneLine(cause)
		}
	}
	if w.said[ref] != line {
		w.said[ref] = line
		w.sh.note("%s: %s", ref, line)
	}
}

// late says what is still missing when the time is over, by the worst of it.
func (w *stateWait) late(cause error) error {
	if !errors.Is(cause, errTimeout) {
		return cause
	}
	kind := errTimeout
	var lines []string
	for ref := range w.open {
		state := "not seen"
		if app := w.latest[ref]; app != nil {
			state = w.wants.missing(app)
			if w.wants.health && app.Status.Health.Status == v1alpha1.HealthDegraded {
				kind = errDegraded
			}
		}
		lines = append(lines, fmt.Sprintf("%s (%s)", ref, state))
	}
	sort.Strings(lines)
	return ofKind(kind, "%v: %s", cause, strings.Join(lines, ", "))
}

func (w *stateWait) print(output outputFlag, asked int) error {
	list := make([]v1alpha1.Application, 0, len(w.latest))
	for _, app := range w.latest {
		list = append(list, *app)
	}
	if len(list) == 0 {
		return nil
	}
	sort.Slice(list, func(i, j int) bool {
		return client.RefOf(&list[i]).String() < client.RefOf(&list[j]).String()
	})
	p := &appPrinter{sh: w.sh, output: output, namespaced: asked > 1}
	if p.documents() && asked == 1 {
		_, err := output.encode(w.sh.Out, &list[0])
		return err
	}
	return p.list(list)
}
