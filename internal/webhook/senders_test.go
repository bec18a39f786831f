package webhook_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/internal/webhook"
)

// sample is an event of a sender with what it means and who follows it.
type sample struct {
	name   string
	header http.Header
	body   string
	want   webhook.Event
	// concerns are sources that the event concerns; not are some that it does not.
	concerns, not []webhook.Source
}

func git(repo, target string) webhook.Source {
	return webhook.Source{RepoURL: repo, TargetRevision: target}
}

func samples() []sample {
	return append(forges(), registries()...)
}

func forges() []sample {
	return []sample{
		{
			"gitlab push", header("X-Gitlab-Event", "Push Hook"),
			`{"object_kind": "push", "ref": "refs/heads/env/b2b", "project": {"default_branch": "main", "web_url": "https://lab.example.org/g/s/app",
			  "git_http_url": "https://lab.example.org/g/s/app.git", "git_ssh_url": "git@lab.example.org:g/s/app.git"}}`,
			webhook.Event{RepoURLs: []string{"lab.example.org/g/s/app"}, Refs: []string{"refs/heads/env/b2b"}, DefaultBranch: "main"},
			[]webhook.Source{git("https://lab.example.org/g/s/app", "env/b2b"), git("ssh://git@lab.example.org:2222/g/s/app.git", "refs/heads/env/b2b")},
			[]webhook.Source{git("https://lab.example.org/g/s/app", "b2b"), git("https://lab.example.org/g/s/app", "")},
		},
		{
			"gitlab tag, system hook", header("X-Gitlab-Event", "System Hook"),
			`{"event_name": "tag_push", "ref": "refs/tags/v1.1.0", "project": {"git_http_url": "https://lab.example.org/g/app.git"}}`,
			webhook.Event{RepoURLs: []string{"lab.example.org/g/app"}, Refs: []string{"refs/tags/v1.1.0"}},
			[]webhook.Source{git("https://lab.example.org/g/app", "1.x"), git("https://lab.example.org/g/app", "v1.1.0")},
			[]webhook.Source{git("https://lab.example.org/g/app", "HEAD"), git("https://lab.example.org/g/app", "main")},
		},
		{
			"gitlab rename", header("X-Gitlab-Event", "System Hook", "X-Gitlab-Instance", "https://lab.example.org/sub"),
			`{"event_name": "project_rename", "path_with_namespace": "g/new", "old_path_with_namespace": "g/old"}`,
			webhook.Event{RepoURLs: []string{"lab.example.org/sub/g/new"}, Formerly: []string{"lab.example.org/sub/g/old"}}, nil, nil,
		},
		{
			"github rename", header("X-GitHub-Event", "repository"),
			`{"action": "renamed", "repository": {"name": "new", "clone_url": "https://forge.example.org/t/new.git", "ssh_url": "git@forge.example.org:t/new.git"},
			  "changes": {"repository": {"name": {"from": "old"}}}}`,
			webhook.Event{RepoURLs: []string{"forge.example.org/t/new"}, Formerly: []string{"forge.example.org/t/old"}}, nil, nil,
		},
		{
			"bitbucket cloud", header("X-Event-Key", "repo:push", "X-Hook-UUID", "u-1"),
			`{"repository": {"full_name": "team/app", "links": {"html": {"href": "https://bitbucket.org/team/app"}}},
			  "push": {"changes": [{"new": {"type": "branch", "name": "env/b2b"}, "old": {"type": "branch", "name": "env/b2b"}},
			  {"new": null, "old": {"type": "branch", "name": "gone"}}, {"new": {"type": "tag", "name": "v2"}, "old": null}]}}`,
			webhook.Event{RepoURLs: []string{"bitbucket.org/team/app"}, Refs: []string{"refs/heads/env/b2b", "refs/heads/gone", "refs/tags/v2"}},
			[]webhook.Source{git("git@bitbucket.org:team/app.git", "env/b2b"), git("https://u@bitbucket.org/team/app", "gone"), git("https://bitbucket.org/team/app.git", "")},
			[]webhook.Source{git("https://bitbucket.org/team/app.git", "b2b"), git("https://bitbucket.org/team/other", "env/b2b")},
		},
		{
			"bitbucket data center", header("X-Event-Key", "repo:refs_changed", "X-Request-Id", "1"),
			`{"repository": {"slug": "app", "project": {"key": "TEAM"}, "links": {"clone": [{"href": "https://bb.example.org/scm/team/app.git", "name": "http"},
			  {"href": "ssh://git@bb.example.org:7999/team/app.git", "name": "ssh"}]}}, "changes": [{"ref": {"id": "refs/heads/env/b2b"}, "type": "UPDATE"}]}`,
			webhook.Event{RepoURLs: []string{"bb.example.org/scm/team/app", "bb.example.org:7999/team/app"}, Refs: []string{"refs/heads/env/b2b"}},
			[]webhook.Source{git("https://bb.example.org/scm/TEAM/app.git", "env/b2b"), git("ssh://git@bb.example.org:7999/team/app.git", "HEAD")},
			[]webhook.Source{git("https://bb.example.org/scm/team/app2.git", "env/b2b")},
		},
		{
			"bitbucket data center without clone links", header("X-Event-Key", "repo:refs_changed"),
			`{"repository": {"slug": "app", "project": {"key": "TEAM"}, "links": {"self": [{"href": "https://bb.example.org/ctx/projects/TEAM/repos/app/browse"}]}},
			  "changes": [{"refId": "refs/heads/main"}]}`,
			webhook.Event{RepoURLs: []string{"bb.example.org/ctx/scm/team/app", "bb.example.org/team/app"}, Refs: []string{"refs/heads/main"}},
			[]webhook.Source{git("https://bb.example.org/ctx/scm/team/app.git", "main"), git("ssh://git@bb.example.org:7999/team/app.git", "main")}, nil,
		},
		{
			"azure", header("X-Vss-Activityid", "1"),
			`{"eventType": "git.push", "publisherId": "tfs", "resource": {"refUpdates": [{"name": "refs/heads/env/b2b"}],
			  "repository": {"remoteUrl": "https://dev.azure.com/org/shop/_git/shop", "defaultBranch": "refs/heads/main"}}}`,
			webhook.Event{RepoURLs: []string{
				"dev.azure.com/org/_git/shop", "dev.azure.com/org/shop/_git/shop", "org.visualstudio.com/DefaultCollection/shop/_git/shop",
				"org.visualstudio.com/_git/shop", "org.visualstudio.com/shop/_git/shop", "ssh.dev.azure.com/v3/org/shop/shop", "vs-ssh.visualstudio.com/v3/org/shop/shop",
			}, Refs: []string{"refs/heads/env/b2b"}, DefaultBranch: "main"},
			[]webhook.Source{
				git("https://org@dev.azure.com/org/shop/_git/shop", "env/b2b"), git("git@ssh.dev.azure.com:v3/org/shop/shop", "env/b2b"),
				git("https://org.visualstudio.com/_git/shop", "refs/heads/env/b2b"),
			},
			[]webhook.Source{git("https://dev.azure.com/org/shop/_git/shop", "HEAD"), git("https://dev.azure.com/org/shop/_git/other", "env/b2b")},
		},
		{
			"azure of the old host, without header", http.Header{},
			`{"eventType": "git.push", "publisherId": "tfs", "resource": {"refUpdates": [{"name": "refs/heads/main"}],
			  "repository": {"remoteUrl": "https://org.visualstudio.com/DefaultCollection/shop/_git/web", "defaultBranch": "refs/heads/main"}}}`,
			webhook.Event{RepoURLs: []string{
				"dev.azure.com/org/shop/_git/web", "org.visualstudio.com/DefaultCollection/shop/_git/web", "org.visualstudio.com/shop/_git/web",
				"ssh.dev.azure.com/v3/org/shop/web", "vs-ssh.visualstudio.com/v3/org/shop/web",
			}, Refs: []string{"refs/heads/main"}, DefaultBranch: "main"},
			[]webhook.Source{git("https://dev.azure.com/org/shop/_git/web", "HEAD")}, nil,
		},
		{
			"codecommit over EventBridge", http.Header{},
			`{"source": "aws.codecommit", "region": "eu-west-1", "detail": {"repositoryName": "app", "referenceFullName": "refs/heads/env/b2b"}}`,
			webhook.Event{RepoURLs: []string{"git-codecommit.eu-west-1.amazonaws.com/v1/repos/app"}, Refs: []string{"refs/heads/env/b2b"}},
			[]webhook.Source{git("https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/app", "env/b2b"), git("ssh://K@git-codecommit.eu-west-1.amazonaws.com/v1/repos/app", "")}, nil,
		},
		{
			"codecommit over SNS", header("X-Amz-Sns-Message-Type", "Notification"),
			`{"Type": "Notification", "TopicArn": "arn:x", "Message": "{\"Records\":[{\"eventSourceARN\":\"arn:aws:codecommit:cn-north-1:1:app\",\"codecommit\":{\"references\":[{\"ref\":\"refs/heads/main\"}]}}]}"}`,
			webhook.Event{RepoURLs: []string{"git-codecommit.cn-north-1.amazonaws.com.cn/v1/repos/app"}, Refs: []string{"refs/heads/main"}}, nil, nil,
		},
		{
			"a subscription to confirm", header("X-Amz-Sns-Message-Type", "SubscriptionConfirmation"),
			`{"Type": "SubscriptionConfirmation", "TopicArn": "arn:x", "SubscribeURL": "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription"}`,
			webhook.Event{
				Ignored: "the subscription of an SNS topic waits for its confirmation; the server's log has the address to open",
				Confirm: "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription",
			}, nil, []webhook.Source{git("https://h/x", "")},
		},
		{
			"a subscription that leads elsewhere", header("X-Amz-Sns-Message-Type", "SubscriptionConfirmation"),
			`{"Type": "SubscriptionConfirmation", "SubscribeURL": "https://sns.eu-west-1.amazonaws.com.evil.example/"}`,
			webhook.Event{Ignored: "the subscription of an SNS topic waits for its confirmation; the server's log has the address to open"}, nil, nil,
		},
	}
}

func registries() []sample {
	artifact := func(name string) webhook.Event { return webhook.Event{Artifacts: []string{name}} }
	chart := webhook.Source{RepoURL: "registry.example.org/charts", Chart: "web", TargetRevision: "1.x"}
	oci := webhook.Source{RepoURL: "oci://Registry.example.org/charts/web", TargetRevision: "latest"}
	other := webhook.Source{RepoURL: "registry.example.org/charts", Chart: "api", TargetRevision: "*"}
	return []sample{
		{
			"harbor", http.Header{}, `{"type": "PUSH_ARTIFACT", "event_data": {"resources": [{"tag": "1.0", "resource_url": "registry.example.org/charts/web:1.0"}]}}`,
			artifact("registry.example.org/charts/web"), []webhook.Source{chart, oci}, []webhook.Source{other, git("https://registry.example.org/charts/web", "")},
		},
		{
			"harbor, CloudEvents", header("Ce-Type", "harbor.artifact.pushed"), `{"resources": [], "type": "harbor.artifact.pushed",
			  "data": {"resources": [{"resource_url": "registry.example.org/charts/web@sha256:00"}]}}`,
			artifact("registry.example.org/charts/web"), []webhook.Source{chart}, nil,
		},
		{
			"harbor, a pull", http.Header{}, `{"type": "PULL_ARTIFACT", "event_data": {"resources": [{"resource_url": "registry.example.org/charts/web:1"}]}}`,
			webhook.Event{Ignored: "event PULL_ARTIFACT"}, nil, []webhook.Source{chart},
		},
		{
			"distribution", http.Header{}, `{"events": [{"action": "pull", "target": {"repository": "x/y"}, "request": {"host": "h"}},
			  {"action": "push", "target": {"repository": "charts/web", "url": "https://registry.example.org:5000/v2/charts/web/manifests/1"}}]}`,
			artifact("registry.example.org:5000/charts/web"), []webhook.Source{oci}, nil,
		},
		{
			"azure container registry", http.Header{}, `{"action": "push", "target": {"repository": "charts/web", "tag": "1"}, "request": {"host": "registry.example.org"}}`,
			artifact("registry.example.org/charts/web"), []webhook.Source{oci}, nil,
		},
		{
			"quay", http.Header{}, `{"repository": "charts/web", "docker_url": "registry.example.org/charts/web", "updated_tags": ["1"]}`,
			artifact("registry.example.org/charts/web"), []webhook.Source{oci}, nil,
		},
		{
			"docker hub", http.Header{}, `{"push_data": {"tag": "1"}, "repository": {"repo_name": "team/web"}}`,
			artifact("registry-1.docker.io/team/web"), []webhook.Source{{RepoURL: "oci://docker.io/team/web"}, {RepoURL: "registry-1.docker.io/team", Chart: "web"}}, nil,
		},
		{
			"ghcr", header("X-GitHub-Event", "package"),
			`{"action": "published", "package": {"package_type": "CONTAINER", "package_version": {"package_url": "ghcr.io/team/web:1.0"}}}`,
			artifact("ghcr.io/team/web"), []webhook.Source{{RepoURL: "oci://ghcr.io/team/web"}}, nil,
		},
		{
			"gitea's registry", header("X-GitHub-Event", "package", "X-Gogs-Event", "package"),
			`{"action": "created", "package": {"type": "container", "name": "web", "html_url": "https://tea.example.org/team/-/packages/container/web/1", "owner": {"login": "team"}}}`,
			artifact("tea.example.org/team/web"), []webhook.Source{{RepoURL: "oci://tea.example.org/team/web"}}, nil,
		},
		{
			"ecr", http.Header{}, `{"source": "aws.ecr", "account": "123", "region": "eu-west-1", "detail": {"action-type": "PUSH", "repository-name": "charts/web"}}`,
			artifact("123.dkr.ecr.eu-west-1.amazonaws.com/charts/web"), []webhook.Source{{RepoURL: "123.dkr.ecr.eu-west-1.amazonaws.com/charts", Chart: "web"}}, nil,
		},
	}
}

func TestSenders(t *testing.T) {
	for _, s := range samples() {
		got, err := parse(s.header, s.body, nil)
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
			continue
		}
		if diff := cmp.Diff(s.want, got); diff != "" {
			t.Errorf("%s: %s", s.name, diff)
		}
		for _, source := range s.concerns {
			if !webhook.Affects(got, source) {
				t.Errorf("%s does not concern %+v", s.name, source)
			}
		}
		for _, source := range s.not {
			if webhook.Affects(got, source) {
				t.Errorf("%s concerns %+v", s.name, source)
			}
		}
	}
}

// Once one secret is set nobody gets in without: neither by the wrong one nor as another sender.
func TestSecretsOfSenders(t *testing.T) {
	basic := func(user, password string) string {
		r := http.Request{Header: http.Header{}}
		r.SetBasicAuth(user, password)
		return r.Header.Get("Authorization")
	}
	find := func(name string) sample {
		for _, s := range samples() {
			if s.name == name {
				return s
			}
		}
		t.Fatalf("no sample %s", name)
		return sample{}
	}
	for _, tc := range []struct {
		sample  string
		secrets webhook.Secrets
		header  []string
		query   string
		want    string
	}{
		{"gitlab push", webhook.Secrets{"webhook.gitlab.secret": "s"}, []string{"X-Gitlab-Token", "s"}, "", ""},
		{"gitlab push", webhook.Secrets{"webhook.gitlab.secret": "s"}, []string{"X-Gitlab-Token", "no"}, "", "is not the one of webhook.gitlab.secret"},
		{"gitlab push", webhook.Secrets{"webhook.gitlab.secret": "s"}, nil, "", "the event shows none"},
		{"gitlab push", webhook.Secrets{"webhook.github.secret": "s"}, []string{"X-Gitlab-Token", "s"}, "", "webhook.github.secret is set and webhook.gitlab.secret is not"},
		{"bitbucket cloud", webhook.Secrets{"webhook.bitbucket.uuid": "{u-1}"}, nil, "", ""},
		{"bitbucket cloud", webhook.Secrets{"webhook.bitbucket.uuid": "u-2"}, nil, "", "is not the one of webhook.bitbucket.uuid"},
		{"bitbucket data center", webhook.Secrets{"webhook.bitbucketserver.secret": "s"}, []string{"X-Hub-Signature", "sha256=00"}, "", "does not match"},
		{"bitbucket data center", webhook.Secrets{"webhook.bitbucketserver.secret": "s"}, nil, "", "is not signed"},
		{"azure", webhook.Secrets{"webhook.azuredevops.username": "u", "webhook.azuredevops.password": "p"}, []string{"Authorization", basic("u", "p")}, "", ""},
		{"azure", webhook.Secrets{"webhook.azuredevops.username": "u", "webhook.azuredevops.password": "p"}, []string{"Authorization", basic("u", "")}, "", "is not the one of"},
		{"azure", webhook.Secrets{"webhook.azuredevops.username": "u"}, []string{"Authorization", basic("x", "")}, "", "is not the one of"},
		{"harbor", webhook.Secrets{"webhook.harbor.secret": "s"}, []string{"Authorization", "s"}, "", ""},
		{"harbor", webhook.Secrets{"webhook.registry.secret": "s"}, []string{"Authorization", "Bearer s"}, "", ""},
		{"harbor", webhook.Secrets{"webhook.harbor.secret": "s"}, nil, "", "the event shows none"},
		{"quay", webhook.Secrets{"webhook.registry.secret": "s"}, nil, "s", ""},
		{"quay", webhook.Secrets{"webhook.registry.secret": "s"}, nil, "no", "is not the one of webhook.registry.secret"},
		{"quay", webhook.Secrets{"webhook.harbor.secret": "s"}, nil, "s", "webhook.harbor.secret is set and webhook.registry.secret is not"},
		{"ecr", webhook.Secrets{"webhook.aws.secret": "s"}, []string{"Authorization", basic("x", "s")}, "", ""},
		{"a subscription to confirm", webhook.Secrets{"webhook.aws.secret": "s"}, nil, "", "the event shows none"},
	} {
		s := find(tc.sample)
		h := s.header.Clone()
		for i := 0; i < len(tc.header); i += 2 {
			h.Set(tc.header[i], tc.header[i+1])
		}
		r := webhook.Request{Header: h, Body: []byte(s.body)}
		if tc.query != "" {
			r.Query = url.Values{"secret": {tc.query}}
		}
		_, err := webhook.Parse(r, tc.secrets)
		switch {
		case tc.want == "" && err != nil, tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s with %v: got %v, want %q", tc.sample, tc.secrets, err, tc.want)
		}
	}
}
