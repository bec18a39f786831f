//go:build !linux || !(amd64 || arm64)

package sandbox

import (
	"fmt"
	"runtime"
)

func walls() []func(Options) error {
	return []func(Options) error{func(Options) error {
		return fmt.Errorf("%w: %s on %s has no Landlock and no seccomp that Lockstep knows; run it on Linux", ErrUnsupported, runtime.GOOS, runtime.GOARCH)
	}}
}
