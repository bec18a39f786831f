package project_test

import (
	"strings"
	"testing"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/project"
)

func TestRulesThatCanNotBeKeptAreNotPassedOver(t *testing.T) {
	gpg := func(mode string) *v1alpha1.SourceIntegrity {
		return &v1alpha1.SourceIntegrity{Git: &v1alpha1.SourceIntegrityGit{Policies: []*v1alpha1.SourceIntegrityGitPolicy{
			{GPG: &v1alpha1.SourceIntegrityGitPolicyGPG{Mode: mode}},
		}}}
	}
	for name, c := range map[string]struct {
		spec v1alpha1.AppProjectSpec
		want string
	}{
		"nothing":      {v1alpha1.AppProjectSpec{}, ""},
		"keys":         {v1alpha1.AppProjectSpec{SignatureKeys: []v1alpha1.SignatureKey{{KeyID: "1"}}}, ""},
		"integrity":    {v1alpha1.AppProjectSpec{SourceIntegrity: gpg("paranoid")}, `mode "paranoid"`},
		"no integrity": {v1alpha1.AppProjectSpec{SourceIntegrity: gpg("none")}, ""},
		"accounts": {v1alpha1.AppProjectSpec{DestinationServiceAccounts: []v1alpha1.ApplicationDestinationServiceAccount{{Server: "*"}}},
			"destinationServiceAccounts"},
		"clusters": {v1alpha1.AppProjectSpec{PermitOnlyProjectScopedClusters: true}, "clusters of its own"},
	} {
		err := project.Of(&v1alpha1.AppProject{Spec: c.spec}).Enforceable()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	windows := project.Of(&v1alpha1.AppProject{Spec: v1alpha1.AppProjectSpec{SyncWindows: v1alpha1.SyncWindows{{Kind: "deny"}}}})
	if windows.Windows() == nil || project.Of(&v1alpha1.AppProject{}).Windows() != nil {
		t.Error("windows must hold automated syncs up, and only they")
	}
}
