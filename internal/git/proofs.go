package git

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"sync"
)

// proofs remembers which credentials a server has accepted since we started, so that a commit in a mirror is not given
// to somebody whom the server would not give it to.
type proofs struct {
	mu    sync.Mutex
	key   []byte
	known map[proof]bool
}

type proof [sha256.Size]byte

// of identifies repository and credentials without holding them.
func (p *proofs) of(r Repo) proof {
	mac := hmac.New(sha256.New, p.key)
	_ = json.NewEncoder(mac).Encode(r) // strings only: can not fail
	return proof(mac.Sum(nil))
}

func (p *proofs) has(id proof) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known[id]
}

func (p *proofs) set(id proof, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !ok {
		delete(p.known, id)
		return
	}
	if len(p.known) > 100_000 {
		clear(p.known) // each is proved again when it is asked for
	}
	p.known[id] = true
}
