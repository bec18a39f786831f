package lua

import (
	"context"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/health"
)

// What the settings keys of scripts begin with.
const (
	healthPrefix = "resource.customizations.health."
	libsPrefix   = "resource.customizations.useOpenLibs."
)

// Overrides compiles the scripts of the settings resource.customizations.health.<group>_<Kind>, with libraries where
// resource.customizations.useOpenLibs.<group>_<Kind> is "true"; a kind without group is <Kind> alone, and * stands for any
// characters. Scripts that can not be compiled are left out and told as errors, one for each: the others still work.
func Overrides(settings map[string]string, limits Limits) ([]health.Override, []error) {
	var (
		overrides []health.Override
		errs      []error
	)
	for _, key := range sortedKeys(settings) {
		name, ok := strings.CutPrefix(key, healthPrefix)
		if !ok || name == "" {
			continue
		}
		script, err := Compile(key, settings[key], Options{OpenLibs: settings[libsPrefix+name] == "true", Limits: limits})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		overrides = append(overrides, script.override(name))
	}
	return overrides, errs
}

// sortedKeys are keys without wildcards first, then in the order of their names: the closest decides.
func sortedKeys(settings map[string]string) []string {
	var plain, wild []string
	for key := range settings {
		if strings.Contains(key, "*") {
			wild = append(wild, key)
		} else {
			plain = append(plain, key)
		}
	}
	slices.Sort(plain)
	slices.Sort(wild)
	return append(plain, wild...)
}

// override asks the script about objects of a kind, given as in the settings key. A script that fails makes them Unknown.
func (s *Script) override(name string) health.Override {
	return func(ctx context.Context, obj *unstructured.Unstructured) (v1alpha1.HealthStatus, bool, bool) {
		kind := obj.GroupVersionKind()
		of := kind.Group + "_" + kind.Kind
		if kind.Group == "" {
			of = kind.Kind
		}
		if fits, err := path.Match(name, of); err != nil || !fits {
			return v1alpha1.HealthStatus{}, false, false
		}
		status, has, err := s.Health(ctx, obj.Object)
		if err != nil {
			return v1alpha1.HealthStatus{Status: v1alpha1.HealthUnknown, Message: err.Error()}, true, true
		}
		return status, has, true
	}
}
