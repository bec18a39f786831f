//go:build unix

package git

import (
	"errors"
	"fmt"
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

// lockFile takes the lock of the file, which the system gives back when the process ends, however it ends.
func lockFile(name string) (unlock func() error, err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock file: %w", err), f.Close())
	}
	unlock = func() error {
		// Not by Close alone: a program that is just being started may hold a copy of the descriptor for a moment.
		return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
	}
	return unlock, nil
}
