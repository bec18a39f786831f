package app

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

const (
	// keysSecret holds keys that outlive the data directory (DESIGN.md §5).
	keysSecret = "lockstep-keys"
	// cacheKeyField is the key of the rendering cache in it.
	cacheKeyField = "rendering-cache"
	// keyAttempts bounds how often another writer of the Secret is waited for.
	keyAttempts = 3
)

// secretKey reads a key out of Secret lockstep-keys, or makes one. A field that holds no key of the size is replaced.
func secretKey(ctx context.Context, client dynamic.Interface, namespace, field string, size int) ([]byte, error) {
	secrets := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(namespace)
	var err error
	for range keyAttempts {
		var u *unstructured.Unstructured
		u, err = secrets.Get(ctx, keysSecret, metav1.GetOptions{})
		missing := apierrors.IsNotFound(err)
		if err != nil && !missing {
			break
		}
		if !missing {
			text, _, _ := unstructured.NestedString(u.Object, "data", field) // what is no text is no key
			if key, derr := base64.StdEncoding.DecodeString(text); derr == nil && len(key) == size {
				return key, nil
			}
		}
		key := make([]byte, size)
		_, _ = rand.Read(key) // never fails
		if missing {
			u = &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
				"metadata": map[string]any{"name": keysSecret, "labels": map[string]any{"app.kubernetes.io/part-of": "lockstep"}},
			}}
		}
		data, _, _ := unstructured.NestedMap(u.Object, "data")
		if data == nil {
			data = map[string]any{}
		}
		data[field] = base64.StdEncoding.EncodeToString(key)
		u.Object["data"] = data
		if missing {
			_, err = secrets.Create(ctx, u, metav1.CreateOptions{})
		} else {
			_, err = secrets.Update(ctx, u, metav1.UpdateOptions{})
		}
		if err == nil {
			return key, nil
		}
		if !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			break
		}
	}
	return nil, fmt.Errorf("secret %s/%s: %w", namespace, keysSecret, err)
}
