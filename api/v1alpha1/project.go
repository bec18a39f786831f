package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AppProject says what applications of a project may use.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=appprojects,shortName=appproj;appprojs
type AppProject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              AppProjectSpec `json:"spec"`
	// +optional
	Status AppProjectStatus `json:"status,omitempty"`
}

// AppProjectList is a list of AppProjects.
//
// +kubebuilder:object:root=true
type AppProjectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []AppProject `json:"items"`
}

// AppProjectSpec are the rules of a project.
type AppProjectSpec struct {
	// SourceRepos are globs of repository URLs; a leading ! denies.
	SourceRepos []string `json:"sourceRepos,omitempty"`
	// Destinations are globs; a leading ! denies.
	Destinations []ApplicationDestination `json:"destinations,omitempty"`
	// +kubebuilder:validation:MaxLength=255
	Description string        `json:"description,omitempty"`
	Roles       []ProjectRole `json:"roles,omitempty"`
	// ClusterResourceWhitelist lists the cluster-scoped kinds that are allowed; empty allows none.
	ClusterResourceWhitelist   []ClusterResourceRestrictionItem  `json:"clusterResourceWhitelist,omitempty"`
	NamespaceResourceBlacklist []metav1.GroupKind                `json:"namespaceResourceBlacklist,omitempty"`
	OrphanedResources          *OrphanedResourcesMonitorSettings `json:"orphanedResources,omitempty"`
	SyncWindows                SyncWindows                       `json:"syncWindows,omitempty"`
	// NamespaceResourceWhitelist lists the namespaced kinds that are allowed; absent allows all, empty none.
	NamespaceResourceWhitelist []metav1.GroupKind `json:"namespaceResourceWhitelist,omitempty"`
	// SignatureKeys is deprecated; see SourceIntegrity.
	SignatureKeys                   []SignatureKey                         `json:"signatureKeys,omitempty"`
	ClusterResourceBlacklist        []ClusterResourceRestrictionItem       `json:"clusterResourceBlacklist,omitempty"`
	SourceNamespaces                []string                               `json:"sourceNamespaces,omitempty"`
	PermitOnlyProjectScopedClusters bool                                   `json:"permitOnlyProjectScopedClusters,omitempty"`
	DestinationServiceAccounts      []ApplicationDestinationServiceAccount `json:"destinationServiceAccounts,omitempty"`
	SourceIntegrity                 *SourceIntegrity                       `json:"sourceIntegrity,omitempty"`
}

// ClusterResourceRestrictionItem names cluster-scoped kinds, and objects of them, by globs.
type ClusterResourceRestrictionItem struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
	Name  string `json:"name,omitempty"`
}

// ProjectRole is a role within a project.
type ProjectRole struct {
	Name        string     `json:"name"`
	Description string     `json:"description,omitempty"`
	Policies    []string   `json:"policies,omitempty"`
	JWTTokens   []JWTToken `json:"jwtTokens,omitempty"`
	Groups      []string   `json:"groups,omitempty"`
}

// JWTToken records an issued token.
type JWTToken struct {
	IssuedAt  int64  `json:"iat"`
	ExpiresAt int64  `json:"exp,omitempty"`
	ID        string `json:"id,omitempty"`
}

// OrphanedResourcesMonitorSettings turns the monitoring of orphans on by its presence.
type OrphanedResourcesMonitorSettings struct {
	Warn   *bool                 `json:"warn,omitempty"`
	Ignore []OrphanedResourceKey `json:"ignore,omitempty"`
}

// OrphanedResourceKey names objects that are no orphans.
type OrphanedResourceKey struct {
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind,omitempty"`
	Name  string `json:"name,omitempty"`
}

// SyncWindows are times in which syncs are allowed or denied.
type SyncWindows []*SyncWindow

// SyncWindow is one window.
type SyncWindow struct {
	Kind           string   `json:"kind,omitempty"`
	Schedule       string   `json:"schedule,omitempty"`
	Duration       string   `json:"duration,omitempty"`
	Applications   []string `json:"applications,omitempty"`
	Namespaces     []string `json:"namespaces,omitempty"`
	Clusters       []string `json:"clusters,omitempty"`
	ManualSync     bool     `json:"manualSync,omitempty"`
	TimeZone       string   `json:"timeZone,omitempty"`
	UseAndOperator bool     `json:"andOperator,omitempty"`
	Description    string   `json:"description,omitempty"`
	SyncOverrun    bool     `json:"syncOverrun,omitempty"`
}

// SignatureKey is a key that commits must be signed with.
type SignatureKey struct {
	KeyID string `json:"keyID"`
}

// ApplicationDestinationServiceAccount is the account that is impersonated for a destination.
type ApplicationDestinationServiceAccount struct {
	Server                string `json:"server"`
	Namespace             string `json:"namespace,omitempty"`
	DefaultServiceAccount string `json:"defaultServiceAccount"`
}

// SourceIntegrity are rules for signed sources.
type SourceIntegrity struct {
	// +required
	Git *SourceIntegrityGit `json:"git,omitempty"`
}

// SourceIntegrityGit are rules for Git sources; the first policy that matches holds.
type SourceIntegrityGit struct {
	// +required
	Policies []*SourceIntegrityGitPolicy `json:"policies,omitempty"`
}

// SourceIntegrityGitPolicy is a rule for some repositories.
type SourceIntegrityGitPolicy struct {
	// +required
	Repos []SourceIntegrityGitPolicyRepo `json:"repos,omitempty"`
	// +required
	GPG *SourceIntegrityGitPolicyGPG `json:"gpg,omitempty"`
}

// SourceIntegrityGitPolicyRepo selects repositories by a glob.
type SourceIntegrityGitPolicyRepo struct {
	URL string `json:"url"`
}

// SourceIntegrityGitPolicyGPG demands signatures.
type SourceIntegrityGitPolicyGPG struct {
	// Mode is none, head or strict.
	Mode string `json:"mode"`
	// Keys are the identifiers of the accepted keys.
	Keys []string `json:"keys"`
}

// AppProjectStatus is what is known of a project.
type AppProjectStatus struct {
	JWTTokensByRole map[string]JWTTokens `json:"jwtTokensByRole,omitempty"`
}

// JWTTokens are the tokens of a role.
type JWTTokens struct {
	Items []JWTToken `json:"items,omitempty"`
}
