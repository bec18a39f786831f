package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The API group and the names of its kinds.
const (
	Group           = "argoproj.io"
	Version         = "v1alpha1"
	ApplicationKind = "Application"
	AppProjectKind  = "AppProject"
)

// GroupVersion is argoproj.io/v1alpha1.
func GroupVersion() schema.GroupVersion { return schema.GroupVersion{Group: Group, Version: Version} }

// Applications is the resource of Application objects.
func Applications() schema.GroupVersionResource { return GroupVersion().WithResource("applications") }

// AppProjects is the resource of AppProject objects.
func AppProjects() schema.GroupVersionResource { return GroupVersion().WithResource("appprojects") }

// AddToScheme registers the kinds.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &Application{}, &ApplicationList{}, &AppProject{}, &AppProjectList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
