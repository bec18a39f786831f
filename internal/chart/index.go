package chart

import (
	"bytes"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// entry is one version of a chart in an index.
type entry struct {
	Version string   `json:"version"`
	URLs    []string `json:"urls"`
	Digest  string   `json:"digest"`
}

// index is the text of an index.yaml. Those of large repositories have tens of megabytes, of which one chart is wanted:
// so its lines are cut out and only they are parsed. A text of another shape (JSON, flow style) is parsed whole.
type index struct {
	// text is what comes after "entries:".
	text []byte
	// indent is that of the charts' names.
	indent int
	// whole is all of it, when it had to be parsed.
	whole map[string][]entry
}

func parseIndex(text []byte) (*index, error) {
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	x := &index{}
	if x.cut(text) {
		return x, nil
	}
	var doc struct {
		APIVersion string             `json:"apiVersion"`
		Entries    map[string][]entry `json:"entries"`
	}
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("is no YAML: %s", firstLine(err.Error()))
	}
	if doc.APIVersion == "" && doc.Entries == nil {
		return nil, fmt.Errorf("has neither apiVersion nor entries")
	}
	x.whole = doc.Entries
	return x, nil
}

// cut finds the block of entries, and tells whether it is one of lines.
func (x *index) cut(text []byte) bool {
	at := 0
	if !bytes.HasPrefix(text, []byte("entries:\n")) {
		i := bytes.Index(text, []byte("\nentries:\n"))
		if i < 0 {
			return false
		}
		at = i + 1
	}
	rest := text[at+len("entries:\n"):]
	first := bytes.TrimLeft(rest, " ")
	x.indent = len(rest) - len(first)
	if x.indent == 0 {
		return false
	}
	x.text = rest
	return true
}

// lines calls visit with the place of each line that holds a chart's name, until the block ends or visit returns false.
func (x *index) names(visit func(name string, begin, after int) bool) {
	for at := 0; at < len(x.text); {
		end := at + bytes.IndexByte(x.text[at:], '\n') + 1
		if end == at {
			end = len(x.text)
		}
		line := x.text[at:end]
		body := bytes.TrimLeft(line, " ")
		switch indent := len(line) - len(body); {
		case len(bytes.TrimSpace(body)) == 0 || body[0] == '#':
		case indent < x.indent:
			return
		case indent == x.indent && body[0] != '-':
			name, _, _ := strings.Cut(string(body), ":")
			if !visit(strings.Trim(strings.TrimSpace(name), `"'`), at, end) {
				return
			}
		}
		at = end
	}
}

// charts are the names of all charts.
func (x *index) charts() []string {
	var all []string
	for name := range x.whole {
		all = append(all, name)
	}
	x.names(func(name string, _, _ int) bool {
		all = append(all, name)
		return true
	})
	return all
}

// chart are the versions of a chart; false when there is none of that name.
func (x *index) chart(name string) ([]entry, bool, error) {
	if x.whole != nil {
		entries, ok := x.whole[name]
		return entries, ok, nil
	}
	begin, end := -1, len(x.text)
	x.names(func(found string, at, _ int) bool {
		if begin >= 0 {
			end = at
			return false
		}
		if found == name {
			begin = at
		}
		return true
	})
	if begin < 0 {
		return nil, false, nil
	}
	if begin >= 0 && end == len(x.text) {
		end = begin + blockEnd(x.text[begin:], x.indent)
	}
	var doc map[string][]entry
	if err := yaml.Unmarshal(x.text[begin:end], &doc); err != nil {
		return nil, true, fmt.Errorf("has chart %s in a form that can't be read: %s", name, firstLine(err.Error()))
	}
	return doc[name], true, nil
}

// blockEnd is where a block of at least this indent ends.
func blockEnd(text []byte, indent int) int {
	for at := 0; at < len(text); {
		end := at + bytes.IndexByte(text[at:], '\n') + 1
		if end == at {
			return len(text)
		}
		body := bytes.TrimLeft(text[at:end], " ")
		if end-at-len(body) < indent && len(bytes.TrimSpace(body)) > 0 {
			return at
		}
		at = end
	}
	return len(text)
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}
