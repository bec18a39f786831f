package wire

import (
	"errors"

	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// Result is what a rendering came to.
type Result struct {
	Output job.Output
	// Used are the questions that were answered by what was sent ahead.
	Used []Question
}

// Encode implements a frame's body.
func (r Result) Encode(e *Encoder) error {
	e.questions(r.Used)
	rest := r.Output
	rest.Objects = nil
	if err := e.value(rest); err != nil {
		return err
	}
	return e.objects(r.Output.Objects)
}

// DecodeResult reads a Result.
func DecodeResult(d *Decoder) (r Result, err error) {
	r.Used = d.questions()
	d.value(&r.Output)
	r.Output.Objects = d.objects()
	for i, paths := range r.Output.Generated {
		if i < 0 || i >= len(r.Output.Objects) || len(paths) == 0 {
			d.fail()
		}
	}
	return r, d.end()
}

// Refusal is a rendering that ended with an error.
type Refusal struct {
	// Text is the error's own sentence.
	Text string
	// Place is there when the error is a job.Error.
	Place *job.Error `json:",omitempty"`
	// Faults are the numbers of the parent's errors behind it.
	Faults []int `json:",omitempty"`
	// Kinds are what errors.Is knows about the error.
	Kinds kindSet `json:",omitempty"`
	// Broken says that it was the renderer that broke down, not the source that is wrong.
	Broken bool `json:",omitempty"`
	// Used are the questions that were answered by what was sent ahead.
	Used []Question `json:"-"`
}

// NewRefusal describes err.
func NewRefusal(err error) Refusal {
	r := Refusal{Text: err.Error(), Kinds: kindsOf(err)}
	if place := (*job.Error)(nil); errors.As(err, &place) {
		r.Place = place
	}
	collect(err, func(f *Fault) { r.Faults = append(r.Faults, f.Number) })
	return r
}

// collect walks err and everything that it wraps.
func collect(err error, visit func(*Fault)) {
	if err == nil {
		return
	}
	if f, ok := err.(*Fault); ok { //nolint:errorlint // every link of the chain is looked at
		visit(f)
	}
	switch w := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		collect(w.Unwrap(), visit)
	case interface{ Unwrap() []error }:
		for _, inner := range w.Unwrap() {
			collect(inner, visit)
		}
	}
}

// Encode implements a frame's body.
func (r Refusal) Encode(e *Encoder) error {
	e.questions(r.Used)
	return e.value(r)
}

// DecodeRefusal reads a Refusal.
func DecodeRefusal(d *Decoder) (r Refusal, err error) {
	used := d.questions()
	d.value(&r)
	r.Used = used
	return r, d.end()
}

// Restored is the error that a refusal stands for. numbered are the parent's own errors by their numbers.
func (r Refusal) Restored(numbered func(int) error) error {
	if r.Place != nil && r.Place.Error() == r.Text && r.Kinds == 0 && len(r.Faults) == 0 {
		return r.Place
	}
	e := &restored{text: r.Text, kinds: r.Kinds}
	if r.Place != nil {
		e.causes = append(e.causes, r.Place)
	}
	for _, n := range r.Faults {
		if cause := numbered(n); cause != nil {
			e.causes = append(e.causes, cause)
		}
	}
	return e
}

// restored is an error that came from a worker, with the parent's own errors behind it.
type restored struct {
	text   string
	kinds  kindSet
	causes []error
}

func (e *restored) Error() string        { return e.text }
func (e *restored) Unwrap() []error      { return e.causes }
func (e *restored) Is(target error) bool { return e.kinds.has(target) }

func (e *Encoder) questions(list []Question) {
	e.number(len(list))
	for _, q := range list {
		_ = q.Encode(e) // never fails
	}
}

func (d *Decoder) questions() []Question {
	const size = 3
	n := d.count(size)
	list := make([]Question, 0, n)
	for range n {
		list = append(list, d.question())
	}
	return list
}
