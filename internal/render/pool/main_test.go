package pool_test

import (
	"os"
	"testing"

	"github.com/lockstep-cd/lockstep/internal/render/worker"
)

func TestMain(m *testing.M) {
	worker.Branch(hostile)
	if len(os.Args) == 2 {
		if role := roles()[os.Args[1]]; role != nil {
			role()
		}
	}
	os.Exit(m.Run())
}
