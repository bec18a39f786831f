package observe

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/bench/workload"
)

// stage has one application of two objects, a state that watches it, and what the state said.
type stage struct {
	t    *testing.T
	spec workload.Spec
	*state
	said []Message
	now  time.Time
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, now: time.Unix(1_000_000, 0), spec: workload.Spec{
		Applications: 1, Kinds: []string{"deployment", "service"}, Namespaces: 1, ControlNamespace: "argocd", Revision: "aaa",
	}}
	st, err := newState(s.spec, s.now, func(m Message) { s.said = append(s.said, m) })
	if err != nil {
		t.Fatal(err)
	}
	s.state = st
	return s
}

// live is an object as the cluster shows it.
func (s *stage) live(n, version int) *item {
	s.t.Helper()
	objects, err := s.spec.Objects(0, version)
	if err != nil {
		s.t.Fatal(err)
	}
	content, err := s.spec.Wanted(0, objects[n])
	if err != nil {
		s.t.Fatal(err)
	}
	return &item{Content: content}
}

func (s *stage) object(n, version int) {
	s.now = s.now.Add(time.Second)
	s.sawObject(0, n, s.live(n, version), s.now)
}

func (s *stage) application(sync, revision, health string) {
	s.now = s.now.Add(time.Second)
	var got item
	got.Status.Sync.Status, got.Status.Sync.Revision, got.Status.Health.Status = sync, revision, health
	s.sawApplication(0, &got, s.now)
}

func (s *stage) inStep() int {
	n := 0
	for _, m := range s.said {
		if m.InStep != nil {
			n++
		}
	}
	return n
}

func TestInStepNeedsEverything(t *testing.T) {
	s := newStage(t)
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"an Application without status", func() { s.application("", "", "") }},
		{"one object", func() { s.object(0, 1) }},
		{"an Application that is synced and progressing", func() { s.application("Synced", "aaa", "Progressing") }},
		{"an Application in step with an object missing", func() { s.application("Synced", "aaa", "Healthy") }},
		{"an Application at another commit", func() { s.application("Synced", "bbb", "Healthy") }},
		{"the last object", func() { s.object(1, 1) }},
	} {
		step.do()
		if s.inStep() != 0 {
			t.Fatalf("in step after %s", step.what)
		}
	}
	s.application("Synced", "aaa", "Healthy")
	if s.inStep() != 1 {
		t.Fatalf("not in step after everything was right: %+v", s.progress())
	}
	if diff := cmp.Diff(Progress{Objects: 2, Applications: 1}, s.progress()); diff != "" {
		t.Error(diff)
	}
}

func TestChangedFile(t *testing.T) {
	s := newStage(t)
	s.object(0, 1)
	s.object(1, 1)
	s.application("Synced", "aaa", "Healthy")
	if err := s.expect(Expected{Applications: []int{0}, Version: 2, Revision: "bbb"}); err != nil {
		t.Fatal(err)
	}
	s.object(0, 1) // a change of something else: still the old version
	s.application("Synced", "bbb", "Healthy")
	if s.inStep() != 1 {
		t.Fatal("in step with the old object")
	}
	s.object(0, 2)
	if s.inStep() != 2 {
		t.Errorf("not in step: %+v", s.progress())
	}
	s.application("Synced", "aaa", "Healthy")
	if s.progress().Applications != 0 {
		t.Error("in step at the commit before the change")
	}
	// A commit that changes nothing of the application may be shown or not.
	if err := s.expect(Expected{Version: 2, Revision: "ccc"}); err != nil {
		t.Fatal(err)
	}
	s.application("Synced", "bbb", "Healthy")
	s.application("Synced", "ccc", "Healthy")
	if s.progress().Applications != 1 {
		t.Error("not in step at a later commit")
	}
	if err := s.expect(Expected{Applications: []int{1}}); err == nil {
		t.Error("no error for an application that does not exist")
	}
}

func TestPutBack(t *testing.T) {
	s := newStage(t)
	s.object(1, 1)
	changed := s.live(1, 1)
	changed.Metadata.Labels["app.kubernetes.io/version"] = "by-hand"
	wrong := s.now.Add(time.Second)
	s.sawObject(0, 1, changed, wrong)
	right := wrong.Add(40 * time.Millisecond)
	s.sawObject(0, 1, s.live(1, 1), right)
	var got []PutBack
	for _, m := range s.said {
		if m.PutBack != nil {
			got = append(got, *m.PutBack)
		}
	}
	if diff := cmp.Diff([]PutBack{{Application: 0, Kind: "service", Wrong: wrong, Right: right}}, got); diff != "" {
		t.Error(diff)
	}
	s.sawObject(0, 1, nil, right)
	if p := s.progress(); p.Objects != 0 || p.Waiting == "" {
		t.Errorf("after a deletion: %+v", p)
	}
	if c := s.count(right.Add(time.Minute)); c.Objects != 4 || c.Quiet != time.Minute {
		t.Errorf("counts %+v", c)
	}
}

func TestMessagesAreJSON(t *testing.T) {
	now := time.Unix(5, 7).UTC()
	text, err := json.Marshal(Message{InStep: &now})
	if err != nil {
		t.Fatal(err)
	}
	var back Message
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if back.InStep == nil || !back.InStep.Equal(now) {
		t.Errorf("%s became %+v", text, back)
	}
}
