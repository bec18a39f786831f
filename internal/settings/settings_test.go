package settings_test

import (
	"strings"
	"testing"

	"github.com/lockstep-cd/lockstep/internal/settings"
)

func TestRead(t *testing.T) {
	def := settings.Default().Tracking
	for name, c := range map[string]struct {
		data map[string]string
		want settings.Tracking
		bad  []string
	}{
		"nothing":   {nil, def, nil},
		"empty":     {map[string]string{"application.resourceTrackingMethod": " ", "application.instanceLabelKey": "", "installationID": ""}, def, nil},
		"label":     {map[string]string{"application.resourceTrackingMethod": "label"}, settings.Tracking{Method: settings.MethodLabel, Label: settings.DefaultInstanceLabel}, nil},
		"both":      {map[string]string{"application.resourceTrackingMethod": "annotation+label\n"}, settings.Tracking{Method: settings.MethodBoth, Label: settings.DefaultInstanceLabel}, nil},
		"all":       {map[string]string{"application.resourceTrackingMethod": "annotation", "application.instanceLabelKey": "example.com/app", "installationID": "one"}, settings.Tracking{Method: settings.MethodAnnotation, Label: "example.com/app", Installation: "one"}, nil},
		"bad both":  {map[string]string{"application.resourceTrackingMethod": "Label", "application.instanceLabelKey": "no key/at/all"}, def, []string{`"Label" is no tracking method`, `"no key/at/all" is no key of a label`}},
		"very long": {map[string]string{"application.resourceTrackingMethod": strings.Repeat("x", 1000)}, def, []string{"is no tracking method"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, bad := settings.Read(c.data)
			if got.Tracking != c.want {
				t.Errorf("got %+v, want %+v", got.Tracking, c.want)
			}
			if len(bad) != len(c.bad) {
				t.Fatalf("problems %v, want %v", bad, c.bad)
			}
			for i, b := range bad {
				if !strings.Contains(b.Error(), c.bad[i]) || !strings.Contains(b.Error(), settings.ConfigMap) || len(b.Error()) > 400 {
					t.Errorf("problem %q does not say %q", b, c.bad[i])
				}
			}
		})
	}
}

func TestLabelValue(t *testing.T) {
	long := strings.Repeat("a", 61)
	for name, want := range map[string]string{
		"short":             "short",
		"ns_app":            "ns_app",
		long + "bc":         long + "bc",
		long + "bcd":        long + "bc",
		long + "-_dd":       long,
		long + "b.and more": long + "b",
	} {
		if got := settings.LabelValue(name); got != want {
			t.Errorf("LabelValue(%q) = %q, want %q", name, got, want)
		}
	}
}
