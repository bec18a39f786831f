package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// requestFlags say how to sync.
type requestFlags struct {
	revisions  []string
	prune      bool
	dryRun     bool
	force      bool
	strategy   string
	resources  []string
	options    []string
	retryLimit int64
}

const (
	strategyHook  = "hook"
	strategyApply = "apply"
)

func (r *requestFlags) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&r.revisions, "revision", nil, revisionHelp)
	flags.BoolVar(&r.prune, "prune", false, "delete what left the source")
	flags.BoolVar(&r.dryRun, "dry-run", false, "ask the API server what would happen, change nothing")
	flags.BoolVar(&r.force, "force", false, "delete and create objects that can not be updated")
	flags.StringVar(&r.strategy, "strategy", strategyHook, "hook: hooks run; apply: they do not")
	flags.StringArrayVar(&r.resources, "resource", nil, "only this object, GROUP:KIND:NAME or GROUP:KIND:NAMESPACE/NAME; may be given several times")
	flags.StringArrayVar(&r.options, "sync-option", nil, "such as Replace=true, instead of the application's own options; may be given several times")
	flags.Int64Var(&r.retryLimit, "retry-limit", 0, "how often to try again; -1 is without end (default as the application says)")
}

func (r *requestFlags) check() error {
	if r.strategy != strategyHook && r.strategy != strategyApply {
		return ofKind(errUsage, "--strategy %s: it is %s or %s", r.strategy, strategyHook, strategyApply)
	}
	if r.retryLimit < -1 {
		return ofKind(errUsage, "--retry-limit %d: it is -1 or more", r.retryLimit)
	}
	_, err := parseResources(r.resources)
	return err
}

// operation is the request as the application's operation field takes it.
func (r *requestFlags) operation(app *v1alpha1.Application) (v1alpha1.Operation, error) {
	resources, err := parseResources(r.resources)
	if err != nil {
		return v1alpha1.Operation{}, err
	}
	revisions, err := fixedRevisions(app, r.revisions)
	if err != nil {
		return v1alpha1.Operation{}, err
	}
	sync := &v1alpha1.SyncOperation{
		Prune: r.prune, DryRun: r.dryRun, Resources: resources, SyncOptions: r.options,
	}
	if len(app.Spec.Sources) > 0 {
		sync.Revisions = revisions
	} else if len(revisions) > 0 {
		sync.Revision = revisions[0]
	}
	apply := v1alpha1.SyncStrategyApply{Force: r.force}
	if r.strategy == strategyApply {
		sync.SyncStrategy = &v1alpha1.SyncStrategy{Apply: &apply}
	} else {
		sync.SyncStrategy = &v1alpha1.SyncStrategy{Hook: &v1alpha1.SyncStrategyHook{SyncStrategyApply: apply}}
	}
	op := v1alpha1.Operation{Sync: sync}
	if policy := app.Spec.SyncPolicy; policy != nil {
		if len(r.options) == 0 {
			sync.SyncOptions = policy.SyncOptions
		}
		if policy.Retry != nil {
			op.Retry = *policy.Retry
		}
	}
	if r.retryLimit != 0 {
		op.Retry.Limit = r.retryLimit
	}
	return op, nil
}

func parseResources(texts []string) ([]v1alpha1.SyncOperationResource, error) {
	var list []v1alpha1.SyncOperationResource
	for _, text := range texts {
		parts := strings.Split(text, ":")
		if len(parts) != 3 || parts[1] == "" || parts[2] == "" {
			return nil, ofKind(errUsage, "--resource %s: it is GROUP:KIND:NAME, such as apps:Deployment:web or :Service:web", text)
		}
		r := v1alpha1.SyncOperationResource{Group: parts[0], Kind: parts[1], Name: parts[2]}
		if namespace, name, both := strings.Cut(parts[2], "/"); both {
			r.Namespace, r.Name = namespace, name
		}
		list = append(list, r)
	}
	return list, nil
}
