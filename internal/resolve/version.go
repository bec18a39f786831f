package resolve

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
)

type constraint = *semver.Constraints

// parseConstraint reads a semver constraint; an exact version is one as well.
func parseConstraint(text string) (constraint, bool) {
	c, err := semver.NewConstraint(text)
	return c, err == nil
}

// highest gives the highest version that the constraint allows. Prereleases count only when the constraint names one, as
// the semver library rules. Names of equal precedence (v1.2.0 and 1.2.0, build metadata) are decided by the text: the last
// in lexical order wins, so that the answer never depends on the order of the list.
func highest(names []string, c constraint) (string, bool) {
	return best(names, func(v *semver.Version) bool { return c.Check(v) })
}

func highestAny(names []string) (string, bool) {
	return best(names, func(*semver.Version) bool { return true })
}

func best(names []string, allowed func(*semver.Version) bool) (string, bool) {
	var top *semver.Version
	name := ""
	for _, n := range names {
		v, err := semver.NewVersion(n)
		if err != nil || !allowed(v) {
			continue
		}
		if top != nil {
			if order := v.Compare(top); order < 0 || order == 0 && n < name {
				continue
			}
		}
		top, name = v, n
	}
	return name, top != nil
}

// Version picks from the versions of a chart. An empty constraint is the newest version that is no prerelease, or the
// newest prerelease where there is nothing else. A constraint that is the text of a version is that version, with or
// without a v before it and whatever its form; else it is a semver range and the highest version it allows is taken.
func Version(versions []string, constraint string) (string, error) {
	text := strings.TrimSpace(constraint)
	if len(versions) == 0 {
		return "", unknown{"there is no version at all"}
	}
	if text == "" {
		return newest(versions)
	}
	if name, ok := exact(versions, text); ok {
		return name, nil
	}
	c, ok := parseConstraint(text)
	if !ok {
		return "", unknown{"no version '" + text + "'" + suggest(text, versions)}
	}
	if name, ok := highest(versions, c); ok {
		return name, nil
	}
	top, ok := highestAny(versions)
	if !ok {
		return "", unknown{fmt.Sprintf("no version that '%s' allows; none of the %d is a semantic version", text, len(versions))}
	}
	if _, err := semver.StrictNewVersion(strings.TrimPrefix(text, "v")); err == nil {
		return "", unknown{fmt.Sprintf("no version '%s'; the highest is '%s'", text, top)}
	}
	return "", unknown{fmt.Sprintf("no version that '%s' allows; the highest is '%s'", text, top)}
}

func newest(versions []string) (string, error) {
	if name, ok := best(versions, func(v *semver.Version) bool { return v.Prerelease() == "" }); ok {
		return name, nil
	}
	if name, ok := highestAny(versions); ok {
		return name, nil
	}
	return "", unknown{fmt.Sprintf("none of the %d versions is a semantic version; name one", len(versions))}
}

// exact finds the version by its text, then by its text without the v.
func exact(versions []string, text string) (string, bool) {
	for _, v := range versions {
		if v == text {
			return v, true
		}
	}
	bare := strings.TrimPrefix(text, "v")
	if _, err := semver.StrictNewVersion(bare); err != nil {
		return "", false // 1.2 is a range, not a spelling of 1.2.0
	}
	for _, v := range versions {
		if strings.TrimPrefix(v, "v") == bare {
			return v, true
		}
	}
	return "", false
}
