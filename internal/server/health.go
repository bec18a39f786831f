package server

import (
	"net/http"
	"strconv"
)

// health is the answer of /healthz and /readyz when all is well.
type health struct {
	Status string `json:"status"`
	// Checks are the parts by name, for full=true.
	Checks map[string]string `json:"checks,omitempty"`
}

// healthz tells that the process lives. With full=true it looks at every part and fails when one is not well: for people
// and alerts, not for a probe that restarts the process, for a restart brings no API server back.
func (s *Server) healthz(_ http.ResponseWriter, r *http.Request) (any, error) {
	text := r.URL.Query().Get("full")
	full, err := strconv.ParseBool(text)
	if text != "" && err != nil {
		return nil, &problem{http.StatusBadRequest, "full is neither true nor false"}
	}
	if !full {
		return health{Status: "ok"}, nil
	}
	answer, failing := health{Status: "ok", Checks: map[string]string{}}, false
	for _, c := range s.opts.Checks(r.Context()) {
		answer.Checks[c.Name] = c.State
		if c.Err != nil {
			answer.Checks[c.Name], failing = c.Err.Error(), true
		}
	}
	if failing {
		answer.Status = "failing"
		return reply{http.StatusServiceUnavailable, answer}, nil
	}
	return answer, nil
}

// readyz tells that this process does its work: it holds the lease, and has looked at every application once.
func (s *Server) readyz(http.ResponseWriter, *http.Request) (any, error) {
	if err := s.opts.Ready(); err != nil {
		return nil, &problem{http.StatusServiceUnavailable, err.Error()}
	}
	return health{Status: "ready"}, nil
}
