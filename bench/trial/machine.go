package trial

import (
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lockstep-cd/lockstep/bench/report"
)

func cores() int { return runtime.NumCPU() }

// Machine describes this machine; what can not be read stays empty.
func Machine() report.Machine {
	m := report.Machine{Cores: cores(), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version()}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err == nil {
		m.Memory = int64(info.Totalram) * int64(info.Unit)
	}
	return m
}

// Commit is the short name of the checked-out commit and whether files differ from it; empty outside of a checkout.
func Commit(root string) (commit string, dirty bool) {
	git := func(args ...string) string {
		out, err := exec.Command("git", append([]string{"-C", root}, args...)...).Output()
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(out))
	}
	return git("rev-parse", "--short", "HEAD"), git("status", "--porcelain", "--untracked-files=no") != ""
}
