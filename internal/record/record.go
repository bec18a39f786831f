// Package record owns the proofs of what was applied: for each object of an application the hash of what was sent and of
// the ownership entry that the server answered with (DESIGN.md §2.4). They live on disk, one file an application, so that
// a restart compares nothing. Losing them costs one comparison an object and nothing else.
//
// It holds no object and no secret, only hashes. It imports compare's pair and manifest's key.
package record

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/lockstep-cd/lockstep/internal/compare"
	"github.com/lockstep-cd/lockstep/internal/manifest"
)

// Store keeps the proofs below a folder. Calls for one application must not run at the same time.
type Store struct {
	dir string
}

// Open makes the folder.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return &Store{dir: dir}, nil
}

// longestName is how long a file's name may be: file systems take 255 bytes, and an application's name alone may have 253.
const longestName = 160

// Proofs by object.
type Proofs map[manifest.Key]compare.Pair

type line struct {
	Group     string `json:"g,omitempty"`
	Kind      string `json:"k"`
	Namespace string `json:"ns,omitempty"`
	Name      string `json:"n"`
	compare.Pair
}

// Load reads the proofs of an application. What can't be read counts as unknown.
func (s *Store) Load(application string) Proofs {
	proofs := Proofs{}
	data, err := os.ReadFile(s.file(application))
	if err != nil {
		return proofs
	}
	var lines []line
	if json.Unmarshal(data, &lines) != nil {
		return proofs
	}
	for _, l := range lines {
		proofs[manifest.Key{Group: l.Group, Kind: l.Kind, Namespace: l.Namespace, Name: l.Name}] = l.Pair
	}
	return proofs
}

// Save replaces the proofs of an application, whole or not at all.
func (s *Store) Save(application string, proofs Proofs) error {
	lines := make([]line, 0, len(proofs))
	for k, p := range proofs {
		lines = append(lines, line{Group: k.Group, Kind: k.Kind, Namespace: k.Namespace, Name: k.Name, Pair: p})
	}
	data, err := json.Marshal(lines)
	if err != nil {
		return fmt.Errorf("record %s: %w", application, err)
	}
	file := s.file(application)
	err = replace(file, data)
	if errors.Is(err, fs.ErrNotExist) { // the folder was removed while the process ran
		if err = os.MkdirAll(s.dir, 0o700); err == nil {
			err = replace(file, data)
		}
	}
	if err != nil {
		return fmt.Errorf("record %s: %w", application, err)
	}
	return nil
}

func replace(file string, data []byte) error {
	if err := os.WriteFile(file+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// Drop forgets an application.
func (s *Store) Drop(application string) error {
	if err := os.Remove(s.file(application)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("record %s: %w", application, err)
	}
	return nil
}

func (s *Store) file(application string) string {
	name := url.PathEscape(application)
	if len(name) > longestName {
		sum := sha256.Sum256([]byte(application))
		name = name[:longestName/2] + "~" + hex.EncodeToString(sum[:])
	}
	return filepath.Join(s.dir, name+".json")
}
