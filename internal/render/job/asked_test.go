package job_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/lockstep-cd/lockstep/internal/render/job"
)

func TestAnswersHoldForWhatWasAsked(t *testing.T) {
	caps := job.Capabilities{KubeVersion: "v1.35.0", APIVersions: []string{"v1", "apps/v1"}}
	env := map[string]string{"ARGOCD_APP_REVISION": "abc", "ARGOCD_APP_NAME": "shop"}
	in := job.Input{Env: env, Asked: &job.Asked{}}
	if got := in.Substitute("$ARGOCD_APP_REVISION-$NONE"); got != "abc-" {
		t.Fatalf("substituted: %q", got)
	}
	in.Asked.NoteAPI("monitoring.coreos.com/v1")

	travelled := &job.Asked{} // as it comes out of a worker
	text, err := json.Marshal(in.Asked)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, travelled); err != nil {
		t.Fatal(err)
	}
	answers := travelled.Answers(caps, env)

	with := func(more ...string) job.Capabilities {
		return job.Capabilities{KubeVersion: "v1.36.0", APIVersions: append([]string{"v1", "apps/v1"}, more...)}
	}
	for name, c := range map[string]struct {
		caps job.Capabilities
		env  map[string]string
		want bool
	}{
		"nothing":               {caps, env, true},
		"what was not asked":    {with("example.com/v1"), map[string]string{"ARGOCD_APP_REVISION": "abc"}, true},
		"an API asked for":      {with("monitoring.coreos.com/v1"), env, false},
		"a variable asked for":  {caps, map[string]string{"ARGOCD_APP_REVISION": "def"}, false},
		"a variable known now":  {caps, map[string]string{"ARGOCD_APP_REVISION": "abc", "NONE": "x"}, false},
		"a variable gone again": {caps, nil, false},
	} {
		if got := answers.Hold(c.caps, c.env); got != c.want {
			t.Errorf("%s changed: hold = %v", name, got)
		}
	}
	all := &job.Asked{}
	all.NoteAPIs()
	all.NoteKubeVersion()
	if a := all.Answers(caps, nil); !a.Hold(caps, env) || a.Hold(with(), env) || a.Hold(job.Capabilities{KubeVersion: caps.KubeVersion}, env) {
		t.Error("the version and the whole list: answers hold wrongly")
	}
	many := &job.Asked{}
	for i := range 5000 {
		many.NoteAPI(strconv.Itoa(i))
	}
	if a := many.Answers(caps, env); len(a) > 1001 || !a.Hold(caps, env) || a.Hold(with("4999"), env) || a.Hold(with("example.com/v1"), env) {
		t.Errorf("thousands of APIs, noted as %d: answers hold wrongly", len(a))
	}
	var none *job.Asked
	none.NoteKubeVersion()
	if a := none.Answers(caps, env); len(a) != 0 || !a.Hold(with(), nil) {
		t.Error("nothing asked: must hold")
	}
}
