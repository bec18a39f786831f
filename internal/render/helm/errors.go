package helm

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"sort"
	"strconv"
	"strings"

	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// This file is the one place that reads the library's messages, because they are all it gives: it finds file and line in
// them, and takes values out, which may be secret.

// sourcePath is the path in the tree of a file that Helm names by chart: shop/templates/a.yaml.
func sourcePath(chart, at, name string) string {
	if rest, ok := strings.CutPrefix(name, chart+"/"); ok {
		return path.Join(at, rest)
	}
	return name
}

var (
	// execution: execution error at (shop/templates/a.yaml:3:5): message, of required and fail; parse error at (…): message.
	errorAt = regexp.MustCompile(`(?s)^(?:execution|parse) error (?:at|in) \(([^():]+)(?::(\d+))?(?::\d+)?\): (.*)$`)
	// place is the head of one step in text/template's own messages.
	place = regexp.MustCompile(`template: ([^\s:]+):(\d+)(?::\d+)?: executing "[^"]*" at (<.*?>): `)
	// step is one step of Helm's own form, which has a line each for place, expression and message.
	step = regexp.MustCompile(`(?m)^(\S+?):(\d+)(?::\d+)?\n\s+executing "[^"\n]*" at (<.*?>):$`)

	yamlLine = regexp.MustCompile(`(?s)yaml: line (\d+): (.*)`)
	jsonType = regexp.MustCompile(`json: cannot unmarshal (\w+) into Go (?:value|struct field \S+) of type (\S+)`)
	mismatch = regexp.MustCompile(`type mismatch on ([^:\s]+)`)
)

// tplName is the name of the template that the engine gives to texts passed to tpl.
const tplName = "gotpl"

// templateError is the error of the template engine with its innermost place.
func templateError(chart, at string, err error) error {
	text := err.Error()
	if m := errorAt.FindStringSubmatch(text); m != nil {
		line, _ := strconv.Atoi(m[2])
		return &job.Error{File: sourcePath(chart, at, m[1]), Line: line, Reason: sentence(m[3])}
	}
	for _, form := range []*regexp.Regexp{step, place} {
		all := form.FindAllStringSubmatchIndex(text, -1)
		if len(all) == 0 {
			continue
		}
		last, first := all[len(all)-1], all[0]
		part := func(of []int, n int) string { return text[of[2*n]:of[2*n+1]] }
		reason := "at " + part(last, 3) + ": " + sentence(text[last[1]:])
		// The innermost place may be in a text that tpl got, which has no file.
		for i := len(all) - 1; i > 0 && part(last, 1) == tplName; i-- {
			last = all[i-1]
			reason = "in a text given to tpl, " + strings.TrimPrefix(reason, "in a text given to tpl, ")
		}
		line, _ := strconv.Atoi(part(last, 2))
		if outer := part(first, 1) + ":" + part(first, 2); outer != part(last, 1)+":"+part(last, 2) {
			reason += " (used at " + sourcePath(chart, at, outer) + ")"
		}
		return &job.Error{File: sourcePath(chart, at, part(last, 1)), Line: line, Reason: reason}
	}
	return &job.Error{File: at, Reason: "the templates can't be rendered: " + sentence(text)}
}

// secretParts are parts of messages that hold values, and what stands in their place.
var secretParts = []struct {
	find *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`(?s)error during tpl function execution for ".*": `), "in a text given to tpl: "},
	{regexp.MustCompile(`(?s)cannot parse template ".*": `), "in a text given to tpl: "},
	{regexp.MustCompile(`(?s)range can't iterate over .*`), "range can't iterate over the value"},
	{regexp.MustCompile(`(?s)parsing (time )?".*"`), "parsing the ${1}value"},
	{regexp.MustCompile(`(?s)unable to cast .* of type`), "unable to cast the value of type"},
	{regexp.MustCompile(`template: ` + tplName + `:\d+: `), ""},
	{regexp.MustCompile("`[^`]*`"), "the value"},
}

// sentence is a message in one line and without values.
func sentence(text string) string {
	for _, part := range secretParts {
		text = part.find.ReplaceAllString(text, part.by)
	}
	return strings.Join(strings.Fields(text), " ")
}

// yamlError is the error for a YAML text that can't be read.
func yamlError(file string, err error) error {
	text := err.Error()
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ := strconv.Atoi(m[1])
		return &job.Error{File: file, Line: line, Reason: "no valid YAML: " + sentence(m[2])}
	}
	if m := jsonType.FindStringSubmatch(text); m != nil {
		return &job.Error{File: file, Reason: fmt.Sprintf("%s stands where %s is wanted", found(m[1]), wanted(m[2]))}
	}
	if i := strings.LastIndex(text, " yaml: "); i >= 0 {
		text = text[i+len(" yaml: "):] // the library leaves out line 1
	}
	return &job.Error{File: file, Reason: "no valid YAML: " + sentence(strings.TrimPrefix(text, "yaml: "))}
}

func found(jsonType string) string {
	switch jsonType {
	case "array":
		return "a list"
	case "object":
		return "a mapping"
	case "bool":
		return "a truth value"
	}
	return "a " + jsonType
}

func wanted(goType string) string {
	switch {
	case strings.HasPrefix(goType, "map["), strings.Contains(goType, "."):
		return "a mapping"
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	}
	return "a " + goType
}

// chartError is the error for files that make no chart.
func chartError(at string, err error) error {
	for _, name := range []string{"Chart.yaml", "values.yaml", "Chart.lock", "requirements.yaml", "requirements.lock"} {
		if strings.Contains(err.Error(), "cannot load "+name) {
			return yamlError(path.Join(at, name), err)
		}
	}
	return &job.Error{File: path.Join(at, "Chart.yaml"), Reason: sentence(err.Error())}
}

// valuesError is the error for values that do not fit the charts.
func valuesError(at string, err error) error {
	if m := mismatch.FindStringSubmatch(err.Error()); m != nil {
		return &job.Error{File: at, Reason: fmt.Sprintf("the value %s must be a mapping, because a chart of that name gets its values from it", m[1])}
	}
	return &job.Error{File: at, Reason: "the values don't fit the chart: " + sentence(err.Error())}
}

// sortError finds the template whose text is no YAML; Helm's own message has no line of the whole text.
func sortError(chart, at string, texts map[string]string, err error) error {
	names := make([]string, 0, len(texts))
	for name := range texts {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if strings.HasPrefix(path.Base(name), "_") {
			continue
		}
		docs := releaseutil.SplitManifests(texts[name])
		for i := range len(docs) {
			var head releaseutil.SimpleHead
			err := unmarshal(docs[fmt.Sprintf("manifest-%d", i)], &head)
			if err == nil {
				continue
			}
			return &job.Error{File: sourcePath(chart, at, name), Reason: fmt.Sprintf("renders to %s in document %d", renderedFault(err), i+1)}
		}
	}
	return &job.Error{File: at, Reason: sentence(err.Error())}
}

// renderedFault names what is wrong with rendered text, with its line there.
func renderedFault(err error) string {
	var e *job.Error
	if !errors.As(yamlError("", err), &e) {
		return sentence(err.Error())
	}
	if e.Line > 0 {
		return fmt.Sprintf("%s (rendered line %d)", e.Reason, e.Line)
	}
	return "something that is no object: " + e.Reason
}

func unmarshal(text string, into any) error { return yaml.Unmarshal([]byte(text), into) }
