package workload

import (
	"fmt"
	"strings"
)

// Kind is a kind of object that the benchmark can deploy.
type Kind struct {
	// Name is the short name in flags and file names.
	Name string
	// Group, Version, Kind and Resource are the API's names.
	Group, Version, Kind, Resource string
	// HasHealth tells that objects of the kind have a health of their own.
	HasHealth bool

	build func(name string, version int) map[string]any
	// byHand is a merge patch that takes a declared field away from its declared value.
	byHand string
}

// DefaultKinds are the four objects of the first benchmark.
func DefaultKinds() []string { return []string{"deployment", "service", "serviceaccount", "ingress"} }

func kinds() []Kind {
	return []Kind{
		{
			Name: "deployment", Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", HasHealth: true,
			build: deployment, byHand: `{"spec":{"revisionHistoryLimit":7}}`,
		},
		{
			Name: "service", Version: "v1", Kind: "Service", Resource: "services", HasHealth: true,
			build: service, byHand: `{"metadata":{"labels":{"app.kubernetes.io/version":"by-hand"}}}`,
		},
		{
			Name: "serviceaccount", Version: "v1", Kind: "ServiceAccount", Resource: "serviceaccounts",
			build: serviceAccount, byHand: `{"automountServiceAccountToken":true}`,
		},
		{
			Name: "ingress", Group: "networking.k8s.io", Version: "v1", Kind: "Ingress", Resource: "ingresses", HasHealth: true,
			build: ingress, byHand: `{"metadata":{"annotations":{"example.org/body-size":"64m"}}}`,
		},
		{
			Name: "configmap", Version: "v1", Kind: "ConfigMap", Resource: "configmaps",
			build: configMap, byHand: `{"data":{"greeting":"changed by hand"}}`,
		},
	}
}

// KindNames are the names that KindOf knows.
func KindNames() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.Name)
	}
	return names
}

// KindOf finds a kind by its short name.
func KindOf(name string) (Kind, error) {
	for _, k := range kinds() {
		if k.Name == name {
			return k, nil
		}
	}
	return Kind{}, fmt.Errorf("objects: %q is unknown; known are %s", name, strings.Join(KindNames(), ", "))
}

// APIVersion is group and version as manifests have them.
func (k Kind) APIVersion() string {
	if k.Group == "" {
		return k.Version
	}
	return k.Group + "/" + k.Version
}

// ListPath is the path of all objects of the kind at the API server.
func (k Kind) ListPath() string {
	if k.Group == "" {
		return "/api/" + k.Version + "/" + k.Resource
	}
	return "/apis/" + k.Group + "/" + k.Version + "/" + k.Resource
}

// ObjectPath is the path of one object.
func (k Kind) ObjectPath(namespace, name string) string {
	list := k.ListPath()
	base := strings.TrimSuffix(list, "/"+k.Resource)
	return base + "/namespaces/" + namespace + "/" + k.Resource + "/" + name
}

// HandChange is a merge patch as a person might make it; Lockstep has to put the field back.
func (k Kind) HandChange() []byte { return []byte(k.byHand) }

func image(version int) string { return fmt.Sprintf("registry.example.org/shop/web:1.0.%d", version) }

func host(name string) string { return name + ".shop.example.org" }

func head(apiVersion, kind, name string, version int) map[string]any {
	return map[string]any{
		"apiVersion": apiVersion,
		"kind":       kind,
		"metadata": map[string]any{
			"name": name,
			"labels": map[string]any{
				"app.kubernetes.io/name":    name,
				"app.kubernetes.io/part-of": "shop",
				"app.kubernetes.io/version": fmt.Sprintf("1.0.%d", version),
			},
		},
	}
}

func deployment(name string, version int) map[string]any {
	o := head("apps/v1", "Deployment", name, version)
	selector := map[string]any{"app.kubernetes.io/name": name}
	o["spec"] = map[string]any{
		"replicas":             0,
		"revisionHistoryLimit": 3,
		"selector":             map[string]any{"matchLabels": selector},
		"template": map[string]any{
			"metadata": map[string]any{"labels": selector},
			"spec": map[string]any{
				"serviceAccountName": name,
				"containers": []any{map[string]any{
					"name":  "web",
					"image": image(version),
					"ports": []any{map[string]any{"name": "http", "containerPort": 8080, "protocol": "TCP"}},
					"env": []any{
						map[string]any{"name": "LOG_LEVEL", "value": "info"},
						map[string]any{"name": "PUBLIC_URL", "value": "https://" + host(name)},
					},
					"resources": map[string]any{
						"requests": map[string]any{"cpu": "50m", "memory": "64Mi"},
						"limits":   map[string]any{"memory": "128Mi"},
					},
					"readinessProbe": map[string]any{
						"httpGet":       map[string]any{"path": "/ready", "port": "http"},
						"periodSeconds": 5,
					},
				}},
			},
		},
	}
	return o
}

func service(name string, version int) map[string]any {
	o := head("v1", "Service", name, version)
	o["spec"] = map[string]any{
		"selector": map[string]any{"app.kubernetes.io/name": name},
		"ports":    []any{map[string]any{"name": "http", "port": 80, "protocol": "TCP", "targetPort": "http"}},
	}
	return o
}

func serviceAccount(name string, version int) map[string]any {
	o := head("v1", "ServiceAccount", name, version)
	o["automountServiceAccountToken"] = false
	return o
}

func ingress(name string, version int) map[string]any {
	o := head("networking.k8s.io/v1", "Ingress", name, version)
	o["metadata"].(map[string]any)["annotations"] = map[string]any{"example.org/body-size": "8m"}
	o["spec"] = map[string]any{
		"rules": []any{map[string]any{
			"host": host(name),
			"http": map[string]any{"paths": []any{map[string]any{
				"path": "/", "pathType": "Prefix",
				"backend": map[string]any{"service": map[string]any{"name": name, "port": map[string]any{"name": "http"}}},
			}}},
		}},
	}
	return o
}

func configMap(name string, version int) map[string]any {
	o := head("v1", "ConfigMap", name, version)
	o["data"] = map[string]any{
		"greeting": fmt.Sprintf("hello from %s, version %d", name, version),
		"settings": strings.Repeat("a line of settings that nobody reads\n", 50),
	}
	return o
}
