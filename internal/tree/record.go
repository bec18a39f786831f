package tree

import "sync"

// question is a Read without what it found.
type question struct {
	op   ReadOp
	path string
}

// ReadSet gathers what is read through a view that Record made. It is safe for use by several goroutines.
type ReadSet struct {
	mu    sync.Mutex
	found map[question]string
}

// Record is a view of f that notes every read in the set it returns.
func Record(f FS) (FS, *ReadSet) {
	set := &ReadSet{found: map[question]string{}}
	return recorder{base: f, set: set}, set
}

// Reads is what was read until now.
func (s *ReadSet) Reads() Reads {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make(Reads, 0, len(s.found))
	for q, found := range s.found {
		list = append(list, Read{Op: q.op, Path: q.path, Found: found})
	}
	return sortReads(list)
}

func (s *ReadSet) note(op ReadOp, path, found string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := question{op, path}
	if _, again := s.found[q]; !again {
		s.found[q] = found
	}
}

type recorder struct {
	base FS
	set  *ReadSet
}

func (v recorder) Stat(name string) (Entry, error) {
	e, err := v.base.Stat(name)
	found := kindOf(e)
	if err != nil {
		found = failure(err)
	}
	v.set.note(ReadKind, name, found)
	return e, err
}

func (v recorder) ReadFile(name string) ([]byte, error) {
	data, err := v.base.ReadFile(name)
	if err != nil {
		v.set.note(ReadContent, name, answer(v.base, ReadContent, name))
		return nil, err
	}
	v.noteFile(name, data)
	return data, nil
}

func (v recorder) noteFile(name string, data []byte) {
	if e, err := v.base.Stat(name); err == nil && e.Hash != "" {
		v.set.note(ReadContent, name, e.Hash)
	} else {
		v.set.note(ReadContent, name, contentHash(data))
	}
}

func (v recorder) ReadDir(name string) ([]Entry, error) {
	entries, err := v.base.ReadDir(name)
	found := failure(err)
	if err == nil {
		found = listing(entries)
	}
	v.set.note(ReadNames, name, found)
	return entries, err
}

func (v recorder) ReadLink(name string) (string, error) {
	target, err := v.base.ReadLink(name)
	found := target
	if err != nil {
		found = failure(err)
	}
	v.set.note(ReadTarget, name, found)
	return target, err
}
