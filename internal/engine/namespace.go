package engine

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/plan"
)

// createNamespace makes syncs make the destination namespace, with the metadata that the policy gives it.
const createNamespace = "CreateNamespace=true"

// namespaceMetadata is what the policy gives the destination namespace; nil when it gives nothing.
func namespaceMetadata(app *v1alpha1.Application) *v1alpha1.ManagedNamespaceMetadata {
	if app.Spec.SyncPolicy == nil {
		return nil
	}
	return app.Spec.SyncPolicy.ManagedNamespaceMetadata
}

// givenMetadata is what the last sync gave the namespace. It stands in the custom resource: nothing else tells that there are
// labels of ours to take away again.
func givenMetadata(last *v1alpha1.OperationState) *v1alpha1.ManagedNamespaceMetadata {
	if last != nil && last.SyncResult != nil {
		return last.SyncResult.ManagedNamespaceMetadata
	}
	return nil
}

// namespaceDiffers tells that the policy gives the namespace other metadata than the last sync did, so that the application
// is out of step (contract §1.3). A namespace that is declared as an object has the metadata of its manifest.
func (l *look) namespaceDiffers(last *v1alpha1.OperationState) bool {
	if !l.makesNamespace(syncOptions(l.app, &v1alpha1.SyncOperation{})) {
		return false
	}
	return !sameJSON(orNone(namespaceMetadata(l.app)), orNone(givenMetadata(last)))
}

func (l *look) makesNamespace(opts plan.Set) bool {
	name := l.app.Spec.Destination.Namespace
	if !opts.Has(createNamespace) || name == "" || l.set == nil {
		return false
	}
	_, declared := l.set.byKey[manifest.Key{Kind: "Namespace", Name: name}]
	return !declared
}

// given is the metadata of the namespace as this operation leaves it.
func (r *running) given(l *look) *v1alpha1.ManagedNamespaceMetadata {
	if r.op.Sync.DryRun || !l.makesNamespace(syncOptions(l.app, r.op.Sync)) {
		return givenMetadata(l.app.Status.OperationState)
	}
	meta := namespaceMetadata(l.app)
	if meta == nil && givenMetadata(l.app.Status.OperationState) != nil {
		return orNone(nil) // not forgotten: taking away what was given may fail and be tried again
	}
	return meta
}

func orNone(meta *v1alpha1.ManagedNamespaceMetadata) *v1alpha1.ManagedNamespaceMetadata {
	if meta == nil {
		return &v1alpha1.ManagedNamespaceMetadata{}
	}
	return meta
}
