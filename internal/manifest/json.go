package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
)

func looksLikeJSON(file string, data []byte) bool {
	if strings.EqualFold(path.Ext(file), ".json") {
		return true
	}
	trimmed := bytes.TrimLeft(data, " \t\r\n")
	return len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed)
}

// jsonReader reads values token by token: that is how equal keys and depth are seen, and where an error lies.
type jsonReader struct {
	p    *parser
	data []byte
	dec  *json.Decoder
}

func (p *parser) parseJSON(data []byte) error {
	r := &jsonReader{p: p, data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	r.dec.UseNumber()
	for {
		token, err := r.dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		line := r.line()
		if err != nil {
			return r.fail(err)
		}
		v, err := r.value(token, 0)
		if err != nil {
			return err
		}
		if err := p.add(v, line, 0); err != nil {
			return err
		}
	}
}

func (r *jsonReader) line() int {
	return 1 + bytes.Count(r.data[:min(int(r.dec.InputOffset()), len(r.data))], []byte("\n"))
}

func (r *jsonReader) fail(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the text ends inside of a value")
	}
	var syntax *json.SyntaxError
	line := r.line()
	if errors.As(err, &syntax) && int(syntax.Offset) <= len(r.data) {
		line = 1 + bytes.Count(r.data[:syntax.Offset], []byte("\n"))
	}
	return r.p.errorAt(line, "JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
}

func (r *jsonReader) value(token json.Token, depth int) (any, error) {
	if depth > r.p.opts.MaxDepth {
		return nil, r.p.errorAt(r.line(), "is nested more than %d levels deep", r.p.opts.MaxDepth)
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '{' {
			return r.object(depth)
		}
		return r.array(depth)
	case json.Number:
		n, err := jsonNumber(token)
		if err != nil {
			return nil, r.fail(err)
		}
		return n, nil
	}
	return token, nil
}

func (r *jsonReader) object(depth int) (any, error) {
	out := map[string]any{}
	for {
		token, err := r.dec.Token()
		if err != nil {
			return nil, r.fail(err)
		}
		key, ok := token.(string)
		if !ok {
			return out, nil // the closing brace: Token lets nothing else through
		}
		if _, twice := out[key]; twice {
			if !r.p.opts.LastKeyWins {
				return nil, r.p.errorAt(r.line(), "key %q stands twice in one object", key)
			}
			r.p.warnAt(r.line(), "key %q stands twice in one object: the last one is used", key)
		}
		if token, err = r.dec.Token(); err != nil {
			return nil, r.fail(err)
		}
		if out[key], err = r.value(token, depth+1); err != nil {
			return nil, err
		}
	}
}

func (r *jsonReader) array(depth int) (any, error) {
	out := []any{}
	for {
		token, err := r.dec.Token()
		if err != nil {
			return nil, r.fail(err)
		}
		if token == json.Delim(']') {
			return out, nil
		}
		v, err := r.value(token, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
}

// jsonNumber follows Kubernetes: int64 where the text is one, else float64.
func jsonNumber(n json.Number) (any, error) {
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return i, nil
	}
	f, err := n.Float64()
	if err != nil {
		return nil, fmt.Errorf("number %s is out of range", n)
	}
	return f, nil
}
