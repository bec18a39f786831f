package cluster

import (
	"errors"
	"hash/maphash"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
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

	mu sync.RWMutex
	// latest is the resource version up to which the reflector has told everything.
	latest string
	kept   map[manifest.Key]Live
	others map[uint64]struct{}
	owned  map[string]map[manifest.Key]struct{}
	// synced is closed when the first list is in; see again.
	synced chan struct{}
	listed bool
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
	s.told(u.GetResourceVersion())
	s.remove(manifest.KeyOf(u), u.GetResourceVersion())
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
	s.told(u.GetResourceVersion())
	s.set(s.read(u))
	return nil
}

func (s *store) told(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.latest == "" || newer(version, s.latest) {
		s.latest = version
	}
}

// observe stores what a request of ours answered, see set.
func (s *store) observe(l Live) { s.take(l, true) }

// set stores what the reflector brings.
func (s *store) set(l Live) { s.take(l, false) }

// take stores l unless something newer is known, and tells those concerned. The reflector may be ahead of an answer: an
// object that it does not know up to the answer's version was deleted since.
func (s *store) take(l Live, answer bool) {
	s.mu.Lock()
	old, known := s.kept[l.Key]
	_, other := s.others[s.hash(l.Key)]
	gone := answer && !known && !other && s.latest != "" && !newer(l.ResourceVersion, s.latest)
	if gone || known && !newer(l.ResourceVersion, old.ResourceVersion) && !otherwise(l, old) {
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

// ends notes that a request of ours began the deletion of the object that has uid, which was at version then. Until the
// reflector tells that it is gone, or that another is in its place, it counts as being deleted: nobody deletes it twice.
func (s *store) ends(key manifest.Key, uid types.UID, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, known := s.kept[key]
	if !known || l.UID != uid {
		return
	}
	if l.Deleting = true; version != "" && newer(version, l.ResourceVersion) {
		l.ResourceVersion = version
	}
	s.kept[key] = l
}

// otherwise tells that the same object was read by another reader: the settings of how objects are marked, or of what is well,
// have changed.
func otherwise(l, old Live) bool {
	return l.UID == old.UID && l.ResourceVersion == old.ResourceVersion &&
		(l.Owner != old.Owner || l.ByLabel != old.ByLabel || l.Tracking != old.Tracking || l.HasHealth != old.HasHealth ||
			l.Health.Status != old.Health.Status || l.Health.Message != old.Health.Message)
}

// remove forgets the object that was gone at version, but not one of the same name that is newer: an answer to a request of
// ours may be ahead of the reflector.
func (s *store) remove(key manifest.Key, version string) {
	s.mu.Lock()
	old, known := s.kept[key]
	if known && newer(old.ResourceVersion, version) && !newer(version, old.ResourceVersion) {
		s.mu.Unlock()
		return
	}
	s.disown(old)
	delete(s.kept, key)
	delete(s.others, s.hash(key))
	s.mu.Unlock()
	if known {
		s.notify(key, old, Live{})
	}
}

// Replace implements cache.ReflectorStore: the whole list, after a start or a lost watch.
func (s *store) Replace(list []any, version string) error {
	s.rewind(version)
	seen := make(map[manifest.Key]struct{}, len(list))
	there := make(map[uint64]struct{}, len(list))
	for _, obj := range list {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return errNotObject
		}
		l := s.read(u)
		seen[l.Key], there[s.hash(l.Key)] = struct{}{}, struct{}{}
		s.set(l)
	}
	s.mu.Lock()
	s.latest = version
	var gone []manifest.Key
	for key := range s.kept {
		if _, ok := seen[key]; !ok {
			gone = append(gone, key)
		}
	}
	for h := range s.others {
		if _, ok := there[h]; !ok {
			delete(s.others, h)
		}
	}
	s.mu.Unlock()
	for _, key := range gone {
		s.remove(key, version)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.listed {
		s.listed = true
		close(s.synced)
	}
	return nil
}

// ready is closed when a whole list is in.
func (s *store) ready() <-chan struct{} {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.synced
}

// again makes ready wait for another list: the reader answers otherwise from now on.
func (s *store) again() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listed {
		s.listed, s.synced = false, make(chan struct{})
	}
}

// rewind forgets the versions of what is kept when version is behind what was told: the API server's data was put back to an
// older state, and the list is right.
func (s *store) rewind(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.latest == "" || !newer(s.latest, version) {
		return
	}
	for key, l := range s.kept {
		l.ResourceVersion = "0"
		s.kept[key] = l
	}
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
