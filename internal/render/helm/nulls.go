package helm

import (
	"maps"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

// keepNulls makes a null that a chart sets for a value of its sub-chart delete that value's default, as a null given by
// the user does and as Helm documents for both. The library (4.3.1) drops such nulls before it comes to the sub-chart, so
// that the default is back. Here they are put among the user's values, where nothing of the user's or of a chart above
// says otherwise and where there is a default to delete; anywhere else the result is the library's own.
func keepNulls(c *chart.Chart, values map[string]any) {
	lift(c, values, values)
}

// lift works on the dependencies of c. values is where nulls go, above is what c and all that is over it say.
func lift(c *chart.Chart, values, above map[string]any) {
	above = over(above, c.Values)
	for name, dep := range byName(c) {
		mine, ok := above[name].(map[string]any)
		if !ok {
			continue
		}
		given, exists := values[name].(map[string]any)
		if _, other := values[name]; other && !exists {
			continue // not a mapping: the library refuses it
		}
		if !exists {
			given = map[string]any{}
		}
		putNulls(given, mine, defaults(dep))
		lift(dep, given, mine)
		if exists || len(given) > 0 {
			values[name] = given
		}
	}
}

// byName are the dependencies of c under the names that values know them by.
func byName(c *chart.Chart) map[string]*chart.Chart {
	named := map[string]*chart.Chart{}
	listed := map[*chart.Chart]bool{}
	for _, req := range c.Metadata.Dependencies {
		for _, dep := range c.Dependencies() {
			if req == nil || dep.Name() != req.Name || !chartutil.IsCompatibleRange(req.Version, dep.Metadata.Version) {
				continue
			}
			name := req.Name
			if req.Alias != "" {
				name = req.Alias
			}
			named[name] = dep
			listed[dep] = true
			break
		}
	}
	for _, dep := range c.Dependencies() {
		if _, taken := named[dep.Name()]; !taken && !listed[dep] {
			named[dep.Name()] = dep
		}
	}
	return named
}

// putNulls writes the nulls of from into values where there is a default that they delete.
func putNulls(values, from, defaults map[string]any) {
	for key, value := range from {
		base, ok := defaults[key]
		if !ok || base == nil {
			continue
		}
		if value == nil {
			if _, set := values[key]; !set {
				values[key] = nil
			}
			continue
		}
		below, isMap := value.(map[string]any)
		baseBelow, baseIsMap := base.(map[string]any)
		if !isMap || !baseIsMap {
			continue
		}
		given, exists := values[key].(map[string]any)
		if _, other := values[key]; other && !exists {
			continue
		}
		if !exists {
			given = map[string]any{}
		}
		putNulls(given, below, baseBelow)
		if exists || len(given) > 0 {
			values[key] = given
		}
	}
}

// defaults are the values of a chart with those of its dependencies below their names.
func defaults(c *chart.Chart) map[string]any {
	all := c.Values
	for name, dep := range byName(c) {
		all = over(all, map[string]any{name: defaults(dep)})
	}
	return all
}

// over is top laid over base; a null in top hides what base has. Neither is changed.
func over(top, base map[string]any) map[string]any {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range top {
		if upper, ok := value.(map[string]any); ok {
			if lower, ok := out[key].(map[string]any); ok {
				out[key] = over(upper, lower)
				continue
			}
		}
		out[key] = value
	}
	return out
}
