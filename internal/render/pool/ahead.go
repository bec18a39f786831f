package pool

import (
	"path"
	"slices"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/render/wire"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// A question costs both sides more than most answers do, so answers to the next questions are sent along. Reading for that
// leaves no trace in the read set; what the worker then needs is noted when it says so.
const (
	// aheadFile bounds a file, aheadBytes all that is sent along with one answer, aheadEntries a folder.
	aheadFile    = 64 << 10
	aheadBytes   = 1 << 20
	aheadEntries = 256
	// siblings bounds the files that are sent along with one that lies beside them.
	siblings = 32
	// folders bounds the folders of a chart.
	folders = 64
)

// sender chooses what is sent ahead.
type sender struct {
	talk *talk
	tool v1alpha1.ApplicationSourceType
	// folders and files are what was sent already; of files, the content, nil for one that was asked for.
	folders map[wire.Question]bool
	files   map[wire.Question][]byte
	// room is what is left for one answer, in bytes.
	room int
}

func newSender(t *talk, tool v1alpha1.ApplicationSourceType) *sender {
	return &sender{talk: t, tool: tool, folders: map[wire.Question]bool{}, files: map[wire.Question][]byte{}}
}

// sent is the content of a file that was sent ahead.
func (s *sender) sent(q wire.Question) ([]byte, bool) {
	data := s.files[q]
	return data, data != nil
}

// source is what a rendering of the folder dir begins with.
func (s *sender) source(dir string) wire.Ahead {
	s.room = aheadBytes
	a := wire.Ahead{}
	for _, up := range parents(dir) {
		if e, err := s.peek(0).Stat(up); err != nil || e.Kind != tree.Dir {
			return a // what lies behind a link has another path
		}
		a.Dirs = append(a.Dirs, up)
	}
	if s.tool == v1alpha1.SourceTypeHelm {
		s.chart(&a, dir)
		return a
	}
	if entries := s.folder(&a, dir); entries != nil {
		s.filesOf(&a, dir, entries)
	}
	return a
}

// parents are the folders on the way to dir, and dir.
func parents(dir string) []string {
	var list []string
	for at := dir; at != "."; at = path.Dir(at) {
		list = append(list, at)
	}
	slices.Reverse(list)
	return list
}

// fetched is what lies in a source that was fetched: a chart will be read whole.
func (s *sender) fetched(number int, l job.Locator) wire.Ahead {
	s.room = aheadBytes
	a := wire.Ahead{Tree: number}
	if l.Kind == job.LocateChart {
		s.chart(&a, ".")
	}
	return a
}

// after is what most likely follows a question that was answered with r.
func (s *sender) after(q wire.Question, r wire.Reply) wire.Ahead {
	s.room = aheadBytes
	a := wire.Ahead{Tree: q.Tree}
	switch q.Op {
	case wire.ReadFile:
		s.files[q] = nil
	case wire.ReadDir:
		s.folders[wire.Question{Op: wire.ReadDir, Tree: q.Tree, Path: q.Path}] = true
	}
	if s.tool == v1alpha1.SourceTypeHelm {
		return a
	}
	switch {
	case q.Op == wire.Stat && r.Kind == tree.Dir:
		s.folder(&a, q.Path)
	case q.Op == wire.ReadDir:
		s.filesOf(&a, q.Path, r.Entries)
	case q.Op == wire.ReadFile:
		if entries, err := s.peek(q.Tree).ReadDir(path.Dir(q.Path)); err == nil {
			s.filesOf(&a, path.Dir(q.Path), entries)
		}
	}
	return a
}

func (s *sender) peek(number int) tree.FS { return tree.Peek(s.talk.trees[number]) }

// folder adds the listing of a folder, unless it is known or large.
func (s *sender) folder(a *wire.Ahead, dir string) []tree.Entry {
	q := wire.Question{Op: wire.ReadDir, Tree: a.Tree, Path: dir}
	if s.folders[q] {
		return nil
	}
	entries, err := s.peek(a.Tree).ReadDir(dir)
	if err != nil || len(entries) > aheadEntries {
		return nil
	}
	s.folders[q] = true
	a.Folders = append(a.Folders, wire.Folder{Path: dir, Entries: entries})
	return entries
}

// filesOf adds the files of a folder, unless there are many.
func (s *sender) filesOf(a *wire.Ahead, dir string, entries []tree.Entry) {
	var names []string
	for _, e := range entries {
		if e.Kind == tree.File {
			names = append(names, path.Join(dir, e.Name))
		}
	}
	if len(names) > siblings {
		return
	}
	for _, name := range names {
		s.file(a, name)
	}
}

func (s *sender) file(a *wire.Ahead, name string) {
	q := wire.Question{Op: wire.ReadFile, Tree: a.Tree, Path: name}
	if _, known := s.files[q]; known || s.room <= 0 {
		return
	}
	data, err := s.peek(a.Tree).ReadFile(name)
	if err != nil || len(data) > aheadFile || len(data) > s.room {
		return
	}
	if data == nil {
		data = []byte{}
	}
	s.room -= len(data)
	s.files[q] = data
	a.Files = append(a.Files, wire.File{Path: name, Data: data})
}

// chart adds a folder with everything below it.
func (s *sender) chart(a *wire.Ahead, dir string) {
	if len(a.Folders) >= folders || s.room <= 0 {
		return
	}
	for _, e := range s.folder(a, dir) {
		switch e.Kind {
		case tree.File:
			s.file(a, path.Join(dir, e.Name))
		case tree.Dir:
			s.chart(a, path.Join(dir, e.Name))
		}
	}
}
