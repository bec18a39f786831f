package engine

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/lockstep-cd/lockstep/internal/manifest"

	"cmp"
)

// sealer keeps the bodies of Secrets unreadable in memory, with a key that lives as long as the process: what a dump, a
// log or an answer could show of them is noise (DESIGN.md §5).
type sealer struct {
	aead cipher.AEAD
}

func newSealer() (*sealer, error) {
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return &sealer{aead: aead}, nil
}

func (s *sealer) seal(plain []byte) []byte { return s.aead.Seal(nil, nil, plain, nil) }

// body is what is sent for d.
func (e *Engine) body(d *desired) []byte {
	if !d.sealed {
		return d.body
	}
	plain, err := e.sealer.aead.Open(nil, nil, d.body, nil)
	if err != nil {
		return nil // sealed by this process, so it opens; an empty body is refused by the API server
	}
	return plain
}

// Small helpers of this package.

func asError[T error](err error, to *T) bool { return errors.As(err, to) }

func first[T any](list []T) T {
	var zero T
	if len(list) == 0 {
		return zero
	}
	return list[0]
}

func trimSlash(s string) string {
	for len(s) > 0 && s[len(s)-1] == '/' {
		s = s[:len(s)-1]
	}
	return s
}

func compareKeys(a, b manifest.Key) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// sameJSON compares values as they are stored: an absent and an empty field are one.
func sameJSON(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
