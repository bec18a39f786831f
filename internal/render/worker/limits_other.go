//go:build !unix

package worker

// obeyLimits has nothing to obey here.
func obeyLimits() {}
