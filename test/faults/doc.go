// Package faults has the tests of what breaks in production (issue 4): each runs the whole program as a process on a local
// cluster, breaks something, and then asks the same four things of it. Everything converges by itself; nothing was deleted
// that Git still has; no hook ran twice; no operation is stuck. A recorder of the test's own watches every delete.
//
// It has no code besides tests. They may depend on everything.
package faults
