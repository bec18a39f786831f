package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/client-go/rest"
)

// watcher follows one path of the API server.
type watcher struct {
	client rest.Interface
	path   string
	// saw takes each change; got is nil when the object is gone.
	saw func(name, namespace string, got *item, now time.Time)
	// lost says that everything has to be read again: what was seen may be gone.
	lost func(now time.Time)
	// begun is called when the first list was read.
	begun func()
}

// errExpired means that the API server no longer has the changes since the last one seen.
var errExpired = errors.New("resource version expired")

// run lists once and then follows the changes until ctx ends.
func (w *watcher) run(ctx context.Context) error {
	version := ""
	for ctx.Err() == nil {
		if version == "" {
			var err error
			if version, err = w.list(ctx); err != nil {
				return ignoreEnd(ctx, fmt.Errorf("%s: list: %w", w.path, err))
			}
			if w.begun != nil {
				w.begun()
				w.begun = nil
			}
		}
		next, err := w.follow(ctx, version)
		switch {
		case errors.Is(err, errExpired):
			w.lost(time.Now())
			version = ""
		case err != nil:
			return ignoreEnd(ctx, fmt.Errorf("%s: watch: %w", w.path, err))
		default:
			version = next // the server ends every watch after some minutes
		}
	}
	return nil
}

// ignoreEnd drops what the end of ctx causes.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (w *watcher) list(ctx context.Context) (version string, err error) {
	body, err := w.client.Get().AbsPath(w.path).Do(ctx).Raw()
	if err != nil {
		return "", err
	}
	now := time.Now()
	var list struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Items []item `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return "", err
	}
	for i := range list.Items {
		w.saw(list.Items[i].Metadata.Name, list.Items[i].Metadata.Namespace, &list.Items[i], now)
	}
	return list.Metadata.ResourceVersion, nil
}

// follow reads changes after version until the server ends the watch, and returns the last version seen.
func (w *watcher) follow(ctx context.Context, version string) (string, error) {
	stream, err := w.client.Get().AbsPath(w.path).Param("watch", "true").Param("allowWatchBookmarks", "true").
		Param("resourceVersion", version).Stream(ctx)
	if err != nil {
		return version, err
	}
	defer stream.Close()
	events := json.NewDecoder(stream)
	for {
		var e struct {
			Type   string `json:"type"`
			Object item   `json:"object"`
		}
		if err := events.Decode(&e); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return version, nil
			}
			return version, err
		}
		now := time.Now()
		m := e.Object.Metadata
		switch e.Type {
		case "ADDED", "MODIFIED":
			w.saw(m.Name, m.Namespace, &e.Object, now)
		case "DELETED":
			w.saw(m.Name, m.Namespace, nil, now)
		case "BOOKMARK":
		default:
			return "", errExpired
		}
		version = m.ResourceVersion
	}
}
