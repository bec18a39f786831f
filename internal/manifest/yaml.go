package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v2"
	yamlv3 "go.yaml.in/yaml/v3"
)

// parseDocument decodes one document and adds what it holds. Almost always the text is one value; a file with line ends
// that only YAML knows can hold several.
func (p *parser) parseDocument(d document) error {
	values, err := decodeYAML(d.text, true)
	var typeErr *yaml.TypeError
	if errors.As(err, &typeErr) {
		// The decoder also calls a key twice set that overrides one of a merged mapping: look closer.
		if err = p.duplicates(d); err == nil {
			values, err = decodeYAML(d.text, false)
		}
	}
	if err != nil {
		return p.yamlError(d, err)
	}
	for _, v := range values {
		c := converter{budget: p.opts.MaxBytes, maxDepth: p.opts.MaxDepth}
		converted, err := c.value(v, 0)
		if err != nil {
			return p.yamlError(d, err)
		}
		if err := p.add(converted, d.content, 0); err != nil {
			return err
		}
	}
	return nil
}

// decodeYAML is the decoder of sigs.k8s.io/yaml, for all documents of a text.
func decodeYAML(text []byte, strict bool) (values []any, err error) {
	// The decoder reports its own errors; anything else it panics with must not end a process that reads foreign text.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: text can not be read: %v", r)
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.SetStrict(strict)
	for {
		var v any
		switch err := dec.Decode(&v); {
		case errors.Is(err, io.EOF):
			return values, nil
		case err != nil:
			return nil, err
		}
		values = append(values, v)
	}
}

// duplicates finds keys that stand twice in one mapping: an error, or warnings where the last one wins.
func (p *parser) duplicates(d document) error {
	dec := yamlv3.NewDecoder(bytes.NewReader(d.text))
	for {
		var n yamlv3.Node
		switch err := dec.Decode(&n); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := p.duplicatesBelow(&n, d); err != nil {
			return err
		}
	}
}

func (p *parser) duplicatesBelow(n *yamlv3.Node, d document) error {
	if n.Kind == yamlv3.MappingNode {
		first := make(map[string]int, len(n.Content)/2)
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i]
			id := key.ShortTag() + " " + key.Value
			before, twice := first[id]
			if !twice || key.Kind != yamlv3.ScalarNode {
				first[id] = key.Line
				continue
			}
			line, at := d.line+key.Line-1, d.line+before-1
			if !p.opts.LastKeyWins {
				return p.errorAt(line, "key %q stands twice in one mapping, first in line %d", key.Value, at)
			}
			p.warnAt(line, "key %q stands twice in one mapping, first in line %d: the last one is used", key.Value, at)
		}
	}
	for _, c := range n.Content {
		if err := p.duplicatesBelow(c, d); err != nil {
			return err
		}
	}
	return nil
}

// yamlError gives the decoder's error its file and its line in the file.
func (p *parser) yamlError(d document, err error) error {
	var known *ParseError
	if errors.As(err, &known) {
		return err
	}
	reason := strings.TrimPrefix(err.Error(), "yaml: ")
	reason = strings.TrimPrefix(reason, "unmarshal errors:\n  ")
	line := d.content
	if m := regexp.MustCompile(`(?s)^line (\d+): (.*)$`).FindStringSubmatch(reason); m != nil {
		n, _ := strconv.Atoi(m[1])
		line, reason = d.line+n-1, m[2]
	}
	reason, _, _ = strings.Cut(reason, "\n")
	if strings.HasPrefix(reason, "found character that cannot start any token") {
		reason += " (a tab used for indentation, or a value that starts with @, ` or % and needs quotes)"
	}
	return p.errorAt(line, "YAML: %s", reason)
}
