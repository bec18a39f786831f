// Package registry owns servers for tests and demonstrations, on 127.0.0.1: a real OCI registry, a Helm repository over
// http, and helpers that package charts from maps of files and push them. It is no part of the product and imports nothing
// of it.
package registry
