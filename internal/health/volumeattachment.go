package health

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
	"github.com/lockstep-cd/lockstep/internal/steady"
)

// volumeAttachment is well once its volume is attached.
func volumeAttachment(f field.Map) v1alpha1.HealthStatus {
	switch {
	case f.Flag("status", "attached"):
		return healthy("")
	case f.At("status", "attachError") != nil:
		return degraded("its volume can not be attached: " + steady.Message(f.Text("status", "attachError", "message")))
	}
	return progressing("its volume is not attached yet")
}
