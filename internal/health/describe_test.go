package health

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/internal/health/table"
)

// With LOCKSTEP_UPDATE set it writes the page anew.
func TestReference(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "health.md")
	var got bytes.Buffer
	Describe(&got)
	if os.Getenv("LOCKSTEP_UPDATE") != "" {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("docs/health.md is not what the rules say; run make generate (-file +rules):\n%s", diff)
	}
}

// The table that the page shows can be read as it stands there.
func TestShownTableCanBeRead(t *testing.T) {
	_, text, _ := strings.Cut(form, "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	if _, err := table.Parse("shown.yaml", []byte(text)); err != nil {
		t.Error(err)
	}
}
