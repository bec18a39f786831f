package wire

import (
	"errors"
	"io/fs"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// Start is what a worker is told before it builds its walls.
type Start struct {
	Version int
	// Memory bounds what it may allocate, in bytes.
	Memory int64
	// BestEffort lets it go on without a wall that can not be built.
	BestEffort bool
}

// Encode implements a frame's body.
func (s Start) Encode(e *Encoder) error { return e.value(s) }

// DecodeStart reads a Start.
func DecodeStart(d *Decoder) (s Start, err error) {
	d.value(&s)
	return s, d.end()
}

// Greeting says that a worker is ready, or why it is not.
type Greeting struct {
	Version int
	// Missing are sentences for walls that could not be built.
	Missing []string
	// Refused says why the worker does not work without them; empty when it does.
	Refused string
}

// Encode implements a frame's body.
func (g Greeting) Encode(e *Encoder) error { return e.value(g) }

// DecodeGreeting reads a Greeting.
func DecodeGreeting(d *Decoder) (g Greeting, err error) {
	d.value(&g)
	return g, d.end()
}

// Task is one rendering.
type Task struct {
	Tool v1alpha1.ApplicationSourceType
	// Input travels without its trees and its fetcher: the tree is number 0, those of Refs are numbered from 1 on.
	Input job.Input
	Refs  []string
	// Ahead is content of the tree that will be asked for, most likely.
	Ahead Ahead `json:"-"`
}

// Encode implements a frame's body.
func (t Task) Encode(e *Encoder) error {
	t.Input.Tree, t.Input.Refs, t.Input.Fetch = nil, nil, nil
	if err := e.value(t); err != nil {
		return err
	}
	t.Ahead.encode(e)
	return nil
}

// DecodeTask reads a Task.
func DecodeTask(d *Decoder) (t Task, err error) {
	d.value(&t)
	t.Ahead = decodeAhead(d)
	return t, d.end()
}

// Op is what a question asks of a path.
type Op byte

// The questions of tree.FS.
const (
	Stat Op = iota + 1
	ReadFile
	ReadDir
	ReadLink
)

// Question asks something about a path in a tree.
type Question struct {
	Op   Op
	Tree int
	Path string
}

// Encode implements a frame's body.
func (q Question) Encode(e *Encoder) error {
	e.octet(byte(q.Op))
	e.number(q.Tree)
	e.text(q.Path)
	return nil
}

func (d *Decoder) question() Question {
	q := Question{Op: Op(d.octet()), Tree: d.number(), Path: d.text()}
	if q.Op < Stat || q.Op > ReadLink || !ValidPath(q.Path) {
		d.fail()
	}
	return q
}

// ValidPath tells whether a tree can be asked for name: it is relative and clean, and of a length that paths have.
func ValidPath(name string) bool {
	const longest = 16 << 10
	clean, err := tree.Clean(name)
	return err == nil && clean == name && len(name) <= longest
}

// DecodeQuestion reads a Question.
func DecodeQuestion(d *Decoder) (Question, error) {
	q := d.question()
	return q, d.end()
}

// EncodeLocator and DecodeLocator carry what a worker wants fetched.
func EncodeLocator(l job.Locator) func(*Encoder) error {
	return func(e *Encoder) error { return e.value(l) }
}

// DecodeLocator reads a locator.
func DecodeLocator(d *Decoder) (l job.Locator, err error) {
	d.value(&l)
	return l, d.end()
}

// Fault is an error on its way: the text, what errors.Is knows about it, and a number by which the parent finds its own.
type Fault struct {
	Number int
	Text   string
	kinds  kindSet
}

// kindSet has a bit for each of the kinds that an error is of.
type kindSet byte

// kinds of errors that somebody asks for.
func kinds() []error {
	return []error{fs.ErrNotExist, tree.ErrOutside, job.ErrNoFetcher, fs.ErrInvalid}
}

func kindsOf(err error) kindSet {
	var set kindSet
	for i, kind := range kinds() {
		if errors.Is(err, kind) {
			set |= 1 << i
		}
	}
	return set
}

func (s kindSet) has(target error) bool {
	for i, kind := range kinds() {
		if target == kind { //nolint:errorlint // errors.Is has taken the chain apart already
			return s&(1<<i) != 0
		}
	}
	return false
}

// NewFault describes err.
func NewFault(number int, err error) *Fault {
	return &Fault{Number: number, Text: err.Error(), kinds: kindsOf(err)}
}

// Error is the text of the original.
func (f *Fault) Error() string { return f.Text }

// Is tells what the original was.
func (f *Fault) Is(target error) bool { return f.kinds.has(target) }

// Reply answers a question or a fetch: one of its fields, or an error.
type Reply struct {
	Err     *Fault
	Kind    tree.Kind
	Data    []byte
	Entries []tree.Entry
	Target  string
	// Tree is the number of what was fetched.
	Tree int
	// Ahead is content that will be asked for next, most likely.
	Ahead Ahead
}

// The first byte of a reply tells whether it is an error.
const (
	found  byte = 0
	faulty byte = 1
)

// Encode implements a frame's body.
func (r Reply) Encode(e *Encoder) error {
	if f := r.Err; f != nil {
		e.octet(faulty)
		e.octet(byte(f.kinds))
		e.number(f.Number)
		e.text(f.Text)
		return nil
	}
	e.octet(found)
	e.octet(byte(r.Kind))
	e.bytes(r.Data)
	e.entries(r.Entries)
	e.text(r.Target)
	e.number(r.Tree)
	r.Ahead.encode(e)
	return nil
}

// DecodeReply reads a Reply.
func DecodeReply(d *Decoder) (r Reply, err error) {
	if d.octet() != found {
		r.Err = &Fault{kinds: kindSet(d.octet()), Number: d.number(), Text: d.text()}
		return r, d.end()
	}
	r.Kind, r.Data, r.Entries, r.Target, r.Tree = tree.Kind(d.octet()), d.bytes(), d.entries(), d.text(), d.number()
	r.Ahead = decodeAhead(d)
	return r, d.end()
}

// Ahead is content that was not asked for yet. What of it is used is told with the result.
type Ahead struct {
	Tree int
	// Dirs are paths that are known to be folders.
	Dirs    []string
	Folders []Folder
	Files   []File
}

// Folder is a folder with all its entries; of these name and kind travel.
type Folder struct {
	Path    string
	Entries []tree.Entry
}

// File is a file with its content.
type File struct {
	Path string
	Data []byte
}

func (a Ahead) encode(e *Encoder) {
	e.number(a.Tree)
	e.number(len(a.Dirs))
	for _, dir := range a.Dirs {
		e.text(dir)
	}
	e.number(len(a.Folders))
	for _, f := range a.Folders {
		e.text(f.Path)
		e.entries(f.Entries)
	}
	e.number(len(a.Files))
	for _, f := range a.Files {
		e.text(f.Path)
		e.bytes(f.Data)
	}
}

// least is the size of an item of a list: two texts, both empty.
const least = 2

func decodeAhead(d *Decoder) Ahead {
	a := Ahead{Tree: d.number()}
	for range d.count(1) {
		a.Dirs = append(a.Dirs, d.text())
	}
	for range d.count(least) {
		a.Folders = append(a.Folders, Folder{Path: d.text(), Entries: d.entries()})
	}
	for range d.count(least) {
		a.Files = append(a.Files, File{Path: d.text(), Data: d.bytes()})
	}
	return a
}

func (e *Encoder) entries(list []tree.Entry) {
	e.number(len(list))
	for _, item := range list {
		e.text(item.Name)
		e.octet(byte(item.Kind))
	}
}

func (d *Decoder) entries() []tree.Entry {
	n := d.count(least)
	list := make([]tree.Entry, 0, n)
	for range n {
		list = append(list, tree.Entry{Name: d.text(), Kind: tree.Kind(d.octet()), Size: -1})
	}
	return list
}

// Size is about what the reply takes, in bytes.
func (r Reply) Size() int64 {
	const entry = 16
	n := len(r.Data) + entry*len(r.Entries)
	for _, f := range r.Ahead.Folders {
		n += entry * len(f.Entries)
	}
	for _, f := range r.Ahead.Files {
		n += len(f.Data)
	}
	return int64(n)
}
