package cause

import (
	"regexp"
	"strings"

	"github.com/lockstep-cd/lockstep/internal/steady"
)

var (
	noClass     = regexp.MustCompile(`storageclass(?:es)?(?:\.storage\.k8s\.io)? "([^"]+)" not found`)
	provisioner = regexp.MustCompile(`external provisioner ["']([^"']+)["']`)
)

// claim explains a PersistentVolumeClaim that is not bound.
func (t *tree) claim(n *node) (candidate, bool) {
	switch n.fields.Text("status", "phase") {
	case "Bound":
		return candidate{}, false
	case "Lost":
		return n.cause(ClaimLost, fails, "its volume is gone", "restore the volume, or make the claim anew"), true
	}
	text := n.event("ProvisioningFailed", "FailedBinding", "WaitForFirstConsumer", "WaitForPodScheduled", "ExternalProvisioning", "Provisioning", "VolumeMismatch")
	class := n.fields.Text("spec", "storageClassName")
	switch {
	case noClass.MatchString(text):
		return n.cause(ClaimNoClass, fails, "StorageClass "+noClass.FindStringSubmatch(text)[1]+" is not there", "create the class, or name another"), true
	case strings.Contains(text, "no storage class is set"):
		return n.cause(ClaimNoVolume, fails, "it names no storage class, there is no default one, and no volume fits it", "name a storage class, or make one the default"), true
	case n.event("ProvisioningFailed") != "":
		return n.provisioning(n.event("ProvisioningFailed")), true
	case strings.Contains(text, "waiting for first consumer"), strings.Contains(text, "waiting for pod"):
		return n.cause(ClaimWaitsForPod, echoes, "it waits for the first pod that uses it", "nothing, if a pod will use it; else remove it"), true
	case provisioner.MatchString(text):
		return n.cause(ClaimProvisioning, waits, "it waits for the provisioner "+provisioner.FindStringSubmatch(text)[1], "look whether the provisioner runs"), true
	case strings.Contains(text, "no volume plugin matched"):
		return n.cause(ClaimProvisioning, fails, "nothing provisions volumes of StorageClass "+class, "install the driver of the class, or name another class"), true
	case text != "":
		return n.cause(ClaimNoVolume, blocks, "no volume fits it: "+steady.Message(text), "make a volume that fits, or change the claim"), true
	}
	return n.cause(ClaimProvisioning, echoes, "it is not bound to a volume yet", "look at its events"), true
}

// provisioning explains why a volume can not be made.
func (n *node) provisioning(text string) candidate {
	lower := strings.ToLower(text)
	for _, sign := range []string{"resourceexhausted", "no capacity", "insufficient", "not enough", "out of space", "quota"} {
		if strings.Contains(lower, sign) {
			return n.cause(ClaimNoCapacity, fails, "the storage has no room for a volume of "+n.fields.Text("spec", "resources", "requests", "storage"), "add storage, or ask for less")
		}
	}
	return n.cause(ClaimProvisioning, fails, "its volume can not be made: "+steady.Message(addresses.ReplaceAllString(text, "…")), "look at the storage class and the log of its provisioner")
}
