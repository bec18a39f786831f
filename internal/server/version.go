package server

import "net/http"

// version is the answer of /api/version, spelled as Argo CD's.
type version struct {
	Version string `json:"Version"`
}

func (s *Server) version(http.ResponseWriter, *http.Request) (any, error) {
	return version{s.opts.Version}, nil
}
