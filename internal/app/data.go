package app

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"

	"github.com/lockstep-cd/lockstep/internal/chart"
	"github.com/lockstep-cd/lockstep/internal/filelock"
	"github.com/lockstep-cd/lockstep/internal/git"
	"github.com/lockstep-cd/lockstep/internal/record"
)

// data is what lies in the data directory.
type data struct {
	unlock  func() error
	git     *git.Store
	charts  *chart.Store
	records *record.Store
	// key of the hashes of desired objects.
	key []byte
}

// openData takes the directory for this process and opens what lies in it.
func openData(o Options) (*data, error) {
	dir, err := filepath.Abs(o.DataDir)
	if err != nil {
		return nil, fmt.Errorf("--data-dir %s: %w", o.DataDir, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("--data-dir %s: %w", o.DataDir, reason(err))
	}
	d := &data{}
	d.unlock, err = filelock.Take(filepath.Join(dir, "lock"))
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("--data-dir %s: is used by another lockstep serve; each process needs its own", o.DataDir)
	}
	if err != nil {
		return nil, fmt.Errorf("--data-dir %s: %w", o.DataDir, reason(err))
	}
	if err := d.open(dir, o); err != nil {
		return nil, errors.Join(fmt.Errorf("--data-dir %s: %w", o.DataDir, err), d.close())
	}
	return d, nil
}

func (d *data) open(dir string, o Options) error {
	var err error
	charts := chart.Options{Dir: filepath.Join(dir, "charts"), Log: o.Log.With("component", "chart"), APIServers: apiServer(o.REST.Host)}
	if o.Sources.AllowLoopback {
		charts.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	}
	if d.charts, err = chart.Open(charts); err != nil {
		return err
	}
	if d.git, err = git.Open(git.Options{
		Dir: filepath.Join(dir, "git"), LocalRoots: o.Sources.LocalRoots, Dial: d.charts.Dial, Log: o.Log.With("component", "git"),
	}); err != nil {
		return err
	}
	if d.records, err = record.Open(filepath.Join(dir, "proofs")); err != nil {
		return err
	}
	d.key, err = hashKey(filepath.Join(dir, "key"))
	return err
}

// close ends git's processes and gives the directory free.
func (d *data) close() error {
	var err error
	if d.git != nil {
		err = d.git.Close()
	}
	return errors.Join(err, d.unlock())
}

// apiServer is host and port of the API server, which no chart and no file may be fetched from.
func apiServer(host string) []string {
	if u, err := url.Parse(host); err == nil && u.Host != "" {
		host = u.Host
	}
	if host == "" {
		return nil
	}
	return []string{host}
}

// keySize is the size of the key in bytes.
const keySize = 32

// hashKey reads the key of the hashes of desired objects, or makes one. With another key nothing is recognised and
// everything is compared once.
func hashKey(file string) ([]byte, error) {
	key, err := os.ReadFile(file)
	if err == nil && len(key) == keySize {
		return key, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("key: %w", reason(err))
	}
	key = make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	// Whole or not at all: half a key, left by a crash, would be replaced anyway.
	if err := os.WriteFile(file+".new", key, 0o600); err != nil {
		return nil, fmt.Errorf("key: %w", reason(err))
	}
	return key, os.Rename(file+".new", file)
}

// reason is the system's own reason without the path, which our sentence names already.
func reason(err error) error {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return path.Err
	}
	return err
}
