package compare

// Verdict says how a desired and a live object relate.
type Verdict uint8

// The verdicts.
const (
	// Undecided needs the normal form: what the API server would make of the desired object.
	Undecided Verdict = iota
	// Equal objects need nothing.
	Equal
	// Different objects differ in at least one field that Git declares.
	Different
	// Missing objects are not in the cluster.
	Missing
)

// Pair is the proof of an earlier apply: the hash of what was sent and of the entry the server answered with.
type Pair struct {
	Desired string `json:"d"`
	Entry   string `json:"e"`
}

// Facts are what is known of a live object without reading it.
type Facts struct {
	// Live tells whether the object exists.
	Live bool
	// Entry is the EntryHash of the live object.
	Entry string
	// Applied is the pair of the last apply; zero when it is not known.
	Applied Pair
}

// Decide is the comparison that costs no request: in step is what was last applied and not touched since.
func Decide(desiredHash string, f Facts) Verdict {
	switch {
	case !f.Live:
		return Missing
	case f.Applied == (Pair{}) || f.Applied.Desired != desiredHash:
		return Undecided
	case f.Applied.Entry == f.Entry:
		return Equal
	}
	// A field of ours was changed or taken over since: also an edit that was edited back, for ownership is lost with it.
	return Different
}

// WithNormal decides by the normal form: the answer of a server-side dry run of the desired object, made by manager
// Lockstep. Compared are the fields that the dry run says we would own, and those inherited from predecessors; all others
// belong to other people. The paths that differ are returned.
func WithNormal(s Sides) (Verdict, []string, error) {
	normal, live := s.Normal, s.Live
	if live == nil {
		return Missing, nil, nil
	}
	set, err := Owned(normal.GetManagedFields(), Manager)
	if err != nil {
		return Undecided, nil, err
	}
	if set == nil {
		return Undecided, nil, nil
	}
	paths := differing(s.over(set), normal.Object, live.Object)
	// A field that we own in the cluster and no longer declare goes away with the apply, unless somebody else owns it too.
	own, err := Owned(live.GetManagedFields(), Manager)
	if err != nil {
		return Undecided, nil, err
	}
	paths = append(paths, dropped(set, own, normal, live)...)
	if len(paths) > 0 {
		return Different, paths, nil
	}
	return Equal, nil, nil
}
