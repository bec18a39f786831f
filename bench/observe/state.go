package observe

import (
	"fmt"
	"sync"
	"time"

	"github.com/lockstep-cd/lockstep/bench/workload"
)

// item is what is read of an object: an Application has a status, the others have content.
type item struct {
	workload.Content
	Status struct {
		Sync struct {
			Status   string `json:"status"`
			Revision string `json:"revision"`
		} `json:"sync"`
		Health struct {
			Status  string `json:"status"`
			Message string `json:"message"`
		} `json:"health"`
	} `json:"status"`
}

// object is one object of an application.
type object struct {
	wanted workload.Content
	right  bool
	// wasRight and wrongSince tell a change by hand from an object that is not there yet.
	wasRight   bool
	wrongSince time.Time
}

// application is one application and its objects, in the order of the kinds.
type application struct {
	objects []object
	// since is the number of the oldest commit that the Application may be Synced to. A newer one that changes none of its
	// files is as good.
	since int
	right bool
	// seen is what the Application said last, for people who wait.
	seen string
}

// state is what was seen of everything. Its methods are called by one watch a kind.
type state struct {
	spec workload.Spec
	say  func(Message)

	mu           sync.Mutex
	applications []application
	// commits are numbered in the order in which they were expected.
	commits map[string]int
	// wrong is the number of objects and Applications that are not right; at 0 everything is in step.
	wrong  int
	counts Counts
	last   time.Time
}

func newState(spec workload.Spec, now time.Time, say func(Message)) (*state, error) {
	s := &state{spec: spec, say: say, applications: make([]application, spec.Applications), last: now}
	s.commits = map[string]int{spec.Revision: 0}
	for i := range s.applications {
		objects, err := spec.Objects(i, workload.FirstVersion)
		if err != nil {
			return nil, err
		}
		a := &s.applications[i]
		a.objects = make([]object, len(objects))
		for n, o := range objects {
			if a.objects[n].wanted, err = spec.Wanted(i, o); err != nil {
				return nil, err
			}
		}
		s.wrong += 1 + len(objects)
	}
	return s, nil
}

// sawApplication takes in an Application; nil means that it is gone.
func (s *state) sawApplication(i int, got *item, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Applications++
	s.last = now
	a := &s.applications[i]
	right := false
	a.seen = "gone"
	if got != nil {
		st := got.Status
		a.seen = fmt.Sprintf("%s at %.7s, %s %s", st.Sync.Status, st.Sync.Revision, st.Health.Status, st.Health.Message)
		number, known := s.commits[st.Sync.Revision]
		right = st.Sync.Status == "Synced" && known && number >= a.since && st.Health.Status == "Healthy"
	}
	s.set(&a.right, right, now)
}

// sawObject takes in an object of kind number n; nil means that it is gone.
func (s *state) sawObject(i, n int, got *item, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Objects++
	s.last = now
	o := &s.applications[i].objects[n]
	right := got != nil && got.Holds(o.wanted)
	switch {
	case !right && o.right:
		o.wrongSince = now
	case right && !o.right && o.wasRight:
		s.say(Message{PutBack: &PutBack{Application: i, Kind: s.spec.Kinds[n], Wrong: o.wrongSince, Right: now}})
	}
	o.wasRight = o.wasRight || right
	s.set(&o.right, right, now)
}

func (s *state) set(flag *bool, right bool, now time.Time) {
	if *flag == right {
		return
	}
	*flag = right
	if !right {
		s.wrong++
		return
	}
	if s.wrong--; s.wrong == 0 {
		s.say(Message{InStep: &now})
	}
}

// expect changes what applications must come to with the next commit.
func (s *state) expect(e Expected) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.commits[e.Revision]; !ok {
		s.commits[e.Revision] = len(s.commits)
	}
	for _, i := range e.Applications {
		if i < 0 || i >= len(s.applications) {
			return fmt.Errorf("application %d: there are %d", i, len(s.applications))
		}
		objects, err := s.spec.Objects(i, e.Version)
		if err != nil {
			return err
		}
		a := &s.applications[i]
		if a.objects[0].wanted, err = s.spec.Wanted(i, objects[0]); err != nil {
			return err
		}
		a.since = s.commits[e.Revision]
		a.objects[0].wasRight = false
		for _, flag := range []*bool{&a.right, &a.objects[0].right} {
			if *flag {
				*flag = false
				s.wrong++
			}
		}
	}
	return nil
}

func (s *state) count(now time.Time) Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts
	c.Quiet = now.Sub(s.last)
	return c
}

func (s *state) progress() Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	var p Progress
	for i, a := range s.applications {
		for n, o := range a.objects {
			if o.right {
				p.Objects++
			} else if p.Waiting == "" {
				p.Waiting = fmt.Sprintf("%s %s has not the content of the commit; the Application: %s", s.spec.Kinds[n], s.spec.Name(i), a.seen)
			}
		}
		if a.right {
			p.Applications++
		} else if p.Waiting == "" {
			p.Waiting = fmt.Sprintf("Application %s: %s", s.spec.Name(i), a.seen)
		}
	}
	return p
}
