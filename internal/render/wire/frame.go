// Package wire owns the conversation between a worker and its parent: frames over a pipe, and what each carries. The parent
// holds everything it reads for hostile: sizes are bounded before memory is taken, and what can not be read is ErrGarbage.
//
// It decides nothing and starts nothing; see worker and pool.
package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Version of the conversation. Both sides are the same binary; a difference means that somebody else answers.
const Version = 1

// Kind tells what a frame carries.
type Kind byte

// The frames, in the order in which they first appear.
const (
	// Setup is the parent's first frame: a Start.
	Setup Kind = iota + 1
	// Ready is the worker's answer: a Greeting.
	Ready
	// Render is a rendering to be made: a Task.
	Render
	// Ask is a question of the worker about a tree: a Question.
	Ask
	// Fetch asks for another source: a job.Locator.
	Fetch
	// Answer of the parent to Ask and Fetch: a Reply.
	Answer
	// Done ends a rendering with its result, Failed with an error.
	Done
	Failed
)

// ErrGarbage says that the other side does not keep to the conversation.
var ErrGarbage = errors.New("no frame of the conversation")

// most bounds each kind of frame, in bytes.
func most(k Kind) (int, bool) {
	switch k {
	case Setup, Ready, Ask, Fetch:
		return 64 << 10, true
	case Failed:
		return 8 << 20, true // with the list of what was used
	case Render:
		return 16 << 20, true
	case Done:
		return 24 << 20, true
	case Answer:
		return 80 << 20, true
	}
	return 0, false
}

const headerSize = 5

// Conn is one side of a conversation. It is used by one goroutine at a time.
type Conn struct {
	r   *bufio.Reader
	w   io.Writer
	out []byte
}

// NewConn talks over r and w.
func NewConn(r io.Reader, w io.Writer) *Conn {
	return &Conn{r: bufio.NewReaderSize(r, 64<<10), w: w}
}

// ErrTooLarge says that a frame would be larger than its kind may be. Nothing was sent.
var ErrTooLarge = errors.New("frame is too large")

// Send sends a frame; body appends what it carries. After ErrTooLarge, and after an error of body, nothing was sent.
func (c *Conn) Send(k Kind, body func(*Encoder) error) error {
	e := Encoder{buf: append(c.out[:0], byte(k), 0, 0, 0, 0)}
	if err := body(&e); err != nil {
		return err
	}
	size := len(e.buf) - headerSize
	if limit, ok := most(k); !ok || size > limit {
		return fmt.Errorf("%d bytes, more than %d: %w", size, limit, ErrTooLarge)
	}
	binary.LittleEndian.PutUint32(e.buf[1:headerSize], uint32(size))
	_, err := c.w.Write(e.buf)
	c.out = nil
	const keep = 1 << 20
	if cap(e.buf) <= keep {
		c.out = e.buf
	}
	return err
}

// Receive reads the next frame. At the end of the other side it returns io.EOF; for anything that is no frame, ErrGarbage.
func (c *Conn) Receive() (Kind, *Decoder, error) {
	var head [headerSize]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF
		}
		return 0, nil, err
	}
	k, size := Kind(head[0]), int(binary.LittleEndian.Uint32(head[1:]))
	limit, ok := most(k)
	if !ok || size > limit {
		return 0, nil, ErrGarbage
	}
	body, err := readBody(c.r, size)
	if err != nil {
		return 0, nil, io.EOF
	}
	return k, &Decoder{buf: body}, nil
}

// readBody takes memory as the bytes come, not as they are announced.
func readBody(r io.Reader, size int) ([]byte, error) {
	const step = 1 << 20
	body := make([]byte, 0, min(size, step))
	for len(body) < size {
		have := len(body)
		if have == cap(body) {
			grown := make([]byte, have, min(size, 2*have))
			copy(grown, body)
			body = grown
		}
		body = body[:min(size, cap(body))]
		if _, err := io.ReadFull(r, body[have:]); err != nil {
			return nil, err
		}
	}
	return body, nil
}
