package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ApplicationStatus is what is known of an application.
type ApplicationStatus struct {
	Resources []ResourceStatus `json:"resources,omitempty"`
	Sync      SyncStatus       `json:"sync,omitempty"`
	Health    AppHealthStatus  `json:"health,omitempty"`
	// History of deployments, oldest first.
	History    []RevisionHistory      `json:"history,omitempty"`
	Conditions []ApplicationCondition `json:"conditions,omitempty"`
	// ReconciledAt is when the application was last compared with the newest revision.
	ReconciledAt   *metav1.Time    `json:"reconciledAt,omitempty"`
	OperationState *OperationState `json:"operationState,omitempty"`
	// ObservedAt is deprecated.
	ObservedAt  *metav1.Time            `json:"observedAt,omitempty"`
	SourceType  ApplicationSourceType   `json:"sourceType,omitempty"`
	Summary     ApplicationSummary      `json:"summary,omitempty"`
	SourceTypes []ApplicationSourceType `json:"sourceTypes,omitempty"`
	// ResourceHealthSource is appTree when the health of single objects is served by the API only.
	ResourceHealthSource ResourceHealthLocation `json:"resourceHealthSource,omitempty"`
	ControllerNamespace  string                 `json:"controllerNamespace,omitempty"`
	SourceHydrator       *SourceHydratorStatus  `json:"sourceHydrator,omitempty"`
}

// ResourceHealthLocation says where the health of single objects is found.
type ResourceHealthLocation string

// The locations.
const (
	ResourceHealthInline  ResourceHealthLocation = ""
	ResourceHealthAppTree ResourceHealthLocation = "appTree"
)

// ApplicationSourceType is the tool that renders a source.
type ApplicationSourceType string

// The tools.
const (
	SourceTypeHelm      ApplicationSourceType = "Helm"
	SourceTypeKustomize ApplicationSourceType = "Kustomize"
	SourceTypeDirectory ApplicationSourceType = "Directory"
	SourceTypePlugin    ApplicationSourceType = "Plugin"
)

// SyncStatusCode says whether cluster and source agree.
type SyncStatusCode string

// The codes.
const (
	SyncUnknown   SyncStatusCode = "Unknown"
	SyncSynced    SyncStatusCode = "Synced"
	SyncOutOfSync SyncStatusCode = "OutOfSync"
)

// SyncStatus is the result of the last comparison.
type SyncStatus struct {
	Status     SyncStatusCode `json:"status"`
	ComparedTo ComparedTo     `json:"comparedTo,omitempty"`
	Revision   string         `json:"revision,omitempty"`
	Revisions  []string       `json:"revisions,omitempty"`
}

// ComparedTo is what was compared with.
type ComparedTo struct {
	Source            ApplicationSource           `json:"source,omitempty"`
	Destination       ApplicationDestination      `json:"destination"`
	Sources           []ApplicationSource         `json:"sources,omitempty"`
	IgnoreDifferences []ResourceIgnoreDifferences `json:"ignoreDifferences,omitempty"`
}

// HealthStatusCode says how an object or application fares.
type HealthStatusCode string

// The codes, best to worst.
const (
	HealthHealthy     HealthStatusCode = "Healthy"
	HealthSuspended   HealthStatusCode = "Suspended"
	HealthProgressing HealthStatusCode = "Progressing"
	HealthMissing     HealthStatusCode = "Missing"
	HealthDegraded    HealthStatusCode = "Degraded"
	HealthUnknown     HealthStatusCode = "Unknown"
)

// Well tells that nothing is to be waited for, and nothing to be explained: Healthy or Suspended.
func (c HealthStatusCode) Well() bool { return c == HealthHealthy || c == HealthSuspended }

// AppHealthStatus is the health of an application.
type AppHealthStatus struct {
	Status             HealthStatusCode `json:"status,omitempty"`
	Message            string           `json:"message,omitempty"`
	LastTransitionTime *metav1.Time     `json:"lastTransitionTime,omitempty"`
}

// HealthStatus is the health of one object.
type HealthStatus struct {
	Status             HealthStatusCode `json:"status,omitempty"`
	Message            string           `json:"message,omitempty"`
	LastTransitionTime *metav1.Time     `json:"lastTransitionTime,omitempty"`
}

// ResourceStatus is the status of one object.
type ResourceStatus struct {
	Group                        string         `json:"group,omitempty"`
	Version                      string         `json:"version,omitempty"`
	Kind                         string         `json:"kind,omitempty"`
	Namespace                    string         `json:"namespace,omitempty"`
	Name                         string         `json:"name,omitempty"`
	Status                       SyncStatusCode `json:"status,omitempty"`
	Health                       *HealthStatus  `json:"health,omitempty"`
	Hook                         bool           `json:"hook,omitempty"`
	RequiresPruning              bool           `json:"requiresPruning,omitempty"`
	SyncWave                     int64          `json:"syncWave,omitempty"`
	RequiresDeletionConfirmation bool           `json:"requiresDeletionConfirmation,omitempty"`
}

// RevisionHistory is one deployment.
type RevisionHistory struct {
	Revision        string              `json:"revision,omitempty"`
	DeployedAt      metav1.Time         `json:"deployedAt"`
	ID              int64               `json:"id"`
	Source          ApplicationSource   `json:"source,omitempty"`
	DeployStartedAt *metav1.Time        `json:"deployStartedAt,omitempty"`
	Sources         []ApplicationSource `json:"sources,omitempty"`
	Revisions       []string            `json:"revisions,omitempty"`
	InitiatedBy     OperationInitiator  `json:"initiatedBy,omitempty"`
}

// ApplicationConditionType names a condition; a type that ends in Error is an error, others are warnings.
type ApplicationConditionType string

// The condition types.
const (
	ConditionDeletionError           ApplicationConditionType = "DeletionError"
	ConditionInvalidSpecError        ApplicationConditionType = "InvalidSpecError"
	ConditionComparisonError         ApplicationConditionType = "ComparisonError"
	ConditionSyncError               ApplicationConditionType = "SyncError"
	ConditionUnknownError            ApplicationConditionType = "UnknownError"
	ConditionSharedResourceWarning   ApplicationConditionType = "SharedResourceWarning"
	ConditionRepeatedResourceWarning ApplicationConditionType = "RepeatedResourceWarning"
	ConditionExcludedResourceWarning ApplicationConditionType = "ExcludedResourceWarning"
	ConditionOrphanedResourceWarning ApplicationConditionType = "OrphanedResourceWarning"
	// ConditionRenderWarning is what a renderer remarks without failing; Argo CD has no condition for it.
	ConditionRenderWarning ApplicationConditionType = "RenderWarning"
	// ConditionUnsupportedWarning names what of the application is not carried out; Argo CD has no condition for it.
	ConditionUnsupportedWarning ApplicationConditionType = "UnsupportedWarning"
	// ConditionWaitingWarning says why automated sync rests: after a rollback, or for another application; Argo CD has no
	// condition for it.
	ConditionWaitingWarning ApplicationConditionType = "WaitingWarning"
)

// ApplicationCondition is an error or a warning.
type ApplicationCondition struct {
	Type               ApplicationConditionType `json:"type"`
	Message            string                   `json:"message"`
	LastTransitionTime *metav1.Time             `json:"lastTransitionTime,omitempty"`
}

// OperationPhase is where an operation stands.
type OperationPhase string

// The phases.
const (
	OperationRunning     OperationPhase = "Running"
	OperationTerminating OperationPhase = "Terminating"
	OperationFailed      OperationPhase = "Failed"
	OperationError       OperationPhase = "Error"
	OperationSucceeded   OperationPhase = "Succeeded"
)

// Completed tells whether the operation has ended.
func (p OperationPhase) Completed() bool {
	return p == OperationFailed || p == OperationError || p == OperationSucceeded
}

// OperationState is the running or last operation.
type OperationState struct {
	Operation  Operation            `json:"operation"`
	Phase      OperationPhase       `json:"phase"`
	Message    string               `json:"message,omitempty"`
	SyncResult *SyncOperationResult `json:"syncResult,omitempty"`
	StartedAt  metav1.Time          `json:"startedAt"`
	FinishedAt *metav1.Time         `json:"finishedAt,omitempty"`
	RetryCount int64                `json:"retryCount,omitempty"`
}

// SyncOperationResult is what a sync did.
type SyncOperationResult struct {
	Resources                []*ResourceResult         `json:"resources,omitempty"`
	Revision                 string                    `json:"revision"`
	Source                   ApplicationSource         `json:"source,omitempty"`
	Sources                  []ApplicationSource       `json:"sources,omitempty"`
	Revisions                []string                  `json:"revisions,omitempty"`
	ManagedNamespaceMetadata *ManagedNamespaceMetadata `json:"managedNamespaceMetadata,omitempty"`
}

// ResultCode is what happened to one object in a sync.
type ResultCode string

// The codes.
const (
	ResultSynced       ResultCode = "Synced"
	ResultSyncFailed   ResultCode = "SyncFailed"
	ResultPruned       ResultCode = "Pruned"
	ResultPruneSkipped ResultCode = "PruneSkipped"
)

// HookType is the phase a hook asks for.
type HookType string

// SyncPhase is a phase of a sync.
type SyncPhase string

// ResourceResult is what a sync did to one object.
type ResourceResult struct {
	Group     string         `json:"group"`
	Version   string         `json:"version"`
	Kind      string         `json:"kind"`
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	Status    ResultCode     `json:"status,omitempty"`
	Message   string         `json:"message,omitempty"`
	HookType  HookType       `json:"hookType,omitempty"`
	HookPhase OperationPhase `json:"hookPhase,omitempty"`
	SyncPhase SyncPhase      `json:"syncPhase,omitempty"`
	Images    []string       `json:"images,omitempty"`
}

// ApplicationSummary gathers what people look for first.
type ApplicationSummary struct {
	ExternalURLs []string `json:"externalURLs,omitempty"`
	Images       []string `json:"images,omitempty"`
	IsAppOfApps  bool     `json:"isAppOfApps,omitempty"`
}

// SourceHydratorStatus is where hydration stands.
type SourceHydratorStatus struct {
	LastSuccessfulOperation *SuccessfulHydrateOperation `json:"lastSuccessfulOperation,omitempty"`
	CurrentOperation        *HydrateOperation           `json:"currentOperation,omitempty"`
	LastComparedDryRevision string                      `json:"lastComparedDryRevision,omitempty"`
}

// HydrateOperation is one rendering into a branch.
type HydrateOperation struct {
	StartedAt      metav1.Time           `json:"startedAt,omitempty"`
	FinishedAt     *metav1.Time          `json:"finishedAt,omitempty"`
	Phase          HydrateOperationPhase `json:"phase"`
	Message        string                `json:"message"`
	DrySHA         string                `json:"drySHA,omitempty"`
	HydratedSHA    string                `json:"hydratedSHA,omitempty"`
	SourceHydrator SourceHydrator        `json:"sourceHydrator,omitempty"`
}

// HydrateOperationPhase is Hydrating, Failed or Hydrated.
//
// +kubebuilder:validation:Enum=Hydrating;Failed;Hydrated
type HydrateOperationPhase string

// SuccessfulHydrateOperation is the last one that worked.
type SuccessfulHydrateOperation struct {
	DrySHA         string         `json:"drySHA,omitempty"`
	HydratedSHA    string         `json:"hydratedSHA,omitempty"`
	SourceHydrator SourceHydrator `json:"sourceHydrator,omitempty"`
}
