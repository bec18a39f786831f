package plan

// Auto is an application's policy of automated sync.
type Auto struct {
	Enabled, Prune, SelfHeal, AllowEmpty bool
}

// Situation is what the comparison found.
type Situation struct {
	// OutOfSync tells that a declared object is missing or differs.
	OutOfSync bool
	// Extras is the number of live objects that are no longer declared and could be pruned.
	Extras int
	// Empty tells that the source declares no object at all.
	Empty bool
	// New tells that the source renders to something that no sync has tried yet.
	New bool
	// Failed tells that the last sync tried exactly this rendering and failed.
	Failed bool
}

// Act is what automated sync does.
type Act uint8

// The acts.
const (
	// Rest does nothing.
	Rest Act = iota
	// SyncAll syncs the whole application.
	SyncAll
	// Heal puts back the objects that differ.
	Heal
	// Refuse does nothing although something is to be done; the reason is for a condition.
	Refuse
)

// Automate decides whether an application is synced by itself (the contract's §2.7, and §1.4 of DESIGN.md: an empty
// result never prunes on its own). The sentence tells why a sync is refused.
func Automate(a Auto, s Situation) (Act, string) {
	prunable := a.Prune && s.Extras > 0
	switch {
	case !a.Enabled, !s.OutOfSync && !prunable:
		return Rest, ""
	case s.Empty && !a.AllowEmpty:
		return Refuse, "the source declares no object any more; nothing was deleted: sync by hand with prune, or set " +
			"spec.syncPolicy.automated.allowEmpty, to delete what is left"
	case s.New:
		return SyncAll, ""
	case s.Failed:
		return Refuse, ""
	case a.SelfHeal && s.OutOfSync:
		return Heal, ""
	case prunable:
		return SyncAll, ""
	}
	return Rest, ""
}
