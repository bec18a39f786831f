package assess

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

func TestFactsOf(t *testing.T) {
	tests := []struct {
		name, object string
		want         Facts
	}{
		{"deployment", `{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {initContainers: [{image: "init:1"}], containers: [{image: "web:2"}, {image: "web:2"}, {image: "app:1"}, {name: none}]}}}}`,
			Facts{Images: []string{"app:1", "init:1", "web:2"}}},
		{"cron job", `{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {containers: [{image: "job:1"}]}}}}}}`,
			Facts{Images: []string{"job:1"}}},
		{"pod", `{apiVersion: v1, kind: Pod, spec: {containers: [{image: "a:1"}], ephemeralContainers: [{image: "debug:1"}], volumes: [{name: model, image: {reference: "model:3"}}, {name: e, emptyDir: {}}]}}`,
			Facts{Images: []string{"a:1", "debug:1", "model:3"}}},
		{"pod template", `{apiVersion: v1, kind: PodTemplate, template: {spec: {containers: [{image: "t:1"}]}}}`, Facts{Images: []string{"t:1"}}},
		{"custom workload", `{apiVersion: argoproj.io/v1alpha1, kind: Rollout, spec: {template: {spec: {containers: [{image: "r:1"}]}}}}`,
			Facts{Images: []string{"r:1"}}},
		{"wrong shape", `{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: {image: "web:2"}, initContainers: [text]}}}}`, Facts{}},
		{"config map", `{apiVersion: v1, kind: ConfigMap, data: {image: "web:2"}}`, Facts{}},
		{"application", `{apiVersion: argoproj.io/v1alpha1, kind: Application, spec: {source: {repoURL: x}}}`, Facts{Application: true}},
		{"ingress", `{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {tls: [{hosts: [shop.example.com], secretName: tls}], rules: [
			{host: shop.example.com, http: {paths: [{path: /}, {path: /api/*}]}}, {host: open.example.com, http: {paths: [{path: /}]}}]}}`,
			Facts{URLs: []string{"http://open.example.com/", "https://shop.example.com/", "https://shop.example.com/api/"}}},
		{"ingress, wildcard certificate", `{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {tls: [{hosts: ["*.example.com"]}], rules: [
			{host: shop.example.com, http: {paths: [{path: /}]}}, {host: a.shop.example.com, http: {paths: [{path: /}]}}]}}`,
			Facts{URLs: []string{"http://a.shop.example.com/", "https://shop.example.com/"}}},
		{"ingress, certificate for all", `{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {tls: [{secretName: tls}], rules: [{host: a.example.com, http: {paths: [{}]}}]}}`,
			Facts{URLs: []string{"https://a.example.com"}}},
		{"ingress without a host", `{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {rules: [{http: {paths: [{path: /}]}}]}, status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}}`,
			Facts{URLs: []string{"http://192.0.2.1/"}}},
		{"ingress without an address", `{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {rules: [{http: {paths: [{path: /}]}}]}}`, Facts{}},
		{"ingress, default links off", `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {annotations: {argocd.argoproj.io/ignore-default-links: "true", link.argocd.argoproj.io/a: "Shop|https://shop.example.com"}}, spec: {rules: [{host: a, http: {paths: [{path: /}]}}]}}`,
			Facts{URLs: []string{"Shop|https://shop.example.com"}}},
		{"load balancer", `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer, ports: [{port: 80}, {port: 443, protocol: TCP}, {port: 8080, name: http-admin}, {port: 8443, appProtocol: https}, {port: 5432, name: db}, {port: 53, protocol: UDP, name: http}]}, status: {loadBalancer: {ingress: [{hostname: lb.example.com}]}}}`,
			Facts{URLs: []string{"http://lb.example.com", "http://lb.example.com:8080", "https://lb.example.com", "https://lb.example.com:8443"}}},
		{"load balancer, IPv6", `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer, ports: [{port: 80}]}, status: {loadBalancer: {ingress: [{ip: "2001:db8::1"}]}}}`,
			Facts{URLs: []string{"http://[2001:db8::1]"}}},
		{"cluster IP", `{apiVersion: v1, kind: Service, spec: {type: ClusterIP, ports: [{port: 80}]}, status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}}`, Facts{}},
		{"service of another group", `{apiVersion: serving.knative.dev/v1, kind: Service, spec: {type: LoadBalancer, ports: [{port: 80}]}, status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}}`, Facts{}},
		{"links", `{apiVersion: v1, kind: ConfigMap, metadata: {annotations: {link.argocd.argoproj.io/a: "https://a.example.com", link.argocd.argoproj.io/b: "Docs|http://b.example.com/x", link.argocd.argoproj.io/c: "javascript:alert(1)", link.argocd.argoproj.io/d: "x|data:text/html,x", other: "https://o.example.com"}}}`,
			Facts{URLs: []string{"Docs|http://b.example.com/x", "https://a.example.com"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			json, err := yaml.YAMLToJSON([]byte(test.object))
			if err != nil {
				t.Fatal(err)
			}
			obj := &unstructured.Unstructured{}
			if err := obj.UnmarshalJSON(json); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, FactsOf(obj)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSummary(t *testing.T) {
	links := []string{"https://docs.example.com"}
	got := Summary(links, []Facts{
		{Images: []string{"b:1", "a:1"}, URLs: []string{"https://shop.example.com"}},
		{Images: []string{"a:1"}, URLs: []string{"https://docs.example.com"}}, {Application: true},
	})
	want := v1alpha1.ApplicationSummary{
		Images: []string{"a:1", "b:1"}, ExternalURLs: []string{"https://docs.example.com", "https://shop.example.com"}, IsAppOfApps: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(v1alpha1.ApplicationSummary{}, Summary(nil, nil)); diff != "" {
		t.Errorf("of nothing (-want +got):\n%s", diff)
	}
}
