package pods

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// logQuery is the part of the log options that the API server passes on.
type logQuery struct {
	follow, previous, timestamps bool
	// tail is the number of last lines, -1 for all; limit the number of bytes, -1 for all.
	tail, limit int64
	since       time.Time
}

func parseLogQuery(v url.Values) (logQuery, error) {
	q := logQuery{tail: -1, limit: -1}
	q.follow, q.previous, q.timestamps = v.Get("follow") == "true", v.Get("previous") == "true", v.Get("timestamps") == "true"
	var err error
	number := func(key string, into *int64) {
		if s := v.Get(key); s != "" && err == nil {
			if *into, err = strconv.ParseInt(s, 10, 64); err != nil {
				err = fmt.Errorf("%s %q: %w", key, s, err)
			}
		}
	}
	seconds := int64(-1)
	number("tailLines", &q.tail)
	number("limitBytes", &q.limit)
	number("sinceSeconds", &seconds)
	if seconds >= 0 {
		q.since = time.Now().Add(-time.Duration(seconds) * time.Second)
	}
	if s := v.Get("sinceTime"); s != "" && err == nil {
		if q.since, err = time.Parse(time.RFC3339, s); err != nil {
			err = fmt.Errorf("sinceTime %q: %w", s, err)
		}
	}
	return q, err
}

func tail(lines []Line, q logQuery) []Line {
	lines = after(lines, q.since.Add(-time.Nanosecond))
	if q.tail >= 0 && int64(len(lines)) > q.tail {
		lines = lines[int64(len(lines))-q.tail:]
	}
	return lines
}

func after(lines []Line, t time.Time) []Line {
	for i, l := range lines {
		if l.Time.After(t) {
			return lines[i:]
		}
	}
	return nil
}

// logWriter writes lines and sends them at once; it stops at the byte limit.
type logWriter struct {
	w    http.ResponseWriter
	q    logQuery
	left int64
	err  error
}

func newLogWriter(w http.ResponseWriter, q logQuery) *logWriter {
	return &logWriter{w: w, q: q, left: q.limit}
}

func (l *logWriter) ok() bool { return l.err == nil && l.left != 0 }

func (l *logWriter) write(lines []Line) {
	for _, line := range lines {
		if !l.ok() {
			return
		}
		text := line.Text + "\n"
		if l.q.timestamps {
			text = line.Time.UTC().Format(time.RFC3339Nano) + " " + text
		}
		if l.left >= 0 {
			text = text[:min(int64(len(text)), l.left)]
			l.left -= int64(len(text))
		}
		_, l.err = l.w.Write([]byte(text))
	}
	if f, ok := l.w.(http.Flusher); ok {
		f.Flush()
	}
}
