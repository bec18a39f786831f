package custom_test

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/internal/health/custom"
)

func of(t *testing.T, rules custom.Rules, text string) string {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	h, has := rules.Of(context.Background(), u)
	if !has {
		return "none"
	}
	return strings.TrimSpace(string(h.Status) + " " + h.Message)
}

func TestOf(t *testing.T) {
	rules, bad := custom.Of(map[string]string{
		"resource.customizations.health.example.com_Shop": `return {status = obj.status.state, message = "by a script"}`,
		"health.cel.example.com_*":                        `{"status": "Degraded", "message": "by an expression"}`,
		"health.table": `
- project: Shop
  source: https://example.com
  kinds: [Till.shop.example.com]
  rules:
    - {when: [{field: status.open, is: "true"}], health: Healthy}
  otherwise: {health: Suspended, message: it is closed}
`,
		"health.withoutAddress": "internal, Service/tailscale*",
		"url":                   "https://cd.example.com",
	})
	if len(bad) != 0 {
		t.Fatal(bad)
	}
	for object, want := range map[string]string{
		`{apiVersion: example.com/v1, kind: Shop, metadata: {name: a}, status: {state: Healthy}}`:                                                                  "Healthy by a script",
		`{apiVersion: example.com/v1, kind: Street, metadata: {name: a}}`:                                                                                          "Degraded by an expression",
		`{apiVersion: shop.example.com/v1, kind: Till, metadata: {name: a}, status: {open: true}}`:                                                                 "Healthy",
		`{apiVersion: shop.example.com/v1, kind: Till, metadata: {name: a}, status: {open: false}}`:                                                                "Suspended it is closed",
		`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}, spec: {ingressClassName: internal}}`:                                               "Healthy",
		`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, annotations: {kubernetes.io/ingress.class: internal}}}`:                             "Healthy",
		`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}, spec: {ingressClassName: tailscale}}`:                                              "Progressing it waits for an address from its ingress controller",
		`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}}`:                                                                                   "Progressing it waits for an address from its ingress controller",
		`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer, loadBalancerClass: tailscale-a}}`:                                         "Healthy",
		`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer}}`:                                                                         "Progressing it waits for a load-balancer address",
		`{apiVersion: v1, kind: Service, metadata: {name: a, deletionTimestamp: "2026-01-01T00:00:00Z"}, spec: {type: LoadBalancer, loadBalancerClass: internal}}`: "Progressing it is being deleted",
	} {
		if got := of(t, rules, object); got != want {
			t.Errorf("%s: %s, want %s", object, got, want)
		}
	}
}

// What can not be used is told, key and reason, and the rest works.
func TestOfBad(t *testing.T) {
	rules, bad := custom.Of(map[string]string{
		"resource.customizations.health.A": "return {",
		"resource.customizations.health.B": `return {status = "Healthy"}`,
		"health.cel.C":                     "obj.",
		"health.table.d":                   "- project: Shop",
		"health.withoutAddress":            "Pod/x",
	})
	for i, want := range []string{"resource.customizations.health.A", "health.cel.C", "health.withoutAddress: \"Pod/x\" is no class", "health.table.d:1: the entry names no kinds"} {
		if len(bad) != 4 || !strings.Contains(bad[i].Error(), want) {
			t.Fatalf("problems %v; want %s", bad, want)
		}
	}
	if got := of(t, rules, `{apiVersion: v1, kind: B, metadata: {name: a}}`); got != "Healthy" {
		t.Error(got)
	}
}

func TestDigest(t *testing.T) {
	digest := func(data map[string]string) string { r, _ := custom.Of(data); return r.Digest }
	one := map[string]string{"health.withoutAddress": "a", "url": "x"}
	if digest(nil) != "" || digest(map[string]string{"url": "x"}) != "" {
		t.Error("settings that say nothing about health have a digest")
	}
	if digest(one) == "" || digest(one) != digest(map[string]string{"health.withoutAddress": "a"}) {
		t.Error("the same rules have another digest")
	}
	for _, other := range []map[string]string{
		{"health.withoutAddress": "b"},
		{"health.withoutAddress": "a", "resource.customizations.useOpenLibs.A": "true"},
		{"health.withoutAddress": "a", "health.cel.A": "'Healthy'"},
	} {
		if digest(one) == digest(other) {
			t.Errorf("%v has the digest of %v", other, one)
		}
	}
}
