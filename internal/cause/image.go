package cause

import (
	"strings"

	"github.com/lockstep-cd/lockstep/internal/field"
)

// pullKind is a way in which pulling an image fails, with the words by which registries and container runtimes tell it.
type pullKind struct {
	reason Reason
	signs  []string
	what   string
	next   string
}

// pullKinds in the order in which they are tried: a registry that limits also denies.
func pullKinds() []pullKind {
	return []pullKind{
		{ImageRateLimited, []string{"toomanyrequests", "too many requests", "rate limit", "429"}, "the registry limits how often images are pulled", "wait, give the pod credentials of the registry (imagePullSecrets), or use a mirror"},
		{ImagePlatform, []string{"no match for platform", "no matching manifest for"}, "it is not built for the node's platform", "build the image for the platform of the nodes, or choose other nodes"},
		{ImageForbidden, []string{"unauthorized", "authentication required", "access denied", "denied:", "forbidden", "401", "403", "no basic auth credentials", "insufficient_scope", "authorization failed"}, "the registry gives no permission, or has no such repository", "check the image's name and the pod's imagePullSecrets"},
		{ImageNotFound, []string{"not found", "manifest unknown", "name unknown", "does not exist", "404"}, "there is no such image", "correct the image's name or tag, or push it"},
		{RegistryAway, []string{"no such host", "connection refused", "i/o timeout", "dial tcp", "timeout", "deadline exceeded", "eof", "x509", "tls:", "server misbehaving", "connection reset", "500 ", "502", "503", "504", "no route to host"}, "the registry can not be reached", "check the registry, and the network and DNS of the nodes"},
	}
}

// pullFailure explains why a container's image can not be pulled.
func pullFailure(n *node, who string, container field.Map) candidate {
	image := container.Text("image")
	// In the back-off older kubelets say nothing more than that; the events still do.
	for _, text := range append([]string{container.Text("state", "waiting", "message")}, n.messages("Failed", "ErrImagePull")...) {
		if image != "" && !strings.Contains(text, image) {
			continue
		}
		// What follows the name of the image is the reason; a tag must not be taken for one.
		_, detail, _ := strings.Cut(text, image)
		detail = strings.ToLower(strings.ReplaceAll(detail, strings.ToLower(image), ""))
		for _, kind := range pullKinds() {
			for _, sign := range kind.signs {
				if strings.Contains(detail, sign) {
					return n.cause(kind.reason, fails, who+" can not pull image "+image+": "+kind.what, kind.next)
				}
			}
		}
	}
	return n.cause(ImageNotPulled, fails, who+" can not pull image "+image, "read the pod's events; check the image's name and the pod's imagePullSecrets")
}

// messages of all events with one of some reasons, the newest first.
func (n *node) messages(reasons ...string) []string {
	var all []string
	for _, event := range n.events {
		for _, reason := range reasons {
			if event.Text("reason") == reason {
				all = append(all, message(event))
			}
		}
	}
	return all
}
