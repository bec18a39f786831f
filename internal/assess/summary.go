package assess

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// Facts is what the summary takes from one object; small enough to be kept in its place.
type Facts struct {
	// Images of the containers of its pods.
	Images []string
	// URLs it is reached at from outside, and links people put on it (a URL, or Title|URL).
	URLs []string
	// Application tells that the object is an application.
	Application bool
}

// The annotations of links.
const (
	linkPrefix         = "link.argocd.argoproj.io/"
	ignoreDefaultLinks = "argocd.argoproj.io/ignore-default-links"
)

// FactsOf reads one live or declared object. Lists are sorted and hold nothing twice.
func FactsOf(obj *unstructured.Unstructured) Facts {
	kind := obj.GroupVersionKind().GroupKind()
	return Facts{
		Images:      unique(images(obj)),
		URLs:        unique(append(Links(obj.GetAnnotations()), addresses(obj)...)),
		Application: kind.Group == v1alpha1.Group && kind.Kind == v1alpha1.ApplicationKind,
	}
}

// Summary gathers the facts of an application's objects and the links on the application itself.
func Summary(links []string, objects []Facts) v1alpha1.ApplicationSummary {
	urls := slices.Clone(links)
	var images []string
	result := v1alpha1.ApplicationSummary{}
	for _, facts := range objects {
		urls = append(urls, facts.URLs...)
		images = append(images, facts.Images...)
		result.IsAppOfApps = result.IsAppOfApps || facts.Application
	}
	result.ExternalURLs, result.Images = unique(urls), unique(images)
	return result
}

// Links are the links that annotations name, as they are written: a URL, or Title|URL. Only http and https addresses are
// links: what a browser would run as a script must not become one.
func Links(annotations map[string]string) []string {
	var result []string
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if !strings.HasPrefix(key, linkPrefix) {
			continue
		}
		link := annotations[key]
		target := link
		if _, after, titled := strings.Cut(link, "|"); titled {
			target = after
		}
		if isWebAddress(target) {
			result = append(result, link)
		}
	}
	return result
}

func isWebAddress(text string) bool {
	scheme, rest, ok := strings.Cut(strings.TrimSpace(text), "://")
	scheme = strings.ToLower(scheme)
	return ok && (scheme == "http" || scheme == "https") && rest != "" && !strings.ContainsAny(rest, " \t\r\n\"<>")
}

// images are those of the pod template, wherever the kind keeps it.
func images(obj *unstructured.Unstructured) []string {
	var result []string
	for _, path := range podSpecs(obj.GetKind()) {
		spec, found, err := unstructured.NestedFieldNoCopy(obj.Object, path...)
		if err != nil || !found {
			continue
		}
		for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
			for _, container := range objects(spec, list) {
				image, _ := container["image"].(string)
				result = append(result, image)
			}
		}
		// A volume may be an image as well.
		for _, volume := range objects(spec, "volumes") {
			reference, _, _ := unstructured.NestedString(volume, "image", "reference")
			result = append(result, reference)
		}
	}
	return result
}

// podSpecs are the places where an object of a kind may hold the spec of pods. Custom workloads follow the built-in ones.
func podSpecs(kind string) [][]string {
	switch kind {
	case "Pod":
		return [][]string{{"spec"}}
	case "CronJob":
		return [][]string{{"spec", "jobTemplate", "spec", "template", "spec"}}
	case "PodTemplate":
		return [][]string{{"template", "spec"}}
	}
	return [][]string{{"spec", "template", "spec"}}
}

// addresses are where an Ingress or a Service of type LoadBalancer is reached.
func addresses(obj *unstructured.Unstructured) []string {
	if off, _ := strconv.ParseBool(obj.GetAnnotations()[ignoreDefaultLinks]); off {
		return nil
	}
	switch kind := obj.GroupVersionKind().GroupKind().String(); kind {
	case "Ingress.networking.k8s.io", "Ingress.extensions":
		return ingressAddresses(obj)
	case "Service":
		return serviceAddresses(obj)
	}
	return nil
}

// objects are the entries of a list that are objects.
func objects(parent any, path ...string) []map[string]any {
	object, _ := parent.(map[string]any)
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	entries, _ := value.([]any)
	result := make([]map[string]any, 0, len(entries))
	for _, entry := range entries {
		if item, ok := entry.(map[string]any); ok {
			result = append(result, item)
		}
	}
	return result
}
