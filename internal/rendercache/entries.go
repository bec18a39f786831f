package rendercache

import (
	"bytes"
	"compress/flate"
	"container/list"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// entries are the files of a store in the order of their last use, the latest first.
type entries struct {
	byFile map[string]*list.Element
	order  *list.List
	bytes  int64
}

type entry struct {
	file string
	size int64
	used time.Time
}

func newEntries() entries { return entries{byFile: map[string]*list.Element{}, order: list.New()} }

// set notes that a file was used, and returns when it was before.
func (e *entries) set(file string, size int64, used time.Time) (before time.Time) {
	if el := e.byFile[file]; el != nil {
		old, _ := el.Value.(*entry)
		before = old.used
		e.bytes -= old.size
		e.order.Remove(el)
	}
	at := e.order.Front()
	for at != nil && at.Value.(*entry).used.After(used) { //nolint:forcetypeassert // the list holds nothing else
		at = at.Next() // only where the clock went back
	}
	n := &entry{file: file, size: size, used: used}
	if at == nil {
		e.byFile[file] = e.order.PushBack(n)
	} else {
		e.byFile[file] = e.order.InsertBefore(n, at)
	}
	e.bytes += size
	return before
}

func (e *entries) drop(file string) {
	el := e.byFile[file]
	if el == nil {
		return
	}
	old, _ := el.Value.(*entry)
	e.bytes -= old.size
	e.order.Remove(el)
	delete(e.byFile, file)
}

// over drops the files that are too many for the bound and returns them.
func (e *entries) over(bound int64) []string {
	var files []string
	for e.bytes > bound {
		el := e.order.Back()
		if el == nil {
			break
		}
		old, _ := el.Value.(*entry)
		files = append(files, old.file)
		e.drop(old.file)
	}
	return files
}

// form is the first byte of an entry's content.
const form = 1

// maxEntry bounds what an entry is unpacked to, in bytes.
const maxEntry = 256 << 20

var errForm = errors.New("is of another form")

// seal packs and encrypts data. The name of the file is sealed with it, so that no entry can stand in for another.
func (s *Store) seal(file string, data []byte) ([]byte, error) {
	packed := bytes.NewBuffer([]byte{form})
	w, err := flate.NewWriter(packed, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return s.aead.Seal(nil, nil, packed.Bytes(), []byte(file)), nil
}

// open is the content of an entry, or an error for one that is not exactly what was written.
func (s *Store) open(file string, sealed []byte) ([]byte, error) {
	packed, err := s.aead.Open(nil, nil, sealed, []byte(file))
	if err != nil {
		return nil, err
	}
	if len(packed) == 0 || packed[0] != form {
		return nil, errForm
	}
	r := flate.NewReader(bytes.NewReader(packed[1:]))
	data, err := io.ReadAll(io.LimitReader(r, maxEntry+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxEntry {
		return nil, fmt.Errorf("more than %d bytes", maxEntry)
	}
	return slices.Clip(data), r.Close()
}
