package lua

import "github.com/lockstep-cd/lockstep/internal/health"

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
	for _, name := range health.Names(settings, healthPrefix) {
		script, err := Compile(healthPrefix+name, settings[healthPrefix+name], Options{OpenLibs: settings[libsPrefix+name] == "true", Limits: limits})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		overrides = append(overrides, health.OverrideFor(name, script))
	}
	return overrides, errs
}
