package pool_test

import (
	"os"
	"testing"

	"github.com/lockstep-cd/lockstep/internal/render/worker"
)

func TestMain(m *testing.M) {
	worker.Branch(hostile)
	os.Exit(m.Run())
}
