package compare

import (
	"bytes"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// UnknownAuthor is said of a change that left no trace: a field that was removed is owned by nobody.
const UnknownAuthor = "somebody unknown"

// Author says in words who wrote the fields at paths last and when, by the entries of ownership in live: "kubectl edit at
// 2026-05-04 12:03 UTC". It is empty when the fields are still ours: then not the cluster changed but the source.
func Author(live *unstructured.Unstructured, paths []string) string {
	if live == nil || len(paths) == 0 {
		return ""
	}
	var last *metav1.ManagedFieldsEntry
	ours := 0
	fields := live.GetManagedFields()
	mine := applied(fields, Manager)
	for i := range fields {
		f := &fields[i]
		n := owning(f, paths)
		switch {
		case f == mine:
			ours = n
		case n > 0 && (last == nil || f.Time != nil && (last.Time == nil || last.Time.Before(f.Time))):
			last = f
		}
	}
	switch {
	case mine != nil && ours == len(paths):
		return ""
	case last != nil && last.Time != nil:
		return who(last) + " at " + last.Time.UTC().Format("2006-01-02 15:04") + " UTC"
	case last != nil:
		return who(last)
	case mine == nil:
		return ""
	}
	return UnknownAuthor
}

// owning counts the paths that the entry owns. An entry that does not parse owns nothing.
func owning(f *metav1.ManagedFieldsEntry, paths []string) int {
	if f.FieldsV1 == nil {
		return 0
	}
	set := &fieldpath.Set{}
	if set.FromJSON(bytes.NewReader(f.FieldsV1.GetRawBytes())) != nil {
		return 0
	}
	n := 0
	set.Iterate(func(p fieldpath.Path) {
		if slices.Contains(paths, p.String()) {
			n++
		}
	})
	return n
}

// who is a field manager in words.
func who(f *metav1.ManagedFieldsEntry) string {
	scale := f.Subresource == "scale"
	switch name := f.Manager; {
	case name == Manager:
		return "Lockstep"
	case name == "kube-controller-manager" && scale:
		return "a HorizontalPodAutoscaler"
	case strings.HasPrefix(name, "kubectl") && scale:
		return "kubectl scale"
	case name == "kubectl-client-side-apply", name == "before-first-apply", name == "kubectl":
		return "kubectl apply"
	case strings.HasPrefix(name, "kubectl-"):
		return "kubectl " + strings.TrimPrefix(name, "kubectl-")
	case name == "argocd-controller", name == "argocd-application-controller":
		return "Argo CD"
	case name == "helm":
		return "Helm"
	case name == "vpa-updater", name == "vpa-admission-controller":
		return "a VerticalPodAutoscaler"
	case name == "":
		return "an unnamed manager"
	case scale:
		return name + " (scale)"
	default:
		return name
	}
}

// Drift is the sentence about an object that differs: the fields, and who wrote them if it was not us.
func Drift(live *unstructured.Unstructured, paths []string) string {
	text := Describe(paths)
	if author := Author(live, paths); author != "" && text != "" {
		text += "; last written by " + author
	}
	return text
}
