//go:build !linux || !(amd64 || arm64)

package sandbox

import (
	"runtime"
)

func walls() []func(Options) error {
	return []func(Options) error{func(Options) error {
		return lacks("%s on %s has no Landlock and no seccomp that Lockstep knows; run it on Linux", runtime.GOOS, runtime.GOARCH)
	}}
}
