// Package kube owns the benchmark's plain access to the API server: a client without a rate limit that sends and receives
// text, and the counters that the API server keeps about itself.
//
// It may depend on prom and client-go's REST client, never on Lockstep's packages: what measures must not share what is measured.
package kube

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-cd/lockstep/bench/prom"
)

// Client is a REST client for any path, without a client-side rate limit.
func Client(kubeconfig string) (rest.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	config.GroupVersion = &schema.GroupVersion{}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: client: %w", kubeconfig, err)
	}
	return client, nil
}

// Applications is the path of the Applications of a namespace.
func Applications(namespace string) string {
	return "/apis/argoproj.io/v1alpha1/namespaces/" + namespace + "/applications"
}

// Writes are writing requests that the API server has answered, by resource. Those that the control plane makes on its
// own are not in it: leases, nodes, statuses of others.
type Writes map[string]int64

// CountWrites reads the API server's own counters, which also know of writes that changed nothing and that no watch shows.
func CountWrites(ctx context.Context, client rest.Interface) (Writes, error) {
	text, err := client.Get().AbsPath("/metrics").SetHeader("Accept", "text/plain").Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("api server: metrics: %w", err)
	}
	return parseWrites(text)
}

func parseWrites(text []byte) (Writes, error) {
	samples, err := prom.Read(text, "apiserver_request_total")
	if err != nil {
		return nil, fmt.Errorf("api server: %w", err)
	}
	w := Writes{}
	for _, s := range samples {
		if !writing(s.Labels) {
			continue
		}
		name := s.Labels["resource"]
		if s.Labels["group"] != "" {
			name += "." + s.Labels["group"]
		}
		w[name] += int64(s.Value)
	}
	return w, nil
}

// writing leaves out trials, which write nothing, and what the control plane does without being asked: its leases, its
// reviews of rights, its tokens, the statuses of its objects and the children it makes.
func writing(l map[string]string) bool {
	if l["dry_run"] != "" {
		return false
	}
	switch l["verb"] {
	case "POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION":
	default:
		return false
	}
	switch l["resource"] {
	case "leases", "nodes", "subjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "tokenreviews",
		"replicasets", "endpoints", "endpointslices", "ipaddresses", "controllerrevisions", "":
		return false
	}
	return l["subresource"] == ""
}

// Minus is what was written between before and w.
func (w Writes) Minus(before Writes) Writes {
	d := Writes{}
	for name, n := range w {
		if n -= before[name]; n != 0 {
			d[name] = n
		}
	}
	return d
}

// Total is the number of all writes.
func (w Writes) Total() int64 {
	var sum int64
	for _, n := range w {
		sum += n
	}
	return sum
}

// String lists what was written, most first.
func (w Writes) String() string {
	names := slices.SortedFunc(maps.Keys(w), func(a, b string) int { return cmp.Or(cmp.Compare(w[b], w[a]), cmp.Compare(a, b)) })
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = fmt.Sprintf("%d %s", w[name], name)
	}
	return strings.Join(parts, ", ")
}
