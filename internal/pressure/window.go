// Package pressure owns how many requests to one API server are under way at a time. Nothing bounds them while the server
// keeps up, however many they are a second; when it refuses requests as too many, or answers much slower than it did, fewer
// are sent at a time, until it keeps up again (issue 4).
//
// It knows nothing of what is asked, and imports nothing of ours.
package pressure

import "time"

// Bounds of the window.
const (
	most  = 256
	least = 2
	// slowFrom is the mean latency from which writes may count as slow, and slowTimes the multiple of the usual one.
	slowFrom  = time.Second
	slowTimes = 4
)

// window is how many requests may be under way. It is what TCP does with packets: halved when the other side shows that it
// is too much, doubled with each round until half of what was too much, and then widened by one a round.
type window struct {
	limit float64
	// careful is where widening becomes slow.
	careful float64
	// cut is when it was narrowed last: what began before tells nothing new.
	cut time.Time
	// usual and recent are means of the latency of writes, over many and over a few; 0 when there was none yet.
	usual, recent time.Duration
}

func newWindow() window { return window{limit: most, careful: most} }

// answer is how a request ended.
type answer struct {
	began, ended time.Time
	// refused tells that the server had too much to do; write that the request was one of a single object that changes it, of
	// which the latency tells something.
	refused, write bool
	// failed requests got no answer, which tells nothing of how busy the server is.
	failed bool
}

// take learns from an answer. underway is how many requests were under way when it came, itself included; it tells whether
// the window was narrowed.
func (w *window) take(a answer, underway int) bool {
	slow := false
	if a.write && !a.failed && !a.refused {
		slow = w.slow(a.ended.Sub(a.began))
	}
	switch {
	case a.failed, (a.refused || slow) && a.began.Before(w.cut):
		return false
	case a.refused || slow:
		w.limit = max(least, min(w.limit, float64(underway))/2)
		w.careful, w.cut, w.recent = w.limit, a.ended, w.usual
		return true
	case float64(underway) < w.limit: // it is not known whether the server would stand more
	case w.limit < w.careful:
		w.limit++
	default:
		w.limit = min(most, w.limit+1/w.limit)
	}
	return false
}

// slow takes in the latency of a write, and tells whether writes have become slow.
func (w *window) slow(latency time.Duration) bool {
	if w.usual == 0 {
		w.usual, w.recent = latency, latency
		return false
	}
	w.recent += (latency - w.recent) / 4
	weight := time.Duration(32)
	if latency > slowTimes*w.usual {
		weight = 256 // where all is slow for good, as through a slow webhook, that becomes the usual
	}
	w.usual += (latency - w.usual) / weight
	return w.recent > max(slowFrom, slowTimes*w.usual)
}
