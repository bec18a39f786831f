package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

func TestFixedRevisions(t *testing.T) {
	cases := []struct {
		sources int
		texts   []string
		want    []string
		fault   string
	}{
		{1, nil, nil, ""},
		{1, []string{"v2"}, []string{"v2"}, ""},
		{1, []string{"1:v2"}, []string{"v2"}, ""},
		{1, []string{"sha256:abc"}, []string{"sha256:abc"}, ""},
		{1, []string{"v1", "v2"}, nil, "one source"},
		{1, []string{"2:v2"}, nil, "has 1 sources"},
		{3, []string{"2:v2"}, []string{"", "v2", ""}, ""},
		{3, []string{"3:1.x", "1:main"}, []string{"main", "", "1.x"}, ""},
		{3, []string{"a", "b", "c"}, []string{"a", "b", "c"}, ""},
		{3, []string{"v2"}, nil, "POSITION:REVISION"},
		{3, []string{"1:a", "b"}, nil, "exclude each other"},
		{3, []string{"1:a", "1:b"}, nil, "twice"},
		{3, []string{"0:a"}, nil, "the first is 1"},
	}
	for _, c := range cases {
		app := &v1alpha1.Application{}
		app.Name = "shop"
		if c.sources == 1 {
			app.Spec.Source = &v1alpha1.ApplicationSource{}
		} else {
			app.Spec.Sources = make([]v1alpha1.ApplicationSource, c.sources)
		}
		got, err := fixedRevisions(app, c.texts)
		if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) || !slices.Equal(got, c.want) {
			t.Errorf("%d sources, %v: %v, %v", c.sources, c.texts, got, err)
		}
	}
}
