package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"
)

// timeoutLimit is when a request held back by Timeout is answered after all. It is
// the API server's own limit for requests.
const timeoutLimit = time.Minute

// Filter answers requests that a fault in the file path concerns, and passes all
// others on to next. Watches that are already open are not touched.
func Filter(next http.Handler, resolver apirequest.RequestInfoResolver, path string) http.Handler {
	source := &source{path: path}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		list := source.current()
		if len(list) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		info, err := resolver.NewRequestInfo(r)
		if err != nil || !info.IsResourceRequest {
			next.ServeHTTP(w, r)
			return
		}
		now := time.Now()
		for _, f := range list {
			if f.Matches(info.APIGroup, info.Resource, info.Verb, now) {
				answer(w, r, f, info)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// source is the file of faults, read again when it changes. One stat a request is
// cheap, and a fault holds as soon as the command that asked for it returns.
type source struct {
	path string

	mu    sync.Mutex
	stamp os.FileInfo
	list  []Fault
}

func (s *source) current() []Fault {
	stat, err := os.Stat(s.path)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.stamp, s.list = nil, nil
		return nil
	}
	// Every write is a new file, so the identity of the file tells, not its time.
	if s.stamp != nil && os.SameFile(s.stamp, stat) && s.stamp.ModTime().Equal(stat.ModTime()) {
		return s.list
	}
	list, err := Read(s.path)
	if err != nil {
		klog.ErrorS(err, "Faults are not readable")
		return nil
	}
	s.stamp, s.list = stat, list
	return list
}

func answer(w http.ResponseWriter, r *http.Request, f Fault, info *apirequest.RequestInfo) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Details:  &metav1.StatusDetails{Name: info.Name, Group: info.APIGroup, Kind: info.Resource},
	}
	switch f.Answer {
	case TooManyRequests:
		w.Header().Set("Retry-After", "1")
		status.Code, status.Reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
		status.Message = "the server has received too many requests and has asked us to try again later"
		status.Details.RetryAfterSeconds = 1
	case ServerError:
		status.Code, status.Reason = http.StatusInternalServerError, metav1.StatusReasonInternalError
		status.Message = "Internal error occurred: fault of the local cluster"
	case Unavailable:
		status.Code, status.Reason = http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable
		status.Message = "the server is currently unable to handle the request"
	case Forbidden:
		status.Code, status.Reason = http.StatusForbidden, metav1.StatusReasonForbidden
		status.Message = fmt.Sprintf("%s %q is forbidden: fault of the local cluster", f.Resource, info.Name)
	case Timeout:
		if !hold(r) {
			return
		}
		status.Code, status.Reason = http.StatusGatewayTimeout, metav1.StatusReasonTimeout
		status.Message = "Timeout: request did not complete within the allotted timeout"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	if err := json.NewEncoder(w).Encode(status); err != nil {
		klog.V(2).InfoS("Answer of a fault was not read", "err", err)
	}
}

// hold waits for the client to give up; it reports true when the limit came first.
func hold(r *http.Request) bool {
	timer := time.NewTimer(timeoutLimit)
	defer timer.Stop()
	select {
	case <-r.Context().Done():
		return false
	case <-timer.C:
		return true
	}
}
