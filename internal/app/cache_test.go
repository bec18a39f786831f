package app_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

func (p *place) secrets() dynamic.ResourceInterface {
	return p.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(p.namespace)
}

// cacheKey is the key of the rendering cache in the cluster.
func (p *place) cacheKey() string {
	p.t.Helper()
	u, err := p.secrets().Get(p.t.Context(), "lockstep-keys", metav1.GetOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	text, _, _ := unstructured.NestedString(u.Object, "data", "rendering-cache")
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != 32 {
		p.t.Fatalf("key of %d bytes, %v", len(key), err)
	}
	return string(key)
}

// TestKeyOfTheRenderingCache: made once, kept over restarts, replaced when it is gone or no key, and never on the disk.
func TestKeyOfTheRenderingCache(t *testing.T) {
	p := newPlace(t)
	o := p.options()
	run := func() string {
		t.Helper()
		process := start(t, o)
		process.ready()
		if err := process.stop(); err != nil {
			t.Fatal(err)
		}
		return process.log.String()
	}
	run()
	first := p.cacheKey()
	if log := run(); p.cacheKey() != first || strings.Contains(log, "thrown away") {
		t.Errorf("a restart made another key:\n%s", log)
	}
	mark, err := os.ReadFile(filepath.Join(o.DataDir, "renderings", "mark"))
	if err != nil || strings.Contains(string(mark), first) {
		t.Errorf("mark %q, %v", mark, err)
	}
	if err := p.secrets().Delete(t.Context(), "lockstep-keys", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if log := run(); strings.Count(log, "the rendering cache is thrown away") != 1 || !strings.Contains(log, "another key") {
		t.Errorf("that the cache went with its key is not told once:\n%s", log)
	}
	second := p.cacheKey()
	if second == first {
		t.Error("the key came back after it was gone")
	}
	again, err := os.ReadFile(filepath.Join(o.DataDir, "renderings", "mark"))
	if err != nil || string(again) == string(mark) {
		t.Errorf("the cache of the old key stays: %v", err)
	}

	secret := func(data map[string]any, immutable bool) {
		t.Helper()
		_ = p.secrets().Delete(t.Context(), "lockstep-keys", metav1.DeleteOptions{})
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "lockstep-keys"}, "data": data, "immutable": immutable,
		}}
		if _, err := p.secrets().Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	secret(map[string]any{"rendering-cache": "eA==", "other": "eQ=="}, false)
	run()
	if p.cacheKey() == second {
		t.Error("the old key came back")
	}
	u, err := p.secrets().Get(t.Context(), "lockstep-keys", metav1.GetOptions{})
	if other, _, _ := unstructured.NestedString(u.Object, "data", "other"); err != nil || other != "eQ==" {
		t.Errorf("another key of the Secret is gone: %q, %v", other, err)
	}
	secret(nil, true)
	if log := run(); !strings.Contains(log, "no rendering cache") || !strings.Contains(log, "lockstep-keys") {
		t.Errorf("a key that can not be kept is not told:\n%s", log)
	}
}
