// Package rendercache owns what was rendered, on disk: entries of bytes, encrypted and bounded, so that a restart renders
// nothing (DESIGN.md §2.2). Whatever happens to its folder costs another rendering and nothing else: an entry that is
// damaged, cut off or of another key is thrown away.
//
// It knows nothing of what an entry says. It imports nothing of ours.
package rendercache

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// KeySize is the size of the key in bytes.
const KeySize = 32

// Options of a store.
type Options struct {
	// Dir is the folder; it is made. All of it belongs to the store.
	Dir string
	// Key encrypts; KeySize bytes. With another key than before, everything is thrown away.
	Key []byte
	// Version is that of what entries say. What another version has written is thrown away.
	Version int
	// MaxBytes bounds what lies on disk; what was used least lately goes. Default 1 GiB.
	MaxBytes int64
	// Now is the clock; default time.Now.
	Now func() time.Time
	// Log hears in one sentence that something was thrown away, or can not be kept; default nobody.
	Log *slog.Logger
}

// Store keeps entries. It is safe for use by several goroutines; several for one name at a time leave one of them.
type Store struct {
	dir  string
	aead cipher.AEAD
	key  []byte // of the names
	mark string // says whose the folder is
	max  int64
	now  func() time.Time
	log  *slog.Logger
	// damaged is said once: a broken disk has a thousand broken files.
	damaged sync.Once

	mu      sync.Mutex
	entries entries
	// full tells that the last entry could not be written, which was said.
	full bool
}

// Open makes the folder, throws away what another key has written, and looks what is there.
func Open(o Options) (*Store, error) {
	if len(o.Key) != KeySize {
		return nil, fmt.Errorf("rendering cache: the key has %d bytes, not %d", len(o.Key), KeySize)
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 30
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	block, err := aes.NewCipher(derive(o.Key, "content"))
	if err != nil {
		return nil, fmt.Errorf("rendering cache: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("rendering cache: %w", err)
	}
	s := &Store{dir: o.Dir, aead: aead, key: derive(o.Key, "names"), max: o.MaxBytes, now: o.Now, log: o.Log}
	key := hex.EncodeToString(derive(o.Key, "mark"))
	if err := s.ours(key, fmt.Sprintf("%d.%d", form, o.Version)); err != nil {
		return nil, fmt.Errorf("rendering cache: %w", err)
	}
	if s.entries, err = s.read(); err != nil {
		return nil, fmt.Errorf("rendering cache: %w", err)
	}
	s.shrink()
	return s, nil
}

func derive(key []byte, purpose string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("lockstep rendering cache: " + purpose))
	return mac.Sum(nil)
}

const (
	suffix = ".rendering"
	// fresh is the suffix of a file that is being written; one that is found was left by a crash.
	fresh = ".new"
)

// read lists what lies in the folder.
func (s *Store) read() (entries, error) {
	found := newEntries()
	names, err := os.ReadDir(s.dir)
	if err != nil {
		return found, err
	}
	var list []fs.FileInfo
	for _, n := range names {
		switch {
		case strings.HasSuffix(n.Name(), suffix):
			if info, err := n.Info(); err == nil {
				list = append(list, info)
			}
		case strings.HasSuffix(n.Name(), fresh):
			_ = os.Remove(filepath.Join(s.dir, n.Name())) // else it stays for the next start
		}
	}
	slices.SortFunc(list, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range list {
		found.set(info.Name(), info.Size(), info.ModTime())
	}
	return found, nil
}

// Get returns the entry of an owner by its name, and whether there is one.
func (s *Store) Get(owner, name string) ([]byte, bool) {
	file := s.file(owner, name)
	s.mu.Lock()
	_, known := s.entries.byFile[file]
	s.mu.Unlock()
	if !known {
		return nil, false
	}
	sealed, err := os.ReadFile(filepath.Join(s.dir, file))
	if err == nil {
		var data []byte
		if data, err = s.open(file, sealed); err == nil {
			s.used(file, int64(len(sealed)))
			return data, true
		}
	}
	s.damaged.Do(func() {
		s.log.Warn("the rendering cache is damaged: each entry that can not be read is thrown away and rendered again", "error", err)
	})
	s.remove(file)
	return nil, false
}

// Put keeps data as the entry of an owner by its name, in place of an earlier one. An entry that takes more than half of
// the whole bound is not kept.
func (s *Store) Put(owner, name string, data []byte) error {
	file := s.file(owner, name)
	sealed, err := s.seal(file, data)
	if err != nil {
		return fmt.Errorf("rendering cache: %w", err)
	}
	if int64(len(sealed)) > s.max/2 {
		s.remove(file)
		return nil
	}
	err = s.write(file, sealed)
	s.say(err)
	if err != nil {
		return fmt.Errorf("rendering cache: %w", err)
	}
	s.mu.Lock()
	s.entries.set(file, int64(len(sealed)), s.now())
	s.mu.Unlock()
	s.shrink()
	return nil
}

// say tells once that nothing can be written, and once that it can be again.
func (s *Store) say(err error) {
	s.mu.Lock()
	changed := s.full != (err != nil)
	s.full = err != nil
	s.mu.Unlock()
	switch {
	case !changed:
	case err != nil:
		s.log.Warn("the rendering cache can not be written: what is rendered now is rendered again after a restart", "error", err)
	default:
		s.log.Info("the rendering cache can be written again")
	}
}

// write puts a file in place, whole or not at all. The folder may have been taken away.
func (s *Store) write(file string, data []byte) error {
	f, err := os.CreateTemp(s.dir, "*"+fresh)
	if errors.Is(err, fs.ErrNotExist) {
		if err := errors.Join(os.MkdirAll(s.dir, 0o700), s.sign()); err != nil {
			return err
		}
		f, err = os.CreateTemp(s.dir, "*"+fresh)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(s.dir, file))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Drop removes all entries of an owner.
func (s *Store) Drop(owner string) {
	prefix := s.prefix(owner)
	s.mu.Lock()
	var files []string
	for file := range s.entries.byFile {
		if strings.HasPrefix(file, prefix) {
			files = append(files, file)
		}
	}
	s.mu.Unlock()
	for _, file := range files {
		s.remove(file)
	}
}

// Size is the number of entries and what they take on disk, in bytes.
func (s *Store) Size() (count int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries.byFile), s.entries.bytes
}

// file is the name of an entry's file; it tells nothing of whose it is.
func (s *Store) file(owner, name string) string { return s.prefix(owner) + s.hash(name) + suffix }

func (s *Store) prefix(owner string) string { return s.hash(owner) + "-" }

func (s *Store) hash(text string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

func (s *Store) remove(file string) {
	s.mu.Lock()
	s.entries.drop(file)
	s.mu.Unlock()
	// What can not be removed is found at the next start, and thrown away again when it is asked for.
	_ = os.Remove(filepath.Join(s.dir, file))
}

// touchAfter is how old the time of a file may get: a restart must not write a thousand of them.
const touchAfter = time.Hour

func (s *Store) used(file string, size int64) {
	now := s.now()
	s.mu.Lock()
	before := s.entries.set(file, size, now)
	s.mu.Unlock()
	if now.Sub(before) > touchAfter {
		_ = os.Chtimes(filepath.Join(s.dir, file), now, now) // else it counts as used less lately than it was
	}
}

// shrink removes what was used least lately until the rest is within the bound.
func (s *Store) shrink() {
	s.mu.Lock()
	files := s.entries.over(s.max)
	s.mu.Unlock()
	for _, file := range files {
		_ = os.Remove(filepath.Join(s.dir, file)) // as in remove
	}
}
