// Package v1alpha1 owns the kinds people already write: Application and AppProject of argoproj.io/v1alpha1, field for
// field. The types are our own; names, defaults and meaning follow the contract that docs/compatibility.md keeps.
//
// It imports Kubernetes' API machinery and nothing of ours.
//
// +kubebuilder:object:generate=true
// +groupName=argoproj.io
package v1alpha1
