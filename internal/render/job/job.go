// Package job owns the two values of a rendering: what a renderer gets and what it gives back. Renderers (directory,
// kustomize, helm, jsonnet) import it; it imports values only, so that a job can travel through a worker's pipe.
package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// Input is everything that decides the result of one rendering.
type Input struct {
	// Source is the effective source: overrides in the repository are merged in already.
	Source v1alpha1.ApplicationSource
	// Tree is the repository or chart, whole: a chart of a Helm repository has its Chart.yaml at the root.
	Tree tree.FS
	// Path is where in Tree the application lies, clean; "." for a chart.
	Path string
	// Refs are the trees of the sources with a ref, by name without the dollar sign.
	Refs map[string]tree.FS
	// Project of the application. What was rendered for one project shares no process with another's.
	Project string
	// AppName is the application's name, the default name of a Helm release.
	AppName string
	// Namespace is the destination namespace.
	Namespace string
	// Capabilities are what charts see of the cluster.
	Capabilities Capabilities
	// Env holds the build variables (ARGOCD_APP_NAME …) by name.
	Env map[string]string
	// Fetch answers for sources that the templates name themselves. Nil refuses them.
	Fetch Fetcher
	// Urgent tells that somebody waits for it: where renderings wait for each other, it comes first.
	Urgent bool `json:"-"`
	// Asked takes notes of what the rendering asks of Capabilities and Env; nil takes none. It comes back as Output.Asked.
	Asked *Asked `json:"-"`
}

// Capabilities of the destination cluster.
type Capabilities struct {
	// KubeVersion such as v1.37.2; empty takes the default of the library.
	KubeVersion string
	// APIVersions such as apps/v1 and apps/v1/Deployment.
	APIVersions []string
}

// Output is what a source renders to.
type Output struct {
	// Objects in the order the tool gave them, without namespace defaulting and without tracking marks.
	Objects []manifest.Object
	// Warnings are sentences for the application's conditions; they change no object.
	Warnings []string
	// Random tells that templates call functions that answer something else each time.
	Random bool
	// Generated are, by index of the object, the fields that come out differently in each rendering.
	Generated map[int][]Path
	// Type is the tool that rendered.
	Type v1alpha1.ApplicationSourceType
	// Asked is what the rendering asked of the cluster's capabilities and of the build variables.
	Asked *Asked
}

// LocatorKind is what a locator leads to.
type LocatorKind string

// The kinds of sources that templates name.
const (
	// LocateGit leads to a repository at a revision.
	LocateGit LocatorKind = "git"
	// LocateChart leads to a chart in a Helm repository or an OCI registry.
	LocateChart LocatorKind = "chart"
	// LocateHTTP leads to one file behind an http(s) URL.
	LocateHTTP LocatorKind = "http"
)

// Locator names a source found in templates: a remote base, a chart dependency, a value file behind a URL.
type Locator struct {
	Kind LocatorKind
	// URL of the repository, registry (oci://…) or file.
	URL string
	// Revision of a repository; empty means HEAD.
	Revision string
	// Chart and Version (exact or a semver range) of a chart.
	Chart, Version string
}

// String names the locator in messages, without credentials.
func (l Locator) String() string {
	switch l.Kind {
	case LocateGit:
		return fmt.Sprintf("repository %s at %s", l.URL, orHead(l.Revision))
	case LocateChart:
		return fmt.Sprintf("chart %s %s of %s", l.Chart, l.Version, l.URL)
	}
	return l.URL
}

func orHead(rev string) string {
	if rev == "" {
		return "HEAD"
	}
	return rev
}

// Fetcher resolves a locator to a tree: a repository whole; a chart with Chart.yaml at the root; an http resource as the
// single file "resource". It checks the project's rules and bounds. It is safe for use by several goroutines.
type Fetcher interface {
	Fetch(ctx context.Context, l Locator) (tree.FS, error)
}

// ErrNoFetcher says that a rendering that may not fetch met a source of another place.
var ErrNoFetcher = errors.New("sources outside of the repository are not available here")

// FetchFrom asks f, or says that nothing may be fetched.
func FetchFrom(ctx context.Context, f Fetcher, l Locator) (tree.FS, error) {
	if f == nil {
		return nil, fmt.Errorf("%s: %w", l, ErrNoFetcher)
	}
	return f.Fetch(ctx, l)
}

// Bounds of DESIGN.md §3, for every renderer.
const (
	// MaxRendered is the size of all rendered text of an application, in bytes.
	MaxRendered = 10 << 20
	// MaxRead is what one rendering may read, in bytes.
	MaxRead = 50 << 20
	// MaxObjects is the number of objects of an application.
	MaxObjects = 5000
)

// ErrInterrupted says that a rendering ended for a reason that does not lie in its source: tried again, it may go through.
var ErrInterrupted = errors.New("the rendering was interrupted")

// Error is a rendering error with its place in the source.
type Error struct {
	// File and Line of the place, as far as they are known.
	File string
	Line int
	// Object is the object concerned, such as Deployment/web, where it is known.
	Object string
	// Reason is the sentence, without file, line and object.
	Reason string
}

// Error is the sentence: file:line: object: reason.
func (e *Error) Error() string {
	s := e.Reason
	if e.Object != "" {
		s = e.Object + ": " + s
	}
	if at := (manifest.Origin{File: e.File, Line: e.Line}).String(); at != "" {
		s = at + ": " + s
	}
	return s
}
