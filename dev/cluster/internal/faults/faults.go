// Package faults makes the API server answer badly on request: for one resource, one
// kind of wrong answer, for a while. The supervisor writes the faults into a file, the
// filter in the API server's process reads it. It depends on no other package of ours.
package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// Answer is what the API server does with a request that a fault matches.
type Answer string

// The answers.
const (
	// TooManyRequests is 429 with Retry-After: 1.
	TooManyRequests Answer = "429"
	// ServerError is 500.
	ServerError Answer = "500"
	// Unavailable is 503.
	Unavailable Answer = "503"
	// Forbidden is 403, as without RBAC rights.
	Forbidden Answer = "403"
	// Timeout gives no answer until the client gives up, or 504 after a minute.
	Timeout Answer = "timeout"
)

// Answers lists every valid Answer.
func Answers() []Answer {
	return []Answer{TooManyRequests, ServerError, Unavailable, Forbidden, Timeout}
}

// Fault is one wrong behaviour of the API server.
type Fault struct {
	// Resource is resource.group as in deployments.apps; for the core group only the
	// resource; "*" is every resource. Subresources are included.
	Resource string `json:"resource"`
	// Answer is what to answer.
	Answer Answer `json:"answer"`
	// Verbs limits the fault to API verbs (get, list, watch, create, update, patch,
	// delete, deletecollection). Empty means all.
	Verbs []string `json:"verbs,omitempty"`
	// Until ends the fault; the zero time means until it is cleared.
	Until time.Time `json:"until,omitzero"`
}

// Validate reports what is wrong with f.
func (f Fault) Validate() error {
	if f.Resource == "" {
		return errors.New("fault: the resource is empty, want for example deployments.apps")
	}
	if !slices.Contains(Answers(), f.Answer) {
		return fmt.Errorf("fault: answer %q is unknown, want one of %v", f.Answer, Answers())
	}
	return nil
}

// Matches reports whether f concerns a request at the time now.
func (f Fault) Matches(group, resource, verb string, now time.Time) bool {
	if !f.Until.IsZero() && now.After(f.Until) {
		return false
	}
	if len(f.Verbs) > 0 && !slices.Contains(f.Verbs, verb) {
		return false
	}
	if f.Resource == "*" {
		return true
	}
	r, g, _ := strings.Cut(f.Resource, ".")
	return r == resource && g == group
}

// Write replaces the faults in the file path in one step: the next request that the
// API server begins sees them.
func Write(path string, list []Fault) error {
	data, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("faults: encode: %w", err)
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return fmt.Errorf("faults: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("faults: %w", err)
	}
	return nil
}

// Read returns the faults in the file path; a missing file has none.
func Read(path string) ([]Fault, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("faults: %w", err)
	}
	var list []Fault
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("faults: %s: %w", path, err)
	}
	return list, nil
}
