package cluster

import (
	"errors"
	"hash/maphash"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-cd/lockstep/internal/manifest"
)

// store is the live state of one kind. It takes what the reflector brings and keeps of it the objects that an application
// declares or that carry a tracking mark; of all others only a hash of their name, so that "not there" is known without a
// request.
type store struct {
	read   Reader
	wants  func(manifest.Key) bool
	notify func(key manifest.Key, old, now Live)
	seed   maphash.Seed

	mu     sync.RWMutex
	kept   map[manifest.Key]Live
	others map[uint64]struct{}
	owned  map[string]map[manifest.Key]struct{}
	synced chan struct{}
	once   sync.Once
}

func newStore(read Reader, wants func(manifest.Key) bool, notify func(manifest.Key, Live, Live)) *store {
	return &store{
		read: read, wants: wants, notify: notify, seed: maphash.MakeSeed(),
		kept: map[manifest.Key]Live{}, others: map[uint64]struct{}{},
		owned: map[string]map[manifest.Key]struct{}{}, synced: make(chan struct{}),
	}
}

func (s *store) hash(k manifest.Key) uint64 { return maphash.String(s.seed, k.Namespace+"/"+k.Name) }

// Add implements cache.ReflectorStore.
func (s *store) Add(obj any) error { return s.put(obj) }

// Update implements cache.ReflectorStore.
func (s *store) Update(obj any) error { return s.put(obj) }

// Delete implements cache.ReflectorStore.
func (s *store) Delete(obj any) error {
	if tomb, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tomb.Obj
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return errNotObject
	}
	s.remove(manifest.KeyOf(u))
	return nil
}

// Resync implements cache.ReflectorStore; there is nothing to do.
func (s *store) Resync() error { return nil }

var errNotObject = errors.New("watch event holds no object")

func (s *store) put(obj any) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return errNotObject
	}
	s.set(s.read(u))
	return nil
}

// set stores l unless something newer is known, and tells those concerned.
func (s *store) set(l Live) {
	s.mu.Lock()
	old, known := s.kept[l.Key]
	if known && old.UID == l.UID && !newer(l.ResourceVersion, old.ResourceVersion) {
		s.mu.Unlock()
		return
	}
	keep := known || l.Tracking != "" || s.wants(l.Key)
	if keep {
		s.disown(old)
		s.own(l)
		s.kept[l.Key] = l
		delete(s.others, s.hash(l.Key))
	} else {
		s.others[s.hash(l.Key)] = struct{}{}
	}
	s.mu.Unlock()
	if keep && (!known || l.relevant(old)) {
		s.notify(l.Key, old, l)
	}
}

func (s *store) remove(key manifest.Key) {
	s.mu.Lock()
	old, known := s.kept[key]
	s.disown(old)
	delete(s.kept, key)
	delete(s.others, s.hash(key))
	s.mu.Unlock()
	if known {
		s.notify(key, old, Live{})
	}
}

// Replace implements cache.ReflectorStore: the whole list, after a start or a lost watch.
func (s *store) Replace(list []any, _ string) error {
	seen := make(map[manifest.Key]struct{}, len(list))
	for _, obj := range list {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return errNotObject
		}
		l := s.read(u)
		seen[l.Key] = struct{}{}
		s.set(l)
	}
	s.mu.RLock()
	var gone []manifest.Key
	for key := range s.kept {
		if _, ok := seen[key]; !ok {
			gone = append(gone, key)
		}
	}
	s.mu.RUnlock()
	for _, key := range gone {
		s.remove(key)
	}
	s.once.Do(func() { close(s.synced) })
	return nil
}

// get returns what is kept of key; unread tells that the object exists and is not kept.
func (s *store) get(key manifest.Key) (l Live, found, unread bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if l, found = s.kept[key]; found {
		return l, true, false
	}
	_, unread = s.others[s.hash(key)]
	return Live{}, false, unread
}

func (s *store) own(l Live) {
	if l.Owner == "" {
		return
	}
	keys := s.owned[l.Owner]
	if keys == nil {
		keys = map[manifest.Key]struct{}{}
		s.owned[l.Owner] = keys
	}
	keys[l.Key] = struct{}{}
}

func (s *store) disown(l Live) {
	keys := s.owned[l.Owner]
	delete(keys, l.Key)
	if len(keys) == 0 {
		delete(s.owned, l.Owner)
	}
}

// of appends the objects that owner owns.
func (s *store) of(owner string, out []Live) []Live {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for key := range s.owned[owner] {
		out = append(out, s.kept[key])
	}
	return out
}
