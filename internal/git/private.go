package git

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/lockstep-cd/lockstep/internal/filelock"
)

// privatePrefix starts the names of our private folders.
const privatePrefix = "lockstep-git-"

// privateDir makes a folder of mode 0700 for what programs only take as files, in memory where the machine has such a
// place. A lock in it tells that its store lives; folders without a living store are taken away, for a process that was
// killed may have left keys in them.
func privateDir(now time.Time) (dir string, remove func() error, err error) {
	base := memoryDir
	if info, err := os.Stat(base); base == "" || err != nil || !info.IsDir() {
		base = os.TempDir()
	}
	removeAbandoned(base, now)
	dir, err = os.MkdirTemp(base, privatePrefix)
	if err != nil && base != os.TempDir() {
		dir, err = os.MkdirTemp("", privatePrefix)
	}
	if err != nil {
		return "", nil, err
	}
	unlock, err := filelock.Take(filepath.Join(dir, "lock"))
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	remove = func() error { return errors.Join(unlock(), os.RemoveAll(dir)) }
	if err := os.Mkdir(filepath.Join(dir, "home"), 0o500); err != nil {
		return "", nil, errors.Join(err, remove())
	}
	return dir, remove, nil
}

// removeAbandoned spares folders younger than a minute: their lock may just be made. Those of other users can not be
// opened.
func removeAbandoned(base string, now time.Time) {
	old, _ := filepath.Glob(filepath.Join(base, privatePrefix+"*"))
	for _, dir := range old {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || now.Sub(info.ModTime()) < time.Minute {
			continue
		}
		if unlock, err := filelock.Take(filepath.Join(dir, "lock")); err == nil {
			_ = errors.Join(unlock(), os.RemoveAll(dir)) // the next store tries again
		}
	}
}
