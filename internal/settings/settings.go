// Package settings owns what administrators set in ConfigMap argocd-cm: reading its keys into typed values with their
// defaults, and telling which of them can not be read. It is pure: who watches the ConfigMap passes its data in. It
// imports nothing of ours.
package settings

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// ConfigMap is the object, in Lockstep's namespace, that the settings stand in.
const ConfigMap = "argocd-cm"

// Method is how a live object tells which application it belongs to.
type Method string

// The methods; MethodAnnotation is the default.
const (
	// MethodAnnotation: the tracking annotation, which names the object itself and so can not be copied by accident.
	MethodAnnotation Method = "annotation"
	// MethodBoth: as MethodAnnotation; the label is set for other tools and decides nothing.
	MethodBoth Method = "annotation+label"
	// MethodLabel: the label, which needs a record of what was applied besides, since labels are copied.
	MethodLabel Method = "label"
)

// DefaultInstanceLabel is the label that names the application where no other is set.
const DefaultInstanceLabel = "app.kubernetes.io/instance"

// The keys that are read.
const (
	methodKey       = "application.resourceTrackingMethod"
	labelKey        = "application.instanceLabelKey"
	installationKey = "installationID"
)

// Tracking says how objects are marked. The zero value is not valid; see Default.
type Tracking struct {
	Method Method
	// Label is the key of the label that names the application.
	Label string
	// Installation tells several installations on one cluster apart; empty for none.
	Installation string
}

// Settings are all values.
type Settings struct {
	Tracking Tracking
}

// Default is what holds without the ConfigMap.
func Default() Settings {
	return Settings{Tracking: Tracking{Method: MethodAnnotation, Label: DefaultInstanceLabel}}
}

// Read reads the ConfigMap's data. A value that can not be used is named in the second result, and its default holds.
func Read(data map[string]string) (Settings, []error) {
	s := Default()
	var bad []error
	switch m := Method(strings.TrimSpace(data[methodKey])); m {
	case "":
	case MethodAnnotation, MethodBoth, MethodLabel:
		s.Tracking.Method = m
	default:
		bad = append(bad, fmt.Errorf("%s: %s: %q is no tracking method; %s is used (others are %s and %s)",
			ConfigMap, methodKey, shorten(string(m)), MethodAnnotation, MethodBoth, MethodLabel))
	}
	if label := strings.TrimSpace(data[labelKey]); label != "" {
		if problems := validation.IsQualifiedName(label); len(problems) > 0 {
			bad = append(bad, fmt.Errorf("%s: %s: %q is no key of a label (prefix/name, at most 63 letters, digits, -, _ and . in name); %s is used",
				ConfigMap, labelKey, shorten(label), DefaultInstanceLabel))
		} else {
			s.Tracking.Label = label
		}
	}
	s.Tracking.Installation = strings.TrimSpace(data[installationKey])
	return s, bad
}

// shorten keeps what somebody else wrote from filling a log.
func shorten(text string) string {
	const longest = 80
	if len(text) > longest {
		return text[:longest] + "…"
	}
	return text
}

// LabelValue is the label's value for an application's name: cut to the 63 characters that a label holds, and so that it
// ends in a letter or digit, as the API server demands. Long names that begin alike have one value.
func LabelValue(application string) string {
	if len(application) <= validation.LabelValueMaxLength {
		return application
	}
	return strings.TrimRight(application[:validation.LabelValueMaxLength], "-_.")
}
