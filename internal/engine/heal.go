package engine

import (
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/manifest"
)

// The pauses between putting one object back again and again: at once, then 2 s, 6 s … up to 5 minutes; forgotten after
// 10 minutes of peace, and with a sync to something else.
const (
	healFirst  = 2 * time.Second
	healFactor = 3
	healMax    = 5 * time.Minute
	healForget = 10 * time.Minute
)

// heal is how often one object was put back lately, and when it was the last time.
type heal struct {
	count int
	last  time.Time
}

// pause is how long the object is left alone after the last time.
func (h heal) pause() time.Duration {
	wait := healFirst
	for range h.count - 1 {
		if wait *= healFactor; wait >= healMax {
			return healMax
		}
	}
	return wait
}

// heals are the objects that were put back lately, by the hash of their key. They stand in the operation that put the last
// one back, so that a process that is started again and again does not begin anew each time (contract §2.7).
type heals map[string]heal

// parseHeals reads the note; what it does not understand it leaves out.
func parseHeals(note string) heals {
	h := heals{}
	for entry := range strings.FieldsSeq(note) {
		parts := strings.Split(entry, ".")
		if len(parts) != 3 {
			continue
		}
		count, err := strconv.Atoi(parts[1])
		at, err2 := strconv.ParseInt(parts[2], 36, 64)
		if err == nil && err2 == nil && count > 0 {
			h[parts[0]] = heal{count: count, last: time.UnixMilli(at)}
		}
	}
	return h
}

// putBack are the objects of an application that were put back lately.
func putBack(app *v1alpha1.Application) heals {
	if app.Status.OperationState == nil {
		return heals{}
	}
	return parseHeals(noted(&app.Status.OperationState.Operation, healsNote))
}

// String is the note: one word of about 20 bytes for each object.
func (h heals) String() string {
	words := make([]string, 0, len(h))
	for _, k := range slices.Sorted(maps.Keys(h)) {
		words = append(words, k+"."+strconv.Itoa(h[k].count)+"."+strconv.FormatInt(h[k].last.UnixMilli(), 36))
	}
	return strings.Join(words, " ")
}

// most is how often the object that was put back most often was.
func (h heals) most() int64 {
	n := 0
	for _, one := range h {
		n = max(n, one.count)
	}
	return int64(n)
}

func healKey(k manifest.Key) string {
	f := fnv.New32a()
	_, _ = f.Write([]byte(k.String())) // a hash does not fail to be written to
	return strconv.FormatUint(uint64(f.Sum32()), 36)
}

// due are the objects that may be put back now, how long until the next may, and what is known once they are.
func (h heals) due(items []item, now time.Time) (resources []v1alpha1.SyncOperationResource, wait time.Duration, next heals) {
	next = maps.Clone(h)
	maps.DeleteFunc(next, func(_ string, one heal) bool { return now.Sub(one.last) > healForget })
	for _, it := range items {
		if it.inSync() || it.holder != "" || it.desired.problem != nil {
			continue
		}
		k := it.desired.key
		one := next[healKey(k)]
		if d := one.last.Add(one.pause()).Sub(now); one.count > 0 && d > 0 {
			if wait == 0 || d < wait {
				wait = d
			}
			continue
		}
		next[healKey(k)] = heal{count: one.count + 1, last: now}
		resources = append(resources, v1alpha1.SyncOperationResource{Group: k.Group, Kind: k.Kind, Namespace: k.Namespace, Name: k.Name})
	}
	return resources, wait, next
}
