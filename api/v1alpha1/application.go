package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Application is a set of manifests in a source that is kept in step with a destination.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=applications,shortName=app;apps
// +kubebuilder:printcolumn:name="Sync Status",type=string,JSONPath=`.status.sync.status`
// +kubebuilder:printcolumn:name="Health Status",type=string,JSONPath=`.status.health.status`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.sync.revision`,priority=10
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=`.spec.project`,priority=10
type Application struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              ApplicationSpec `json:"spec"`
	// +optional
	Status ApplicationStatus `json:"status,omitempty"`
	// Operation is a request to act; it is cleared when the operation is taken up.
	// +optional
	Operation *Operation `json:"operation,omitempty"`
}

// ApplicationList is a list of Applications.
//
// +kubebuilder:object:root=true
type ApplicationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Application `json:"items"`
}

// ApplicationSpec says what runs where, and how it is kept there.
type ApplicationSpec struct {
	// Source of the manifests; ignored when Sources is not empty.
	Source *ApplicationSource `json:"source,omitempty"`
	// Destination of the manifests.
	Destination ApplicationDestination `json:"destination"`
	// Project whose rules hold; empty means "default".
	Project string `json:"project"`
	// SyncPolicy says whether and how the application is synced by itself.
	SyncPolicy *SyncPolicy `json:"syncPolicy,omitempty"`
	// IgnoreDifferences are fields left out of the comparison.
	IgnoreDifferences []ResourceIgnoreDifferences `json:"ignoreDifferences,omitempty"`
	// Info is free text for people; values that are URLs become links.
	Info []Info `json:"info,omitempty"`
	// RevisionHistoryLimit is the length of status.history; default 10, 0 keeps none.
	RevisionHistoryLimit *int64 `json:"revisionHistoryLimit,omitempty"`
	// Sources replace Source by several, rendered in order; of one object named twice the last wins.
	Sources []ApplicationSource `json:"sources,omitempty"`
	// SourceHydrator renders manifests into a branch which is then the source.
	SourceHydrator *SourceHydrator `json:"sourceHydrator,omitempty"`
}

// ApplicationSource is a place in a Git repository, a Helm repository or an OCI registry, and how it is rendered.
type ApplicationSource struct {
	// RepoURL of the Git repository, Helm repository, or oci:// artifact.
	RepoURL string `json:"repoURL"`
	// Path of a folder in the repository.
	Path string `json:"path,omitempty"`
	// TargetRevision is a branch, tag, commit, HEAD (default) or semver range; for charts a version or range.
	TargetRevision string `json:"targetRevision,omitempty"`
	// TagPrefix keeps only tags with this prefix before a semver range is evaluated on the rest of their name.
	TagPrefix string `json:"tagPrefix,omitempty"`
	// Helm holds options of the Helm renderer.
	Helm *ApplicationSourceHelm `json:"helm,omitempty"`
	// Kustomize holds options of the Kustomize renderer.
	Kustomize *ApplicationSourceKustomize `json:"kustomize,omitempty"`
	// Directory holds options for folders of plain manifests and Jsonnet.
	Directory *ApplicationSourceDirectory `json:"directory,omitempty"`
	// Plugin holds options of a config management plugin.
	Plugin *ApplicationSourcePlugin `json:"plugin,omitempty"`
	// Chart names a chart of a Helm repository; it excludes Path.
	Chart string `json:"chart,omitempty"`
	// Ref names this source, so that others can read its files as $ref/path.
	Ref string `json:"ref,omitempty"`
	// Name is shown to people and selects the source in commands.
	Name string `json:"name,omitempty"`
}

// ApplicationSourceHelm holds options of the Helm renderer.
type ApplicationSourceHelm struct {
	// ValueFiles are paths, globs, URLs or $ref paths; later files win.
	ValueFiles []string `json:"valueFiles,omitempty"`
	// Parameters are set last, as --set does.
	Parameters []HelmParameter `json:"parameters,omitempty"`
	// ReleaseName defaults to the name of the application.
	ReleaseName string `json:"releaseName,omitempty"`
	// Values is YAML text laid over the value files.
	Values string `json:"values,omitempty"`
	// FileParameters set values to the content of files.
	FileParameters []HelmFileParameter `json:"fileParameters,omitempty"`
	// Version of Helm; accepted for compatibility ("v2", "v3").
	Version string `json:"version,omitempty"`
	// PassCredentials sends the repository's credentials to other hosts that its index names.
	PassCredentials bool `json:"passCredentials,omitempty"`
	// IgnoreMissingValueFiles takes missing value files as empty.
	IgnoreMissingValueFiles bool `json:"ignoreMissingValueFiles,omitempty"`
	// SkipCrds leaves out the crds folder.
	SkipCrds bool `json:"skipCrds,omitempty"`
	// ValuesObject is Values as an object; it wins over Values.
	// +kubebuilder:pruning:PreserveUnknownFields
	ValuesObject *runtime.RawExtension `json:"valuesObject,omitempty"`
	// Namespace of the release; default the destination namespace.
	Namespace string `json:"namespace,omitempty"`
	// KubeVersion shown to the chart; default that of the cluster.
	KubeVersion string `json:"kubeVersion,omitempty"`
	// APIVersions shown to the chart; default those of the cluster.
	APIVersions []string `json:"apiVersions,omitempty"`
	// SkipTests leaves out test hooks.
	SkipTests bool `json:"skipTests,omitempty"`
	// SkipSchemaValidation leaves values.schema.json unread.
	SkipSchemaValidation bool `json:"skipSchemaValidation,omitempty"`
}

// HelmParameter is one --set.
type HelmParameter struct {
	Name        string `json:"name,omitempty"`
	Value       string `json:"value,omitempty"`
	ForceString bool   `json:"forceString,omitempty"`
}

// HelmFileParameter is one --set-file.
type HelmFileParameter struct {
	Name string `json:"name,omitempty"`
	Path string `json:"path,omitempty"`
}

// ApplicationSourceKustomize holds options that are laid over the kustomization.
type ApplicationSourceKustomize struct {
	NamePrefix string `json:"namePrefix,omitempty"`
	NameSuffix string `json:"nameSuffix,omitempty"`
	// Images are [old=]name:tag or [old=]name@digest.
	Images                    []KustomizeImage   `json:"images,omitempty"`
	CommonLabels              map[string]string  `json:"commonLabels,omitempty"`
	Version                   string             `json:"version,omitempty"`
	CommonAnnotations         map[string]string  `json:"commonAnnotations,omitempty"`
	ForceCommonLabels         bool               `json:"forceCommonLabels,omitempty"`
	ForceCommonAnnotations    bool               `json:"forceCommonAnnotations,omitempty"`
	Namespace                 string             `json:"namespace,omitempty"`
	CommonAnnotationsEnvsubst bool               `json:"commonAnnotationsEnvsubst,omitempty"`
	Replicas                  []KustomizeReplica `json:"replicas,omitempty"`
	Patches                   []KustomizePatch   `json:"patches,omitempty"`
	Components                []string           `json:"components,omitempty"`
	// IgnoreMissingComponents leaves out components that are not there.
	IgnoreMissingComponents bool     `json:"ignoreMissingComponents,omitempty"`
	LabelWithoutSelector    bool     `json:"labelWithoutSelector,omitempty"`
	KubeVersion             string   `json:"kubeVersion,omitempty"`
	APIVersions             []string `json:"apiVersions,omitempty"`
	LabelIncludeTemplates   bool     `json:"labelIncludeTemplates,omitempty"`
}

// KustomizeImage is [old=]name:tag or [old=]name@digest.
type KustomizeImage string

// KustomizeReplica sets the replicas of a workload.
type KustomizeReplica struct {
	Name string `json:"name"`
	// Count is a number, or a string holding one.
	Count intstr.IntOrString `json:"count"`
}

// KustomizePatch is an inline or referenced patch.
type KustomizePatch struct {
	Path    string             `json:"path,omitempty"`
	Patch   string             `json:"patch,omitempty"`
	Target  *KustomizeSelector `json:"target,omitempty"`
	Options map[string]bool    `json:"options,omitempty"`
}

// KustomizeSelector selects the objects a patch is for.
type KustomizeSelector struct {
	KustomizeResId     `json:",inline"`
	AnnotationSelector string `json:"annotationSelector,omitempty"`
	LabelSelector      string `json:"labelSelector,omitempty"`
}

// KustomizeResId names an object by kind, name and namespace.
type KustomizeResId struct {
	KustomizeGvk `json:",inline"`
	Name         string `json:"name,omitempty"`
	Namespace    string `json:"namespace,omitempty"`
}

// KustomizeGvk is a group, version and kind.
type KustomizeGvk struct {
	Group   string `json:"group,omitempty"`
	Version string `json:"version,omitempty"`
	Kind    string `json:"kind,omitempty"`
}

// ApplicationSourceDirectory holds options for plain manifests and Jsonnet.
type ApplicationSourceDirectory struct {
	Recurse bool                     `json:"recurse,omitempty"`
	Jsonnet ApplicationSourceJsonnet `json:"jsonnet,omitempty"`
	// Exclude and Include are globs over paths below the folder; {a,b} holds alternatives.
	Exclude string `json:"exclude,omitempty"`
	Include string `json:"include,omitempty"`
	// DisableExtensionFilter takes every file, not only .yaml, .yml, .json and .jsonnet.
	DisableExtensionFilter bool `json:"disableExtensionFilter,omitempty"`
}

// ApplicationSourceJsonnet holds options of Jsonnet.
type ApplicationSourceJsonnet struct {
	ExtVars []JsonnetVar `json:"extVars,omitempty"`
	TLAs    []JsonnetVar `json:"tlas,omitempty"`
	// Libs are folders from the root of the repository; of one name the last folder wins.
	Libs []string `json:"libs,omitempty"`
}

// JsonnetVar is an external variable or a top-level argument.
type JsonnetVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Code tells that Value is an expression, not text.
	Code bool `json:"code,omitempty"`
}

// ApplicationSourcePlugin holds options of a config management plugin.
type ApplicationSourcePlugin struct {
	Name       string                             `json:"name,omitempty"`
	Env        []EnvEntry                         `json:"env,omitempty"`
	Parameters []ApplicationSourcePluginParameter `json:"parameters,omitempty"`
}

// EnvEntry is a variable of the environment.
type EnvEntry struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ApplicationSourcePluginParameter is a parameter of one of three shapes.
type ApplicationSourcePluginParameter struct {
	Name   string            `json:"name,omitempty"`
	String *string           `json:"string,omitempty"`
	Map    map[string]string `json:"map,omitempty"`
	Array  []string          `json:"array,omitempty"`
}

// SourceHydrator describes the rendered-manifest pattern.
type SourceHydrator struct {
	DrySource  DrySource  `json:"drySource"`
	SyncSource SyncSource `json:"syncSource"`
	HydrateTo  *HydrateTo `json:"hydrateTo,omitempty"`
}

// DrySource is what is rendered.
type DrySource struct {
	RepoURL        string                      `json:"repoURL"`
	TargetRevision string                      `json:"targetRevision"`
	Path           string                      `json:"path"`
	Helm           *ApplicationSourceHelm      `json:"helm,omitempty"`
	Kustomize      *ApplicationSourceKustomize `json:"kustomize,omitempty"`
	Directory      *ApplicationSourceDirectory `json:"directory,omitempty"`
	Plugin         *ApplicationSourcePlugin    `json:"plugin,omitempty"`
}

// SyncSource is the branch and path that is synced from.
type SyncSource struct {
	TargetBranch string `json:"targetBranch"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^.{2,}|[^./]$`
	Path string `json:"path"`
	// RepoURL defaults to that of the dry source.
	RepoURL string `json:"repoURL,omitempty"`
}

// HydrateTo is a staging branch, moved to the sync branch by somebody else.
type HydrateTo struct {
	TargetBranch string `json:"targetBranch"`
}

// ApplicationDestination is a cluster, by its URL or by its name, and a namespace.
type ApplicationDestination struct {
	Server string `json:"server,omitempty"`
	// Namespace for objects that have none.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// ResourceIgnoreDifferences names fields that are not compared. Group, kind, name and namespace accept globs.
type ResourceIgnoreDifferences struct {
	Group             string   `json:"group,omitempty"`
	Kind              string   `json:"kind"`
	Name              string   `json:"name,omitempty"`
	Namespace         string   `json:"namespace,omitempty"`
	JSONPointers      []string `json:"jsonPointers,omitempty"`
	JQPathExpressions []string `json:"jqPathExpressions,omitempty"`
	// ManagedFieldsManagers are managers whose fields are trusted.
	ManagedFieldsManagers []string `json:"managedFieldsManagers,omitempty"`
}

// Info is a note.
type Info struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}
