package project

import (
	"slices"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// Demand is what a project demands of the commits of a repository: a signature by one of the keys.
type Demand struct {
	// Keys are those that the project names.
	Keys []string
	// Strict demands it of all commits before as well.
	Strict bool
}

// The modes of a policy (the contract's §1.6).
const (
	modeNone   = "none"
	modeHead   = "head"
	modeStrict = "strict"
)

// Demands are what the commits of a repository must fulfil, all of it: signatureKeys for every repository, and the first
// policy of sourceIntegrity that matches.
func (r Rules) Demands(url string) []Demand {
	var all []Demand
	if len(r.spec.SignatureKeys) > 0 {
		d := Demand{}
		for _, k := range r.spec.SignatureKeys {
			d.Keys = append(d.Keys, k.KeyID)
		}
		all = append(all, d)
	}
	for _, p := range policies(r.spec.SourceIntegrity) {
		if p == nil || p.GPG == nil || !slices.ContainsFunc(p.Repos, func(repo v1alpha1.SourceIntegrityGitPolicyRepo) bool { return matchURL(repo.URL, url) }) {
			continue
		}
		if p.GPG.Mode != modeNone {
			all = append(all, Demand{Keys: p.GPG.Keys, Strict: p.GPG.Mode == modeStrict})
		}
		break
	}
	return all
}

// Signed tells whether the project demands signatures of any repository.
func (r Rules) Signed() bool {
	return len(r.spec.SignatureKeys) > 0 || slices.ContainsFunc(policies(r.spec.SourceIntegrity), func(p *v1alpha1.SourceIntegrityGitPolicy) bool {
		return p != nil && p.GPG != nil && p.GPG.Mode != modeNone
	})
}

func policies(s *v1alpha1.SourceIntegrity) []*v1alpha1.SourceIntegrityGitPolicy {
	if s == nil || s.Git == nil {
		return nil
	}
	return s.Git.Policies
}

// misunderstood is a mode that is not known; empty where there is none.
func misunderstood(s *v1alpha1.SourceIntegrity) string {
	for _, p := range policies(s) {
		if p != nil && p.GPG != nil && !slices.Contains([]string{modeNone, modeHead, modeStrict}, p.GPG.Mode) {
			return p.GPG.Mode
		}
	}
	return ""
}
