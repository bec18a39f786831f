// Package custom owns how people overrule the built-in health: it makes the rules of health from the settings, out of scripts
// in Lua, expressions in CEL, tables, and classes that give no address (reference/argocd.md §2.14, §3.2; docs/health.md).
package custom

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/lockstep-cd/lockstep/internal/health"
	"github.com/lockstep-cd/lockstep/internal/health/cel"
	"github.com/lockstep-cd/lockstep/internal/health/lua"
	"github.com/lockstep-cd/lockstep/internal/health/table"
)

// The keys of tables and of classes without address; package lua and cel have theirs.
const (
	tableKey   = "health.table"
	addressKey = "health.withoutAddress"
)

// Rules are what settings say about health.
type Rules struct {
	health.Rules
	// Digest tells rules from others: those with the same are the same.
	Digest string
}

// Of makes rules from settings: scripts first, expressions next, classes without address, tables by the names of their keys.
// What can not be used is left out and told, one error each; the rest works.
func Of(settings map[string]string) (Rules, []error) {
	var r Rules
	scripts, bad := lua.Overrides(settings, lua.Limits{})
	expressions, errs := cel.Overrides(settings, cel.Limits{})
	bad = append(bad, errs...)
	r.Overrides = slices.Concat(scripts, expressions)
	if classes := settings[addressKey]; classes != "" {
		override, err := health.WithoutAddress(classes)
		if err != nil {
			bad = append(bad, fmt.Errorf("%s: %w", addressKey, err))
		} else {
			r.Overrides = append(r.Overrides, override)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if key != tableKey && !strings.HasPrefix(key, tableKey+".") {
			continue
		}
		t, err := table.Parse(key, []byte(settings[key]))
		if err != nil {
			bad = append(bad, err)
			continue
		}
		r.Tables = append(r.Tables, t)
	}
	r.Digest = digest(settings)
	return r, bad
}

// digest is empty when the settings say nothing about health.
func digest(settings map[string]string) string {
	h, any := sha256.New(), false
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if !strings.HasPrefix(key, "health.") && !strings.HasPrefix(key, "resource.customizations.health.") &&
			!strings.HasPrefix(key, "resource.customizations.useOpenLibs.") {
			continue
		}
		any = true
		for _, text := range []string{key, settings[key]} {
			_, _ = fmt.Fprintf(h, "%d:", len(text)) // a hash does not fail to be written to
			_, _ = io.WriteString(h, text)
		}
	}
	if !any {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
