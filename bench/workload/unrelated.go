package workload

import (
	"fmt"
	"strings"
)

// UnrelatedNamespaces is the number of namespaces of objects that no application declares.
const UnrelatedNamespaces = 50

// UnrelatedNamespace is the name of the namespace n of these.
func UnrelatedNamespace(n int) string { return fmt.Sprintf("others-%02d", n) }

// UnrelatedObject is object i that no application declares, and the path to create it at: half of them are of a kind that
// applications use, half are ConfigMaps with a kilobyte.
func UnrelatedObject(i int) (path string, object map[string]any) {
	namespace, name := UnrelatedNamespace(i%UnrelatedNamespaces), fmt.Sprintf("other-%06d", i)
	meta := map[string]any{"name": name, "namespace": namespace, "labels": map[string]any{"app.kubernetes.io/name": name}}
	if i%2 == 0 {
		return "/api/v1/namespaces/" + namespace + "/serviceaccounts", map[string]any{
			"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta,
		}
	}
	return "/api/v1/namespaces/" + namespace + "/configmaps", map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": map[string]any{"text": strings.Repeat("0123456789abcdef", 64)},
	}
}
