package v1alpha1

// SyncPolicy says when and how an application is synced.
type SyncPolicy struct {
	// Automated turns automatic sync on by its presence.
	Automated *SyncPolicyAutomated `json:"automated,omitempty"`
	// SyncOptions such as CreateNamespace=true; exact strings.
	SyncOptions SyncOptions `json:"syncOptions,omitempty"`
	// Retry of failed syncs.
	Retry *RetryStrategy `json:"retry,omitempty"`
	// ManagedNamespaceMetadata is put on the namespace that CreateNamespace=true makes.
	ManagedNamespaceMetadata *ManagedNamespaceMetadata `json:"managedNamespaceMetadata,omitempty"`
}

// SyncOptions is a list of options.
type SyncOptions []string

// SyncPolicyAutomated are the rules of automatic sync.
type SyncPolicyAutomated struct {
	// Prune deletes what left the source.
	Prune bool `json:"prune,omitempty"`
	// SelfHeal puts back what was changed in the cluster.
	SelfHeal bool `json:"selfHeal,omitempty"`
	// AllowEmpty permits to prune everything.
	AllowEmpty bool `json:"allowEmpty,omitempty"`
	// Enabled false switches automatic sync off and keeps the rest; absent means true.
	Enabled *bool `json:"enabled,omitempty"`
}

// RetryStrategy says how often a failed sync is tried again.
type RetryStrategy struct {
	// Limit of retries; -1 is without end.
	Limit int64 `json:"limit,omitempty"`
	// Backoff between retries.
	Backoff *Backoff `json:"backoff,omitempty"`
	// Refresh retries with the newest revision rather than the one that failed.
	Refresh bool `json:"refresh,omitempty"`
}

// Backoff grows from Duration by Factor up to MaxDuration. Bare numbers are seconds.
type Backoff struct {
	Duration    string `json:"duration,omitempty"`
	Factor      *int64 `json:"factor,omitempty"`
	MaxDuration string `json:"maxDuration,omitempty"`
}

// ManagedNamespaceMetadata are labels and annotations of the destination namespace.
type ManagedNamespaceMetadata struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Operation is a request to act on an application.
type Operation struct {
	Sync        *SyncOperation     `json:"sync,omitempty"`
	InitiatedBy OperationInitiator `json:"initiatedBy,omitempty"`
	Info        []*Info            `json:"info,omitempty"`
	Retry       RetryStrategy      `json:"retry,omitempty"`
}

// OperationInitiator is who asked.
type OperationInitiator struct {
	Username  string `json:"username,omitempty"`
	Automated bool   `json:"automated,omitempty"`
}

// SyncOperation is a request to sync.
type SyncOperation struct {
	// Revision to sync to; empty takes the one of the spec.
	Revision string `json:"revision,omitempty"`
	// Prune deletes what left the source.
	Prune bool `json:"prune,omitempty"`
	// DryRun changes nothing.
	DryRun       bool                    `json:"dryRun,omitempty"`
	SyncStrategy *SyncStrategy           `json:"syncStrategy,omitempty"`
	Resources    []SyncOperationResource `json:"resources,omitempty"`
	// Source overrides that of the spec (rollback).
	Source *ApplicationSource `json:"source,omitempty"`
	// Manifests replace the rendering (local sync).
	Manifests             []string            `json:"manifests,omitempty"`
	SyncOptions           SyncOptions         `json:"syncOptions,omitempty"`
	Sources               []ApplicationSource `json:"sources,omitempty"`
	Revisions             []string            `json:"revisions,omitempty"`
	SelfHealAttemptsCount int64               `json:"autoHealAttemptsCount,omitempty"`
}

// SyncOperationResource selects one object of a sync.
type SyncOperationResource struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

// SyncStrategy is apply (no hooks) or hook (default).
type SyncStrategy struct {
	Apply *SyncStrategyApply `json:"apply,omitempty"`
	Hook  *SyncStrategyHook  `json:"hook,omitempty"`
}

// SyncStrategyApply applies without hooks.
type SyncStrategyApply struct {
	// Force deletes and creates objects that can not be updated.
	Force bool `json:"force,omitempty"`
}

// SyncStrategyHook applies with hooks.
type SyncStrategyHook struct {
	SyncStrategyApply `json:",inline"`
}
