package buildenv_test

import (
	"testing"

	"github.com/lockstep-cd/lockstep/internal/render/buildenv"
)

func TestSubstitute(t *testing.T) {
	t.Setenv("HOME", "/of/the/process")
	env := map[string]string{"ARGOCD_APP_NAME": "web", "A": "$ARGOCD_APP_NAME"}
	for in, want := range map[string]string{
		"":                            "",
		"plain":                       "plain",
		"$ARGOCD_APP_NAME":            "web",
		"x-${ARGOCD_APP_NAME}-y":      "x-web-y",
		"$$ARGOCD_APP_NAME":           "$ARGOCD_APP_NAME",
		"$${ARGOCD_APP_NAME}":         "${ARGOCD_APP_NAME}",
		"[$HOME]":                     "[]",
		"$A":                          "$ARGOCD_APP_NAME",
		"100$":                        "100$",
		"$ARGOCD_APP_NAME/$NOT_KNOWN": "web/",
	} {
		if got := buildenv.Substitute(in, func(name string) string { return env[name] }); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
}
