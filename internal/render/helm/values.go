package helm

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/strvals"

	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// Values is one text of values and where it comes from.
type Values struct {
	// File names the text in messages.
	File string
	// Text is YAML; later documents are laid over earlier ones.
	Text []byte
}

// merge lays the texts over each other; what comes later wins, mappings are merged.
func merge(texts []Values) (map[string]any, error) {
	all := map[string]any{}
	for _, v := range texts {
		one, err := loader.LoadValues(bytes.NewReader(v.Text))
		if err != nil {
			return nil, yamlError(v.File, err)
		}
		all = loader.MergeMaps(all, one)
	}
	return all, nil
}

// Parameter is one value set by its path, in the grammar of --set.
type Parameter struct {
	Name, Value string
	// String keeps the value text, as --set-string does.
	String bool
	// Literal takes the value as it is, as --set-file does with the content of a file.
	Literal bool
}

// set lays parameters over the values: first those of --set, then of --set-string, then of --set-file, as Helm does
// whatever their order.
func set(values map[string]any, parameters []Parameter) error {
	for _, p := range parameters {
		if p.String || p.Literal {
			continue
		}
		if err := strvals.ParseInto(p.Name+"="+escapeCommas(p.Value), values); err != nil {
			return p.error(err)
		}
	}
	for _, p := range parameters {
		if !p.String || p.Literal {
			continue
		}
		if err := strvals.ParseIntoString(p.Name+"="+escapeCommas(p.Value), values); err != nil {
			return p.error(err)
		}
	}
	for _, p := range parameters {
		if !p.Literal {
			continue
		}
		content := func([]rune) (any, error) { return p.Value, nil }
		if err := strvals.ParseIntoFile(p.Name+"=file", values, content); err != nil {
			return p.error(err)
		}
	}
	return nil
}

// escapeCommas keeps commas part of the value: a parameter sets one value. A list in braces keeps its own commas.
func escapeCommas(value string) string {
	if strings.HasPrefix(value, "{") && strings.HasSuffix(value, "}") {
		return value
	}
	var out strings.Builder
	escaped := false
	for _, r := range value {
		if r == ',' && !escaped {
			out.WriteByte('\\')
		}
		escaped = r == '\\' && !escaped
		out.WriteRune(r)
	}
	return out.String()
}

var quotedText = regexp.MustCompile(`"[^"]*"|` + "`[^`]*`")

func (p Parameter) error(err error) error {
	// Quoted parts may be of the value.
	reason := quotedText.ReplaceAllStringFunc(err.Error(), func(s string) string {
		if strings.Contains(p.Name, strings.Trim(s, "\"`")) {
			return s
		}
		return "…"
	})
	return &job.Error{Reason: fmt.Sprintf("Helm parameter %s: %s", p.Name, reason)}
}
