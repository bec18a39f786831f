package kustomize

import (
	"bytes"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// maxReason bounds an error of the library: it can quote whole files.
const maxReason = 1000

// kustomizationError is the error for a kustomization file that can not be read.
func kustomizationError(file string, data []byte, err error) error {
	reason := strings.TrimPrefix(err.Error(), "invalid Kustomization: ")
	e := &job.Error{File: file, Reason: reason}
	if m := regexp.MustCompile(`^json: unknown field "([^"]+)"`).FindStringSubmatch(reason); m != nil {
		e.Reason = "field " + m[1] + " is not known to kustomize"
		e.Line = lineOf(data, m[1])
	} else if m := regexp.MustCompile(`^(?:.*: )?yaml: line (\d+): (.*)`).FindStringSubmatch(reason); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
		e.Reason = "YAML: " + m[2]
	} else {
		e.Reason = strings.TrimPrefix(strings.TrimPrefix(reason, "json: "), "yaml: ")
	}
	return e
}

// lineOf is the line of a key, 0 when it is not found.
func lineOf(data []byte, key string) int {
	for i, line := range bytes.Split(data, []byte("\n")) {
		text := strings.TrimLeft(string(line), " -\"'")
		if rest, ok := strings.CutPrefix(text, key); ok && strings.HasPrefix(strings.TrimLeft(rest, "\"' "), ":") {
			return i + 1
		}
	}
	return 0
}

// explain makes a sentence of the library's error, which tells every level it went through and often not the file.
func (w *walker) explain(at string, err error) error {
	var ours *job.Error
	if errors.As(err, &ours) {
		return err
	}
	if types.IsErrOnlyBuiltinPluginsAllowed(err) {
		return &job.Error{File: at, Reason: "a generator or transformer is a plugin; only kustomize's built-in ones are supported, no KRM exec or container functions: " + brief(err)}
	}
	for _, name := range w.resources {
		data, readErr := w.read(name)
		if readErr != nil {
			continue
		}
		var pe *manifest.ParseError
		if _, _, parseErr := manifest.Parse(name, data, manifest.Options{}); errors.As(parseErr, &pe) {
			return &job.Error{File: pe.Origin.File, Line: pe.Origin.Line, Object: pe.Object, Reason: pe.Err.Error()}
		}
	}
	return &job.Error{File: at, Reason: brief(err)}
}

var credentials = regexp.MustCompile(`(\w+://)[^/\s@]*:[^/\s@]*@`)

// named gives files of other repositories the name that people know them by, and drops credentials of URLs.
func (w *walker) named(err error) error {
	var e *job.Error
	if !errors.As(err, &e) {
		return err
	}
	out := *e
	for at, from := range w.laidFrom {
		if from.repository == "" || from.file != "" {
			continue
		}
		if rest, ok := strings.CutPrefix(out.File, at+"/"); ok {
			out.File = from.repository + "//" + rest
		}
		out.Reason = strings.NewReplacer("/"+at+"/", from.repository+"//", at+"/", from.repository+"//").Replace(out.Reason)
	}
	out.File = credentials.ReplaceAllString(out.File, "$1")
	out.Reason = credentials.ReplaceAllString(out.Reason, "$1")
	return &out
}

// brief is the library's message in one line, from where it starts to say something.
func brief(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	for _, noise := range []*regexp.Regexp{
		regexp.MustCompile(`^accumulating resources: (accumulation err='.*?': )?`),
		regexp.MustCompile(`^recursed accumulation of path '[^']*': `),
	} {
		text = noise.ReplaceAllString(text, "")
	}
	if len(text) > maxReason {
		text = text[:maxReason] + "…"
	}
	return "kustomize: " + text
}

// resultError is the error for a result with an object that can not be used.
func resultError(at string, err error) error {
	var pe *manifest.ParseError
	if !errors.As(err, &pe) {
		return err
	}
	return &job.Error{File: at, Object: pe.Object, Reason: "the result can not be used: " + pe.Err.Error()}
}
