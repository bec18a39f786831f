package worker

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/render/wire"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// session is the conversation about one rendering. What was answered once is not asked again.
type session struct {
	mu    sync.Mutex
	conn  *wire.Conn
	trees map[int]*remote
	// used are questions that what was sent ahead has answered.
	used []wire.Question
	// lost says that the parent is gone, or talks nonsense.
	lost error
}

func (s *session) tree(id int) *remote {
	if s.trees == nil {
		s.trees = map[int]*remote{}
	}
	if s.trees[id] == nil {
		s.trees[id] = &remote{
			session: s, id: id, known: map[wire.Question]known{},
			dirs: map[string]bool{}, folders: map[string][]tree.Entry{}, files: map[string][]byte{},
		}
	}
	return s.trees[id]
}

// take keeps what was sent ahead.
func (s *session) take(a wire.Ahead) {
	r := s.tree(a.Tree)
	for _, dir := range a.Dirs {
		r.dirs[dir] = true
	}
	for _, f := range a.Folders {
		r.dirs[f.Path], r.folders[f.Path] = true, f.Entries
	}
	for _, f := range a.Files {
		r.files[f.Path] = f.Data
	}
}

// ask sends one question to the parent and waits for the answer.
func (s *session) ask(k wire.Kind, body func(*wire.Encoder) error) (wire.Reply, error) {
	if s.lost != nil {
		return wire.Reply{}, s.lost
	}
	reply, err := s.exchange(k, body)
	if err != nil {
		if !errors.Is(err, wire.ErrTooLarge) {
			s.lost = err
		}
		return reply, err
	}
	if reply.Err != nil {
		return reply, reply.Err
	}
	s.take(reply.Ahead)
	return reply, nil
}

func (s *session) exchange(k wire.Kind, body func(*wire.Encoder) error) (wire.Reply, error) {
	if err := s.conn.Send(k, body); err != nil {
		return wire.Reply{}, err
	}
	got, d, err := s.conn.Receive()
	if err != nil {
		return wire.Reply{}, err
	}
	if got != wire.Answer {
		return wire.Reply{}, wire.ErrGarbage
	}
	return wire.DecodeReply(d)
}

// Fetch implements job.Fetcher: the parent fetches, within the rules of the project.
func (s *session) Fetch(_ context.Context, l job.Locator) (tree.FS, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reply, err := s.ask(wire.Fetch, wire.EncodeLocator(l))
	if err != nil {
		return nil, err
	}
	return s.tree(reply.Tree), nil
}

// remote is a tree that the parent holds.
type remote struct {
	session *session
	id      int
	// known are answers of the parent.
	known map[wire.Question]known
	// dirs, folders and files were sent ahead.
	dirs    map[string]bool
	folders map[string][]tree.Entry
	files   map[string][]byte
}

type known struct {
	reply wire.Reply
	err   error
}

// answer is what is at a path: from what was answered before, from what was sent ahead, or from the parent.
func (r *remote) answer(op wire.Op, name string) (wire.Reply, error) {
	if !wire.ValidPath(name) {
		return wire.Reply{}, tree.NotExist("open", name)
	}
	s := r.session
	s.mu.Lock()
	defer s.mu.Unlock()
	q := wire.Question{Op: op, Tree: r.id, Path: name}
	if k, ok := r.known[q]; ok {
		return k.reply, k.err
	}
	reply, err, ok := r.ahead(op, name)
	if ok {
		s.used = append(s.used, q)
	} else {
		reply, err = s.ask(wire.Ask, q.Encode)
		if op == wire.ReadDir && err == nil {
			r.folders[name] = reply.Entries
		}
	}
	r.known[q] = known{reply, err}
	return reply, err
}

// ahead answers from what was sent ahead, as the parent would.
func (r *remote) ahead(op wire.Op, name string) (reply wire.Reply, err error, ok bool) { //nolint:revive // the answer is reply and err
	switch op {
	case wire.Stat:
		if r.dirs[name] {
			return wire.Reply{Kind: tree.Dir}, nil, true
		}
		if e, there, ok := r.listed(name); ok && there {
			return wire.Reply{Kind: e.Kind}, nil, true
		} else if ok {
			return reply, tree.NotExist("stat", name), true
		}
	case wire.ReadFile:
		if data, ok := r.files[name]; ok {
			return wire.Reply{Data: data}, nil, true
		}
		if _, there, ok := r.listed(name); ok && !there {
			return reply, tree.NotExist("read", name), true
		}
	case wire.ReadDir:
		if entries, ok := r.folders[name]; ok {
			return wire.Reply{Entries: entries}, nil, true
		}
	}
	return reply, nil, false
}

// listed finds name in the listing of its folder; ok tells that there is one.
func (r *remote) listed(name string) (e tree.Entry, there, ok bool) {
	if name == "." {
		return e, false, false
	}
	entries, ok := r.folders[path.Dir(name)]
	if !ok {
		return e, false, false
	}
	i, there := slices.BinarySearchFunc(entries, path.Base(name), func(e tree.Entry, base string) int { return strings.Compare(e.Name, base) })
	if !there {
		return e, false, true
	}
	return entries[i], true, true
}

// Stat implements tree.FS. Hash and size are not known here.
func (r *remote) Stat(name string) (tree.Entry, error) {
	reply, err := r.answer(wire.Stat, name)
	if err != nil {
		return tree.Entry{}, err
	}
	return tree.Entry{Name: path.Base(name), Kind: reply.Kind, Size: -1}, nil
}

// ReadFile implements tree.FS.
func (r *remote) ReadFile(name string) ([]byte, error) {
	reply, err := r.answer(wire.ReadFile, name)
	return reply.Data, err
}

// ReadDir implements tree.FS.
func (r *remote) ReadDir(name string) ([]tree.Entry, error) {
	reply, err := r.answer(wire.ReadDir, name)
	return slices.Clone(reply.Entries), err
}

// ReadLink implements tree.FS.
func (r *remote) ReadLink(name string) (string, error) {
	reply, err := r.answer(wire.ReadLink, name)
	return reply.Target, err
}
