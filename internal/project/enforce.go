package project

import "fmt"

// Enforceable says why the project's rules can't all be kept here; nil when they can. A rule that is not understood must not
// be passed over: what it would have refused would go through.
func (r Rules) Enforceable() error {
	switch {
	case misunderstood(r.spec.SourceIntegrity) != "":
		return fmt.Errorf("project %s has a policy of sourceIntegrity with mode %q, which is none of none, head and strict", r.name, misunderstood(r.spec.SourceIntegrity))
	case len(r.spec.DestinationServiceAccounts) > 0:
		return fmt.Errorf("project %s names accounts to write as (destinationServiceAccounts), and this version writes as itself only", r.name)
	case r.spec.PermitOnlyProjectScopedClusters:
		return fmt.Errorf("project %s permits clusters of its own only, and this version knows none besides the one it runs in", r.name)
	}
	return nil
}

// Windows says why nothing may be synced by itself; nil when it may. Windows are not evaluated by this version, so that a
// project that has any is only synced by people.
func (r Rules) Windows() error {
	if len(r.spec.SyncWindows) == 0 {
		return nil
	}
	return fmt.Errorf("project %s has sync windows, which this version does not evaluate: sync by hand", r.name)
}
