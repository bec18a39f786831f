package wire

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// Encoder appends values to a frame.
type Encoder struct{ buf []byte }

// Len is the size of the frame so far, in bytes.
func (e *Encoder) Len() int { return len(e.buf) }

func (e *Encoder) number(n int)   { e.buf = binary.AppendUvarint(e.buf, uint64(n)) }
func (e *Encoder) octet(b byte)   { e.buf = append(e.buf, b) }
func (e *Encoder) text(s string)  { e.number(len(s)); e.buf = append(e.buf, s...) }
func (e *Encoder) bytes(b []byte) { e.number(len(b)); e.buf = append(e.buf, b...) }

// value appends anything that JSON can carry; what it can not is an error of ours, and of no use to anybody else.
func (e *Encoder) value(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("frame: %w", err)
	}
	e.bytes(text)
	return nil
}

// Decoder takes values out of a frame. After the first that is not there every other is zero, and Err is ErrGarbage.
type Decoder struct {
	buf []byte
	bad bool
	// nodes is the number of values in objects so far.
	nodes int
}

// Err tells whether all that was taken was there.
func (d *Decoder) Err() error {
	if d.bad {
		return ErrGarbage
	}
	return nil
}

// end tells whether all was there, and nothing is left.
func (d *Decoder) end() error {
	if d.bad || len(d.buf) > 0 {
		return ErrGarbage
	}
	return nil
}

func (d *Decoder) fail() { d.bad, d.buf = true, nil }

func (d *Decoder) number() int {
	n, size := binary.Uvarint(d.buf)
	const most = 1 << 31
	if size <= 0 || n >= most {
		d.fail()
		return 0
	}
	d.buf = d.buf[size:]
	return int(n)
}

func (d *Decoder) octet() byte {
	if len(d.buf) == 0 {
		d.fail()
		return 0
	}
	b := d.buf[0]
	d.buf = d.buf[1:]
	return b
}

// bytes are a part of the frame, not a copy.
func (d *Decoder) bytes() []byte {
	n := d.number()
	if n > len(d.buf) {
		d.fail()
		return nil
	}
	b := d.buf[:n:n]
	d.buf = d.buf[n:]
	return b
}

func (d *Decoder) text() string { return string(d.bytes()) }

// count is the length of a list whose items take at least size bytes each: a frame can not announce more than it holds.
func (d *Decoder) count(size int) int {
	n := d.number()
	if n > len(d.buf)/size {
		d.fail()
		return 0
	}
	return n
}

func (d *Decoder) value(into any) {
	text := d.bytes()
	if d.bad {
		return
	}
	if json.Unmarshal(text, into) != nil {
		d.fail()
	}
}
