package server

import (
	"errors"
	"net/http"

	"github.com/lockstep-cd/lockstep/internal/webhook"
)

// pushed is the answer to a push event.
type pushed struct {
	// Applications is the number of sources of applications that the event concerns.
	Applications int `json:"applications"`
}

// ignored is the answer to an event that concerns nothing.
type ignored struct {
	Ignored string `json:"ignored"`
}

// webhook takes in an event. It only notes what to ask for, so that the answer takes no longer with many applications.
func (s *Server) webhook(w http.ResponseWriter, r *http.Request) (any, error) {
	pusher := s.opts.Pusher()
	if pusher == nil {
		// Before the body is read: a forge shows the answer and can send the event again. The active process asks the
		// repository at its next interval in any case.
		return nil, &problem{http.StatusServiceUnavailable, "this process stands by or is starting; send the event again to the active one"}
	}
	body, err := webhook.Read(http.MaxBytesReader(w, r.Body, webhook.MaxBody), webhook.MaxBody)
	if err != nil {
		return nil, refused(err)
	}
	secrets, err := s.opts.Secrets(r.Context())
	if err != nil {
		s.opts.Log.Warn("webhook secrets not read", "error", err)
		return nil, &problem{http.StatusServiceUnavailable, "the webhook secrets can't be read now; send the event again"}
	}
	event, err := webhook.Parse(webhook.Request{Header: r.Header, Query: r.URL.Query(), Body: body}, secrets)
	if err != nil {
		s.opts.Log.Info("webhook refused", "from", r.RemoteAddr, "error", err)
		return nil, refused(err)
	}
	if event.Confirm != "" {
		s.opts.Log.Info("an SNS topic waits for the confirmation of its subscription; open the address", "address", event.Confirm)
	}
	if event.Ignored != "" {
		return ignored{event.Ignored}, nil
	}
	return pushed{pusher.Push(event)}, nil
}

func refused(err error) error {
	var e *webhook.Error
	if errors.As(err, &e) {
		return &problem{e.Status, e.Reason}
	}
	return err
}
