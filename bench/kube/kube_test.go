package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const counters = `# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="apps",resource="deployments",scope="resource",subresource="",verb="APPLY",version="v1"} 8
apiserver_request_total{code="201",component="apiserver",dry_run="",group="apps",resource="deployments",scope="resource",subresource="",verb="APPLY",version="v1"} 1000
apiserver_request_total{code="200",component="apiserver",dry_run="All",group="apps",resource="deployments",scope="resource",subresource="",verb="APPLY",version="v1"} 4
apiserver_request_total{code="200",component="apiserver",dry_run="",group="apps",resource="deployments",scope="resource",subresource="status",verb="PUT",version="v1"} 77
apiserver_request_total{code="200",component="apiserver",dry_run="",group="apps",resource="deployments",scope="cluster",subresource="",verb="LIST",version="v1"} 5
apiserver_request_total{code="200",component="apiserver",dry_run="",group="coordination.k8s.io",resource="leases",scope="resource",subresource="",verb="PUT",version="v1"} 1e+03
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="events",scope="resource",subresource="",verb="POST",version="v1"} 2
apiserver_request_duration_seconds_count{resource="events",verb="POST"} 2
`

func TestParseWrites(t *testing.T) {
	got, err := parseWrites([]byte(counters))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Writes{"deployments.apps": 1008, "events": 2}, got); diff != "" {
		t.Error(diff)
	}
	d := got.Minus(Writes{"deployments.apps": 1000, "events": 2})
	if d.Total() != 8 || len(d) != 1 {
		t.Errorf("difference %v", d)
	}
}
