package faults_test

import (
	"testing"

	"github.com/lockstep-cd/lockstep/test/program"
)

func TestMain(m *testing.M) { program.Main(m) }
