package assess

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ingressAddresses is a URL for each host and path. A rule without a host is reached at the address of the load balancer.
func ingressAddresses(obj *unstructured.Unstructured) []string {
	var result []string
	balancer := first(balancers(obj))
	secure := secureHosts(obj)
	for _, rule := range objects(obj.Object, "spec", "rules") {
		host, _ := rule["host"].(string)
		if host == "" {
			host = balancer
		}
		if host == "" {
			continue
		}
		scheme := "http://"
		if secure(host) {
			scheme = "https://"
		}
		for _, path := range objects(rule, "http", "paths") {
			below, _ := path["path"].(string)
			result = append(result, scheme+host+strings.TrimSuffix(below, "*"))
		}
	}
	return result
}

// secureHosts tells for which hosts an Ingress ends TLS. An entry without hosts holds for all.
func secureHosts(obj *unstructured.Unstructured) func(host string) bool {
	entries := objects(obj.Object, "spec", "tls")
	return func(host string) bool {
		for _, entry := range entries {
			hosts, _, _ := unstructured.NestedStringSlice(entry, "hosts")
			if len(hosts) == 0 || slices.ContainsFunc(hosts, func(pattern string) bool { return covers(pattern, host) }) {
				return true
			}
		}
		return false
	}
}

// covers tells whether a host, or one with * as its first label, is that of a certificate.
func covers(pattern, host string) bool {
	if pattern == host {
		return true
	}
	domain, wild := strings.CutPrefix(pattern, "*.")
	_, parent, _ := strings.Cut(host, ".")
	return wild && parent == domain
}

// serviceAddresses is a URL for each address and TCP port of a load balancer. Ports that are not HTTP by their number,
// name or application protocol have none: nobody could open it.
func serviceAddresses(obj *unstructured.Unstructured) []string {
	if kind, _, _ := unstructured.NestedString(obj.Object, "spec", "type"); kind != "LoadBalancer" {
		return nil
	}
	var result []string
	for _, host := range balancers(obj) {
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		for _, port := range objects(obj.Object, "spec", "ports") {
			if address := portAddress(host, port); address != "" {
				result = append(result, address)
			}
		}
	}
	return result
}

// portAddress is the URL of a port; empty when it does not speak HTTP.
func portAddress(host string, port map[string]any) string {
	number, _ := port["port"].(int64)
	name, _ := port["name"].(string)
	protocol, _ := port["appProtocol"].(string)
	transport, _ := port["protocol"].(string)
	if transport != "" && transport != "TCP" {
		return ""
	}
	switch {
	case number == 443:
		return "https://" + host
	case number == 80:
		return "http://" + host
	case protocol == "https", name == "https", strings.HasPrefix(name, "https-"):
		return "https://" + host + ":" + strconv.FormatInt(number, 10)
	case protocol == "http", name == "http", strings.HasPrefix(name, "http-"):
		return "http://" + host + ":" + strconv.FormatInt(number, 10)
	}
	return ""
}

// balancers are the host names or addresses of the load balancer.
func balancers(obj *unstructured.Unstructured) []string {
	var result []string
	for _, entry := range objects(obj.Object, "status", "loadBalancer", "ingress") {
		host, _ := entry["hostname"].(string)
		if host == "" {
			host, _ = entry["ip"].(string)
		}
		if host != "" {
			result = append(result, host)
		}
	}
	return result
}

func first(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return texts[0]
}
