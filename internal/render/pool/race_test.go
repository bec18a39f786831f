//go:build race

package pool_test

// detected tells that the race detector watches, in workers too.
const detected = true
