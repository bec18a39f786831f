// Package git owns Git repositories: one bare mirror for each of them in the data directory, what a remote advertises,
// fetching, and reading commits as tree.FS. The git program does network and object store; objects are read through a
// bounded pool of `git cat-file` processes, never from a work tree.
//
// It imports tree and filelock and nothing else of ours. Which revision an application wants is decided by package resolve; whether a
// project may use a repository is decided by its callers.
package git

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/lockstep-cd/lockstep/internal/filelock"
)

// Options of a Store. Dir is required, everything else has a useful zero value.
type Options struct {
	// Dir is the data directory; mirrors lie below it. One process uses it at a time.
	Dir string
	// GitProgram is the git program, a path or a name on PATH; default "git".
	GitProgram string
	// Readers bounds the `git cat-file` processes of all mirrors together; default 4.
	Readers int
	// ReaderIdle is after how long a reader that nobody asks ends; default one minute.
	ReaderIdle time.Duration
	// Connections bounds the git processes that speak to remotes at one time; default 8.
	Connections int
	// RefsTimeout bounds one look at what a remote advertises; default one minute.
	RefsTimeout time.Duration
	// FetchTimeout bounds one fetch; default 10 minutes.
	FetchTimeout time.Duration
	// LocalRoots are the folders below which file: URLs and plain paths are accepted; none by default.
	LocalRoots []string
	// Dial connects to servers that answers name, such as the store of a Git LFS server, and refuses those that may not be
	// reached; nil refuses none. The repositories' own servers are the administrator's choice.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Proxy and NoProxy apply to http(s) repositories that name none of their own.
	Proxy, NoProxy string
	// MaxFile is the size in bytes above which a file of a tree is refused; default 50 MiB.
	MaxFile int64
	// TreeCache bounds the folder entries held in memory; default 100,000 (about 13 MB).
	TreeCache int
	// Grace is how long a commit is kept after Ensure although Keep does not name it, so that a commit that was just
	// asked for is not taken from under its reader; default one hour.
	Grace time.Duration
	// Now is the clock; default time.Now.
	Now func() time.Time
	// Log gets what an operator should know; default nowhere.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	num := func(n *int, v int) {
		if *n <= 0 {
			*n = v
		}
	}
	def(&o.ReaderIdle, time.Minute)
	def(&o.RefsTimeout, time.Minute)
	def(&o.FetchTimeout, 10*time.Minute)
	def(&o.Grace, time.Hour)
	num(&o.Readers, 4)
	num(&o.Connections, 8)
	num(&o.TreeCache, 100_000)
	if o.MaxFile <= 0 {
		o.MaxFile = 50 << 20
	}
	if o.GitProgram == "" {
		o.GitProgram = "git"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Store is the set of mirrors of one data directory. It is safe for use by several goroutines.
type Store struct {
	opt     Options
	program string
	// private is a folder of mode 0700, in memory where the machine has such a place, for what git and ssh only take
	// as files. Its folder home is the empty HOME of all git processes.
	private string
	// release removes the private folder and gives the data directory free.
	release func() error
	readers *pool
	trees   *lru
	network chan struct{}
	flights flights
	proofs  proofs

	mu      sync.Mutex
	mirrors map[string]*mirror

	// stop ends everything that runs; running counts it.
	stop    context.CancelFunc
	done    <-chan struct{}
	running sync.WaitGroup
}

// Open makes a Store of the data directory, which is created if it is missing. It fails when another process uses the
// directory or when there is no git program.
func Open(o Options) (*Store, error) {
	o = o.withDefaults()
	if o.Dir == "" {
		return nil, errors.New("git store: no data directory")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	o.Dir = dir
	program, err := exec.LookPath(o.GitProgram)
	if err != nil {
		return nil, fmt.Errorf("git program %s: %w: install git, or name it", o.GitProgram, err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "mirrors"), 0o700); err != nil {
		return nil, err
	}
	unlock, err := filelock.Take(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("git store: %w", err)
	}
	private, remove, err := privateDir(time.Now()) // not o.Now: file times are the machine's
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key)                                   // never fails
	ctx, cancel := context.WithCancel(context.Background()) // ends with Close
	s := &Store{
		opt: o, program: program, private: private,
		release: func() error { return errors.Join(remove(), unlock()) },
		trees:   newLRU(o.TreeCache), network: make(chan struct{}, o.Connections),
		flights: flights{calls: map[string]*call{}}, proofs: proofs{key: key, known: map[proof]bool{}},
		mirrors: map[string]*mirror{}, stop: cancel, done: ctx.Done(),
	}
	s.readers = newPool(o.Readers, o.ReaderIdle, s.startReader)
	return s, nil
}

// Close ends all processes of the store, waits for them and gives the data directory free. Calls that still run end
// with an error.
func (s *Store) Close() error {
	s.flights.mu.Lock() // so that no run starts after we have begun to wait
	s.stop()
	s.flights.mu.Unlock()
	s.running.Wait()
	s.readers.close()
	return s.release()
}

// Repo is a repository and what its server wants to know.
type Repo struct {
	// URL as people write it: https, http, ssh, user@host:path, and file or a path below a local root.
	URL         string
	Credentials Credentials
	// Depth limits the history that is fetched, in commits; 0 fetches all of it. Commits beyond it are not found.
	Depth int
	// LFS exchanges pointers of Git LFS for the files that they stand for.
	LFS bool
}

// Credentials for one repository; the zero value is anonymous. What is set but can not be used with the URL's scheme is
// not sent.
type Credentials struct {
	// Username and Password of basic authentication. For ssh Username is the user when the URL names none.
	Username, Password string
	// BearerToken is sent in the Authorization header and wins over Username and Password. Redirects are not followed
	// with it: git would send the header to wherever they lead.
	BearerToken string
	// ForceBasicAuth sends Username and Password with the first request, for servers that do not ask. Redirects are
	// not followed with it either.
	ForceBasicAuth bool
	// SSHPrivateKey is an unencrypted key as ssh reads it.
	SSHPrivateKey string
	// KnownHosts are lines as in a known_hosts file. Without a line for the host the connection is refused.
	KnownHosts string
	// InsecureIgnoreHostKey accepts any ssh host key.
	InsecureIgnoreHostKey bool
	// TLSClientCert and TLSClientKey are PEM.
	TLSClientCert, TLSClientKey string
	// CA is PEM and replaces the authorities of the system.
	CA string
	// Insecure accepts any TLS certificate.
	Insecure bool
	// Proxy is the URL of a proxy for http(s); NoProxy the hosts that are reached without it, separated by commas.
	Proxy, NoProxy string
}
