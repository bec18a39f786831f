package git

import (
	"container/list"
	"sync"

	"github.com/lockstep-cd/lockstep/internal/tree"
)

// lru holds parsed folders by tree hash, up to a number of entries in all. A hash names its content, so folders of all
// mirrors lie in one.
type lru struct {
	mu    sync.Mutex
	limit int
	used  int
	order *list.List
	items map[string]*list.Element
}

type folder struct {
	hash    string
	entries []tree.Entry
}

// cost counts the folder itself too, so that empty ones are bounded as well.
func (f folder) cost() int { return len(f.entries) + 1 }

func newLRU(limit int) *lru {
	return &lru{limit: limit, order: list.New(), items: map[string]*list.Element{}}
}

func (l *lru) get(hash string) ([]tree.Entry, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.items[hash]
	if !ok {
		return nil, false
	}
	l.order.MoveToFront(e)
	return e.Value.(folder).entries, true
}

func (l *lru) put(hash string, entries []tree.Entry) {
	f := folder{hash: hash, entries: entries}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.items[hash]; ok || f.cost() > l.limit {
		return
	}
	l.items[hash] = l.order.PushFront(f)
	for l.used += f.cost(); l.used > l.limit; {
		last := l.order.Back()
		gone := last.Value.(folder)
		l.used -= gone.cost()
		l.order.Remove(last)
		delete(l.items, gone.hash)
	}
}
