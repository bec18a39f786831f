package helm

import (
	"maps"

	chart "helm.sh/helm/v4/pkg/chart/v2"
)

// keepNulls makes a null that a chart sets for a value of its sub-chart delete that value's default, as a null given by
// the user does and as Helm documents for both. The library (4.3.1) drops such nulls before it comes to the sub-chart, so
// that the default is back. So the default is taken out of the sub-chart here, and the null with it. Where the user says
// something about the value, and where there is no default, the result is the library's own.
//
// The dependencies of c must have been processed: they have their aliases, and c its imported values.
func keepNulls(c *chart.Chart, user map[string]any) {
	dropDefaults(c, c.Values, user)
}

// dropDefaults works on the dependencies of c. says is what c and the charts above it say, user what the user says, both
// as c sees it.
func dropDefaults(c *chart.Chart, says, user map[string]any) {
	for _, dep := range c.Dependencies() {
		name := dep.Name()
		mine, ok := says[name].(map[string]any)
		if !ok {
			continue
		}
		given, isMap := user[name].(map[string]any)
		if _, set := user[name]; set && !isMap {
			continue
		}
		below := over(mine, dep.Values)
		if own, ok := c.Values[name].(map[string]any); ok {
			c.Values = maps.Clone(c.Values)
			c.Values[name] = without(own, own, defaults(dep), given)
		}
		dep.Values = without(dep.Values, mine, dep.Values, given)
		dropDefaults(dep, below, given)
	}
}

// without is values without those for which by says null, defaults has something, and the user says nothing.
func without(values, by, defaults, user map[string]any) map[string]any {
	out := maps.Clone(values)
	for key, said := range by {
		given, isMap := user[key].(map[string]any)
		if _, set := user[key]; set && !isMap {
			continue
		}
		if said == nil {
			if defaults[key] != nil && given == nil {
				delete(out, key)
			}
			continue
		}
		below, ok := said.(map[string]any)
		mine, mineOK := out[key].(map[string]any)
		base, baseOK := defaults[key].(map[string]any)
		if ok && mineOK && baseOK {
			out[key] = without(mine, below, base, given)
		}
	}
	return out
}

// defaults are the values of a chart with those of its dependencies below their names; nulls hide nothing in them.
func defaults(c *chart.Chart) map[string]any {
	all := c.Values
	for _, dep := range c.Dependencies() {
		all = lay(all, map[string]any{dep.Name(): defaults(dep)}, false)
	}
	return all
}

// over is top laid over base; a null in top hides what base has.
func over(top, base map[string]any) map[string]any { return lay(top, base, true) }

// lay makes a new mapping and changes neither top nor base.
func lay(top, base map[string]any, nullsHide bool) map[string]any {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range top {
		if value == nil && out[key] != nil && !nullsHide {
			continue
		}
		upper, ok := value.(map[string]any)
		lower, lowerOK := out[key].(map[string]any)
		if ok && lowerOK {
			value = lay(upper, lower, nullsHide)
		}
		out[key] = value
	}
	return out
}
