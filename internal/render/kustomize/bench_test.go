package kustomize_test

import (
	"testing"

	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/render/kustomize"
)

func BenchmarkRender(b *testing.B) {
	files := parseArchive(edited)
	for b.Loop() {
		if _, err := kustomize.Render(b.Context(), job.Input{Tree: files, Path: "app"}, nil); err != nil {
			b.Fatal(err)
		}
	}
}
