package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds that hold where Options leave them at zero.
const (
	// DefaultMaxBytes bounds the text of one file, and what it grows to once aliases are expanded.
	DefaultMaxBytes = 10 << 20
	// DefaultMaxObjects bounds the objects of one file.
	DefaultMaxObjects = 5000
	// DefaultMaxDepth bounds how deep mappings and lists lie in one another.
	DefaultMaxDepth = 200
)

// Options of Parse. The zero value is right for files that people wrote.
type Options struct {
	// LastKeyWins takes the last of several equal keys of a mapping and warns, as Helm does. By default they are an error.
	LastKeyWins bool
	// JSON reads the text as JSON whatever the file is called.
	JSON bool
	// MaxBytes, MaxObjects and MaxDepth replace the defaults above.
	MaxBytes, MaxObjects, MaxDepth int
}

func (o Options) withDefaults() Options {
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.MaxObjects == 0 {
		o.MaxObjects = DefaultMaxObjects
	}
	if o.MaxDepth == 0 {
		o.MaxDepth = DefaultMaxDepth
	}
	return o
}

// ErrNotManifest marks the error for a document that has neither apiVersion nor kind: the file is likely meant for
// something else than Kubernetes.
var ErrNotManifest = errors.New("apiVersion and kind are missing, this is no Kubernetes object")

// ParseError is what is wrong with a text, and where.
type ParseError struct {
	// Origin is the file and the line, as far as they are known.
	Origin Origin
	// Object is the object concerned, such as ConfigMap/web, where it is known.
	Object string
	// Err is the reason.
	Err error
}

// Error is the sentence: file:line: object: reason.
func (e *ParseError) Error() string {
	parts := make([]string, 0, 3)
	for _, p := range []string{e.Origin.String(), e.Object, e.Err.Error()} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, ": ")
}

// Unwrap is the reason.
func (e *ParseError) Unwrap() error { return e.Err }

// parser collects what the documents of one file hold.
type parser struct {
	file     string
	opts     Options
	objects  []Object
	warnings []string
}

// Parse reads the objects of one file: a stream of YAML documents, or JSON values one after the other. Documents that are
// empty, null or hold only comments are left out; kinds that end in List are replaced by their items. Values are those
// sigs.k8s.io/yaml gives for YAML and Kubernetes' decoder for JSON, so that every object is what kubectl would send. A
// text that starts with a brace and is valid JSON is read as JSON.
//
// Every object must have apiVersion, kind and metadata.name or metadata.generateName, and labels and annotations of text;
// null among them is dropped with a warning. The first offence ends the reading with a *ParseError.
func Parse(file string, data []byte, opts Options) (objects []Object, warnings []string, err error) {
	p := &parser{file: file, opts: opts.withDefaults()}
	if len(data) > p.opts.MaxBytes {
		return nil, nil, p.errorAt(0, "has %d bytes, more than the %d that are allowed", len(data), p.opts.MaxBytes)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if line := invalidLine(data); line > 0 {
		return nil, nil, p.errorAt(line, "is not UTF-8 text")
	}
	if p.opts.JSON || looksLikeJSON(file, data) {
		err = p.parseJSON(data)
	} else {
		err = p.parseYAML(data)
	}
	if err != nil {
		return nil, nil, err
	}
	return p.objects, p.warnings, nil
}

func (p *parser) parseYAML(data []byte) error {
	for _, d := range splitDocuments(data) {
		if err := p.parseDocument(d); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) errorAt(line int, format string, args ...any) error {
	return &ParseError{Origin: Origin{File: p.file, Line: line}, Err: fmt.Errorf(format, args...)}
}

func (p *parser) warnAt(line int, format string, args ...any) {
	at := Origin{File: p.file, Line: line}.String()
	p.warnings = append(p.warnings, strings.TrimPrefix(at+": "+fmt.Sprintf(format, args...), ": "))
}

// invalidLine is the line, from 1, of the first byte that is not UTF-8; 0 when there is none.
func invalidLine(data []byte) int {
	if utf8.Valid(data) {
		return 0
	}
	for line, text := range bytes.Split(data, []byte("\n")) {
		if !utf8.Valid(text) {
			return line + 1
		}
	}
	return 1
}
