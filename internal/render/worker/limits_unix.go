//go:build unix

package worker

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// obeyLimits ends the process when its processor time is used up: the Go runtime would take no notice.
func obeyLimits() {
	over := make(chan os.Signal, 1)
	signal.Notify(over, unix.SIGXCPU)
	go func() {
		<-over
		os.Exit(ExitCPU)
	}()
}
