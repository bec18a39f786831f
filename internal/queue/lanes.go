package queue

import "container/heap"

// line is what waits in one priority, by cluster and project.
type line struct {
	clusters map[string]map[string]*items
	count    int
}

func (l *line) push(it *item) {
	if l.clusters == nil {
		l.clusters = map[string]map[string]*items{}
	}
	projects := l.clusters[it.lane.Cluster]
	if projects == nil {
		projects = map[string]*items{}
		l.clusters[it.lane.Cluster] = projects
	}
	list := projects[it.lane.Project]
	if list == nil {
		list = &items{}
		projects[it.lane.Project] = list
	}
	heap.Push(list, it)
	l.count++
}

func (l *line) remove(it *item) {
	heap.Remove(l.clusters[it.lane.Cluster][it.lane.Project], it.index)
	l.removed(it.lane)
}

// removed drops a lane that is empty now.
func (l *line) removed(lane Lane) {
	l.count--
	projects := l.clusters[lane.Cluster]
	if projects[lane.Project].Len() > 0 {
		return
	}
	if delete(projects, lane.Project); len(projects) == 0 {
		delete(l.clusters, lane.Cluster)
	}
}

// pop takes the oldest item of the lane whose turn it is.
func (l *line) pop(t turns) *item {
	lane := Lane{}
	first := true
	for c := range l.clusters {
		if first || t.clusters[c].before(t.clusters[lane.Cluster], c < lane.Cluster) {
			first, lane.Cluster = false, c
		}
	}
	first = true
	for p := range l.clusters[lane.Cluster] {
		one, best := t.lanes[Lane{lane.Cluster, p}], t.lanes[lane]
		if first || one.before(best, p < lane.Project) {
			first, lane.Project = false, p
		}
	}
	it, _ := heap.Pop(l.clusters[lane.Cluster][lane.Project]).(*item)
	l.removed(lane)
	return it
}

// turns knows who had how much. What is known of a lane stays: there are no more of them than projects.
type turns struct {
	clusters map[string]*turn
	lanes    map[Lane]*turn
	count    *uint64
}

// turn is how much of a lane or cluster is worked on, and the number of its last turn.
type turn struct {
	active int
	last   uint64
}

func newTurns() turns {
	return turns{clusters: map[string]*turn{}, lanes: map[Lane]*turn{}, count: new(uint64)}
}

// before tells whose turn it is: of the one of which less is worked on, so that slow work of one takes no worker from the
// others' share; of equals the one whose last turn is longer ago; else the first by name. Who is nil had none yet.
func (t *turn) before(other *turn, byName bool) bool {
	if t == nil {
		t = &turn{}
	}
	if other == nil {
		other = &turn{}
	}
	if t.active != other.active {
		return t.active < other.active
	}
	if t.last != other.last {
		return t.last < other.last
	}
	return byName
}

func (t turns) begin(l Lane) {
	*t.count++
	if t.clusters[l.Cluster] == nil {
		t.clusters[l.Cluster] = &turn{}
	}
	if t.lanes[l] == nil {
		t.lanes[l] = &turn{}
	}
	for _, one := range []*turn{t.clusters[l.Cluster], t.lanes[l]} {
		one.active++
		one.last = *t.count
	}
}

func (t turns) end(l Lane) {
	t.clusters[l.Cluster].active--
	t.lanes[l].active--
}

// items are those of one lane, the oldest first.
type items []*item

func (s items) Len() int           { return len(s) }
func (s items) Less(i, j int) bool { return s[i].seq < s[j].seq }
func (s items) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

// Push implements heap.Interface.
func (s *items) Push(x any) {
	it, _ := x.(*item)
	it.index = len(*s)
	*s = append(*s, it)
}

// Pop implements heap.Interface.
func (s *items) Pop() any {
	old := *s
	it := old[len(old)-1]
	old[len(old)-1] = nil
	*s = old[:len(old)-1]
	return it
}
