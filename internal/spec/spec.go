// Package spec owns what can be said against an Application by its own text alone: fields that can not mean anything, named by
// their path (spec.sources[1].helm.parameters[0].name). What a field refers to, such as a repository or a project, is the
// matter of those who look it up.
//
// It imports values and the parsers of patterns, and does no I/O.
package spec

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// Check returns the first fault that makes the application impossible to understand; nil when there is none. The message
// begins with the path of the field.
func Check(s v1alpha1.ApplicationSpec) error {
	if err := checkLengths("spec", s); err != nil {
		return err
	}
	if ns := s.Destination.Namespace; ns != "" {
		if why := validation.IsDNS1123Label(ns); len(why) > 0 {
			return fault("spec.destination.namespace", "%q is no name of a namespace: %s", ns, why[0])
		}
	}
	if p := s.SyncPolicy; p != nil && p.ManagedNamespaceMetadata != nil {
		m := p.ManagedNamespaceMetadata
		if err := metaLabels("spec.syncPolicy.managedNamespaceMetadata.labels", m.Labels); err != nil {
			return err
		}
		if err := annotations("spec.syncPolicy.managedNamespaceMetadata.annotations", m.Annotations); err != nil {
			return err
		}
	}
	for field, source := range used(s) {
		if err := Source(field, source); err != nil {
			return err
		}
	}
	return nil
}

// used are the sources that are used, by the paths they stand at: sourceHydrator before sources before source.
func used(s v1alpha1.ApplicationSpec) iter.Seq2[string, v1alpha1.ApplicationSource] {
	return func(yield func(string, v1alpha1.ApplicationSource) bool) {
		switch {
		case s.SourceHydrator != nil:
			d := s.SourceHydrator.DrySource
			yield("spec.sourceHydrator.drySource", v1alpha1.ApplicationSource{
				RepoURL: d.RepoURL, Path: d.Path, TargetRevision: d.TargetRevision, Helm: d.Helm,
				Kustomize: d.Kustomize, Directory: d.Directory, Plugin: d.Plugin,
			})
		case len(s.Sources) > 0:
			for i, source := range s.Sources {
				if !yield(fmt.Sprintf("spec.sources[%d]", i), source) {
					return
				}
			}
		case s.Source != nil:
			yield("spec.source", *s.Source)
		}
	}
}

// Remarks are what of the application has no effect because of a fault that stops nothing, each with the path of its field.
func Remarks(s v1alpha1.ApplicationSpec) []string {
	var out []string
	remark := func(field, format string, args ...any) { out = append(out, fault(field, format, args...).Error()) }
	if n := s.RevisionHistoryLimit; n != nil && *n < 0 {
		remark("spec.revisionHistoryLimit", "%d is below 0; no history is kept", *n)
	}
	for field, source := range used(s) {
		if h := source.Helm; h != nil && !slices.Contains([]string{"", "3", "v3", "4", "v4"}, h.Version) {
			remark(field+".helm.version", "%q is not a version that is inside; charts are rendered by the one that is", h.Version)
		}
	}
	if p := s.SyncPolicy; p != nil && p.Retry != nil {
		out = append(out, retry("spec.syncPolicy.retry", *p.Retry)...)
	}
	return out
}

func retry(field string, r v1alpha1.RetryStrategy) []string {
	var out []string
	remark := func(sub, format string, args ...any) {
		out = append(out, fault(field+"."+sub, format, args...).Error())
	}
	if r.Limit < -1 {
		remark("limit", "%d is below -1, which is without end; it counts as -1", r.Limit)
	}
	b := r.Backoff
	if b == nil {
		return out
	}
	if !isDuration(b.Duration) {
		remark("backoff.duration", "%q is no duration such as 5s, 2m or 1h; 5s is used", b.Duration)
	}
	if !isDuration(b.MaxDuration) {
		remark("backoff.maxDuration", "%q is no duration such as 5s, 2m or 1h; 3m is used", b.MaxDuration)
	}
	if b.Factor != nil && *b.Factor < 1 {
		remark("backoff.factor", "%d is below 1; 2 is used", *b.Factor)
	}
	return out
}

// isDuration takes what Go takes and bare seconds; nothing is the default.
func isDuration(text string) bool {
	if text == "" {
		return true
	}
	for _, form := range []string{text, text + "s"} {
		if d, err := time.ParseDuration(form); err == nil && d > 0 {
			return true
		}
	}
	return false
}

func fault(field, format string, args ...any) error {
	return fmt.Errorf("%s: "+format, append([]any{field}, args...)...)
}
