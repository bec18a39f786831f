package webhook_test

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/internal/webhook"
)

const after = "b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1"

const pushed = `{
  "ref": "refs/heads/env/b2b", "before": "a0", "after": "` + after + `", "created": false, "forced": false,
  "repository": {"clone_url": "https://Forge.Example.org/Team/App.git", "ssh_url": "git@forge.example.org:Team/App.git",
    "html_url": "https://forge.example.org/Team/App", "default_branch": "main"},
  "commits": [
    {"added": ["b.yaml"], "removed": [], "modified": ["a.yaml"]},
    {"added": [], "removed": ["c/d.yaml"], "modified": ["a.yaml"]}
  ]
}`

func header(kv ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(kv); i += 2 {
		h.Set(kv[i], kv[i+1])
	}
	return h
}

func sign(h func() hash.Hash, secret, body string) string {
	mac := hmac.New(h, []byte(secret))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

func TestPush(t *testing.T) {
	want := webhook.Event{RepoURLs: []string{"forge.example.org/Team/App"}, Refs: []string{"refs/heads/env/b2b"}, DefaultBranch: "main"}
	form := url.Values{"payload": {pushed}}.Encode()
	for name, in := range map[string]struct {
		h    http.Header
		body string
	}{
		"json":  {header("X-GitHub-Event", "push", "Content-Type", "application/json"), pushed},
		"form":  {header("X-GitHub-Event", "push", "Content-Type", "application/x-www-form-urlencoded"), form},
		"gogs":  {header("X-Gogs-Event", "push"), pushed},
		"extra": {header("X-GitHub-Event", "push"), strings.Replace(pushed, `"before"`, `"pusher": {"name": 1}, "before"`, 1)},
	} {
		got, err := parse(in.h, in.body, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func parse(h http.Header, body string, secrets webhook.Secrets) (webhook.Event, error) {
	return webhook.Parse(webhook.Request{Header: h, Body: []byte(body)}, secrets)
}

func TestSignature(t *testing.T) {
	good256 := "sha256=" + sign(sha256.New, "s3cret", pushed)
	good1 := "sha1=" + sign(sha1.New, "s3cret", pushed)
	for _, tc := range []struct {
		name, header, value string
		ok                  bool
	}{
		{"sha256", "X-Hub-Signature-256", good256, true},
		{"sha1", "X-Hub-Signature", good1, true},
		{"gogs", "X-Gogs-Signature", sign(sha256.New, "s3cret", pushed), true},
		{"none", "X-Other", "", false},
		{"other secret", "X-Hub-Signature-256", "sha256=" + sign(sha256.New, "other", pushed), false},
		{"not hex", "X-Hub-Signature-256", "sha256=zz", false},
		{"empty sum", "X-Hub-Signature-256", "sha256=", false},
		{"sha1 in place of sha256", "X-Hub-Signature-256", good1, false},
	} {
		h := header("X-GitHub-Event", "push", tc.header, tc.value)
		_, err := parse(h, pushed, webhook.Secrets{"webhook.github.secret": "s3cret"})
		var told *webhook.Error
		if tc.ok != (err == nil) || err != nil && (!errors.As(err, &told) || told.Status != http.StatusUnauthorized) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	// A wrong strong signature is not made good by a right weak one.
	h := header("X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256="+strings.Repeat("00", 32), "X-Hub-Signature", good1)
	if _, err := parse(h, pushed, webhook.Secrets{"webhook.github.secret": "s3cret"}); err == nil {
		t.Error("the strongest signature must decide")
	}
}

func TestRefusedAndIgnored(t *testing.T) {
	for _, tc := range []struct {
		kind, body string
		status     int
		want       string
	}{
		{"push", `{"ref": `, 400, "webhook: the body is not the JSON of a push event: unexpected end of JSON input at byte 8"},
		{"push", `{"ref": 3}`, 400, "webhook: the body is not the JSON of a push event: the field ref has the wrong type"},
		{"push", `{"ref": "refs/heads/x"}`, 400, "webhook: the push event names no repository"},
		{"push", `{"repository": {"clone_url": "https://h/x"}}`, 400, "webhook: the push event names no ref"},
		{"push", `{"ref": "refs/heads/x", "repository": {"clone_url": "ext::sh -c id"}}`, 400, "webhook: the push event names no repository"},
		{"", pushed, 400, "webhook: nothing in the request tells who sent it; docs/webhooks.md lists the senders"},
	} {
		_, err := parse(header("X-GitHub-Event", tc.kind), tc.body, nil)
		var told *webhook.Error
		if !errors.As(err, &told) || told.Status != tc.status || told.Error() != tc.want {
			t.Errorf("%s: got %v, want %s", tc.body, err, tc.want)
		}
	}
	for _, kind := range []string{"ping", "issues"} {
		e, err := parse(header("X-GitHub-Event", kind), `{"zen": "x"}`, nil)
		if err != nil || e.Ignored == "" || webhook.Affects(e, webhook.Source{RepoURL: "https://h/x"}) {
			t.Errorf("%s: %+v, %v", kind, e, err)
		}
	}
}

func TestRead(t *testing.T) {
	if data, err := webhook.Read(strings.NewReader("12345"), 5); err != nil || string(data) != "12345" {
		t.Errorf("%q, %v", data, err)
	}
	var told *webhook.Error
	if _, err := webhook.Read(strings.NewReader("123456"), 5); !errors.As(err, &told) || told.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("%v", err)
	}
}

// C055: branches with a slash, full names, and every form of the URL.
func TestAffects(t *testing.T) {
	e, err := parse(header("X-GitHub-Event", "push"), pushed, nil)
	if err != nil {
		t.Fatal(err)
	}
	onMain, onTag, onLater := e, e, e
	onMain.Refs = []string{"refs/heads/main"}
	onTag.Refs = []string{"refs/tags/v1.2.0"}
	onLater.Refs = []string{"refs/heads/later/x"}
	const https = "https://forge.example.org/Team/App.git"
	for _, tc := range []struct {
		event       webhook.Event
		url, target string
		want        bool
	}{
		{e, https, "env/b2b", true},
		{e, https, "refs/heads/env/b2b", true},
		{e, https, "b2b", false},
		{e, https, "HEAD", false},
		{e, https, "", false},
		{e, https, "refs/tags/env/b2b", false},
		{e, https, strings.Repeat("a", 40), false},
		{e, "git@forge.example.org:Team/App.git", "env/b2b", true},
		{e, "ssh://git@forge.example.org:2222/Team/App", "env/b2b", true},
		{e, "https://FORGE.example.org/team/app/", "env/b2b", true},
		{e, "https://user@forge.example.org/Team/App", "env/b2b", true},
		{e, "https://forge.example.org/Team/App2", "env/b2b", false},
		{e, "https://forge.example.com/Team/App", "env/b2b", false},
		{onMain, https, "HEAD", true},
		{onMain, https, "", true},
		{onMain, https, "main", true},
		{onLater, https, "later/x", true},
		{onTag, https, "1.x", true},
		{onTag, https, ">=1.0.0 <2", true},
		{onTag, https, "v1.2.0", true},
		{onTag, https, "main", false},
		{onTag, https, "tags/v1.2.0", true},
		{onTag, https, strings.Repeat("1", 40), false},
	} {
		if got := webhook.Affects(tc.event, webhook.Source{RepoURL: tc.url, TargetRevision: tc.target}); got != tc.want {
			t.Errorf("%s, %s at %q: %v", tc.event.Refs, tc.url, tc.target, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	kinds := []http.Header{
		header("X-GitHub-Event", "push"), header("X-GitHub-Event", "repository"), header("X-GitHub-Event", "package"), header("X-Gitlab-Event", "x"),
		header("X-Event-Key", "repo:push", "X-Hook-UUID", "x"), header("X-Event-Key", "repo:refs_changed"), header("X-Vss-Activityid", "x"), {},
	}
	f.Add(byte(0), []byte(pushed))
	for i, s := range samples() {
		f.Add(byte(i), []byte(s.body))
	}
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		e, err := parse(kinds[int(kind)%len(kinds)], string(body), nil)
		if err != nil || e.Ignored != "" {
			return
		}
		if len(e.RepoURLs)+len(e.Artifacts) == 0 || len(e.Refs)+len(e.Artifacts)+len(e.Formerly) == 0 {
			t.Errorf("accepted without repository or ref: %+v", e)
		}
		for _, ref := range e.Refs {
			if !strings.HasPrefix(ref, "refs/") {
				t.Errorf("accepted the ref %q", ref)
			}
		}
		webhook.Affects(e, webhook.Source{RepoURL: "https://h/x"})
	})
}
