package wire

import (
	"encoding/binary"
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// Objects travel in a form of their own rather than as JSON: 1.0 stays a float64, and the parent spends a fifth of the time.

// maxDepth bounds mappings and lists in each other; manifest reads no deeper ones.
const maxDepth = 2 * manifest.DefaultMaxDepth

// maxNodes bounds the values in all objects of a rendering: no list of nothings may take the parent's memory.
const maxNodes = job.MaxRendered / 2

// The types of values in an object.
const (
	isNull byte = iota
	isFalse
	isTrue
	isInt
	isFloat
	isText
	isList
	isMap
)

// any appends a value of an object.
func (e *Encoder) any(v any) error {
	switch v := v.(type) {
	case nil:
		e.octet(isNull)
	case bool:
		e.octet(isFalse)
		if v {
			e.buf[len(e.buf)-1] = isTrue
		}
	case int64:
		e.octet(isInt)
		e.buf = binary.AppendVarint(e.buf, v)
	case float64:
		e.octet(isFloat)
		e.buf = binary.LittleEndian.AppendUint64(e.buf, math.Float64bits(v))
	case string:
		e.octet(isText)
		e.text(v)
	case []any:
		e.octet(isList)
		e.number(len(v))
		for _, item := range v {
			if err := e.any(item); err != nil {
				return err
			}
		}
	case map[string]any:
		e.octet(isMap)
		e.number(len(v))
		for k, item := range v {
			e.text(k)
			if err := e.any(item); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("an object holds a %T", v)
	}
	return nil
}

func (d *Decoder) any(depth int) any {
	if d.nodes++; depth > maxDepth || d.nodes > maxNodes {
		d.fail()
	}
	switch d.octet() {
	case isNull:
	case isFalse:
		return false
	case isTrue:
		return true
	case isInt:
		n, size := binary.Varint(d.buf)
		if size <= 0 {
			d.fail()
			return nil
		}
		d.buf = d.buf[size:]
		return n
	case isFloat:
		return d.float()
	case isText:
		return d.text()
	case isList:
		return d.items(depth)
	case isMap:
		return d.mapping(depth)
	default:
		d.fail()
	}
	return nil
}

func (d *Decoder) float() any {
	const size = 8
	if len(d.buf) < size {
		d.fail()
		return nil
	}
	f := math.Float64frombits(binary.LittleEndian.Uint64(d.buf))
	d.buf = d.buf[size:]
	if math.IsNaN(f) || math.IsInf(f, 0) {
		d.fail() // JSON knows no such number
	}
	return f
}

func (d *Decoder) items(depth int) any {
	n := d.count(1)
	list := make([]any, 0, min(n, max(0, maxNodes-d.nodes)))
	for range n {
		if d.bad {
			return nil
		}
		list = append(list, d.any(depth+1))
	}
	return list
}

func (d *Decoder) mapping(depth int) any {
	const least = 2 // an empty key and a null
	n := d.count(least)
	m := make(map[string]any, min(n, max(0, maxNodes-d.nodes)))
	for range n {
		if d.bad {
			return nil
		}
		key := d.text()
		m[key] = d.any(depth + 1)
	}
	return m
}

func (e *Encoder) objects(list []manifest.Object) error {
	e.number(len(list))
	for _, o := range list {
		e.text(o.Origin.File)
		e.number(o.Origin.Line)
		if err := e.any(o.Object); err != nil {
			return fmt.Errorf("%s: %w", o.Key(), err)
		}
	}
	return nil
}

// objects are checked as those of a file are: what is no Kubernetes object does not come from a renderer.
func (d *Decoder) objects() []manifest.Object {
	const least = 3 // an empty file, a line and a type
	n := d.count(least)
	if n > job.MaxObjects {
		d.fail()
	}
	var list []manifest.Object
	for range n {
		o := manifest.Object{Unstructured: &unstructured.Unstructured{}, Origin: manifest.Origin{File: d.text(), Line: d.number()}}
		content, ok := d.any(0).(map[string]any)
		if !ok || d.bad || manifest.Check(content) != nil {
			d.fail()
			return nil
		}
		o.Object = content
		list = append(list, o)
	}
	return list
}
