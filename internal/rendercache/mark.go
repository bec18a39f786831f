package rendercache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// markFile tells which key and which version the folder belongs to.
const markFile = "mark"

// ours empties a folder that another key or another version has written to.
func (s *Store) ours(key, version string) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	file := filepath.Join(s.dir, markFile)
	found, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.mark = key + " " + version
	if string(found) == s.mark {
		return nil
	}
	names, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := os.RemoveAll(filepath.Join(s.dir, n.Name())); err != nil {
			return err
		}
	}
	if len(names) > 0 {
		s.log.Warn("the rendering cache is thrown away, and everything is rendered again", "reason", foreign(string(found), key, version))
	}
	return s.sign()
}

// sign writes the mark, without which the next start would take what lies in the folder for somebody else's.
func (s *Store) sign() error {
	return os.WriteFile(filepath.Join(s.dir, markFile), []byte(s.mark), 0o600)
}

// foreign says why a folder with the mark found is not that of key and version.
func foreign(found, key, version string) string {
	switch theirs, other, marked := strings.Cut(found, " "); {
	case !marked:
		return "it does not tell which key it is encrypted with"
	case theirs != key:
		return "it is encrypted with another key than the one in the cluster"
	default:
		return fmt.Sprintf("it is of version %s, and this program writes version %s", other, version)
	}
}
