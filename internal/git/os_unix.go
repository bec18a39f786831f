//go:build unix

package git

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// memoryDir is where files are held in memory on Linux; elsewhere it does not exist.
const memoryDir = "/dev/shm"

// secretOnFD tells that a file can be handed to git as descriptor 3.
const secretOnFD = true

func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) error {
	if cmd.Process == nil {
		return os.ErrProcessDone
	}
	err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
