package plan_test

import (
	"testing"

	"github.com/lockstep-cd/lockstep/internal/plan"
)

// Of options that contradict each other the same one counts every time.
func TestOptionsThatContradict(t *testing.T) {
	for range 50 {
		if v, _ := plan.ParseOptions("Replace=true,Replace=false").Value("Replace"); v != "false" {
			t.Fatalf("Replace is %s", v)
		}
	}
}
