package git

import (
	"os"
	"os/exec"
)

const memoryDir = ""

// secretOnFD is false: Windows hands no numbered descriptors to programs, so the helper reads its environment.
const secretOnFD = false

func ownGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) error {
	if cmd.Process == nil {
		return os.ErrProcessDone
	}
	return cmd.Process.Kill()
}
