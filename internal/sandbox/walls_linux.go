//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
	"github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// walls in the order in which they are built: what needs the file system comes before the file system is gone, and the
// filter of system calls comes last, since it forbids building the others.
func walls() []func(Options) error {
	return []func(Options) error{closeOthers, limit, stepBack, closeFiles, filter, try}
}

// nice is how much the process steps back behind others when there is not enough processor for all.
const nice = 5

// closeOthers closes files that whoever started this process left open. Those without a place in the file system are the Go
// runtime's own.
func closeOthers(Options) error {
	const dir = "/proc/self/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return lacks("open files can not be listed: %v", err)
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= unix.Stderr {
			continue
		}
		target, err := os.Readlink(dir + "/" + e.Name())
		if err != nil || strings.HasPrefix(target, "anon_inode:[event") {
			continue
		}
		_ = unix.Close(fd) // the one of the listing is closed already
	}
	return nil
}

// limit bounds memory, and forbids what would carry memory out of the process.
func limit(o Options) error {
	limits := map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: 0}
	if o.Memory > 0 {
		// Not RLIMIT_AS: Go reserves address space that it does not use.
		has, err := writableMemory()
		if err != nil {
			return lacks("memory can not be measured: %v", err)
		}
		limits[unix.RLIMIT_DATA] = uint64(has + o.Memory)
	}
	for resource, most := range limits {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return lacks("limits can not be set: %v", err)
		}
	}
	return nil
}

// writableMemory is the private writable memory of this process, in bytes, as RLIMIT_DATA counts it.
func writableMemory() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(string(status), "VmData:")
	fields := strings.Fields(rest)
	if !ok || len(fields) == 0 {
		return 0, errors.New("/proc/self/status has no VmData")
	}
	kilobytes, err := strconv.ParseInt(fields[0], 10, 64)
	return kilobytes << 10, err
}

// stepBack lets others have the processor first, and be spared when the machine is out of memory.
func stepBack(Options) error {
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
		return lacks("oom_score_adj can not be set: %v", err)
	}
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, nice) // of use, but no wall
	return nil
}

// closeFiles takes the file system and, where the kernel can, the network and signals to others away.
func closeFiles(Options) error {
	if version, err := syscall.LandlockGetABIVersion(); err != nil || version < 1 {
		return lacks("the kernel has no Landlock: Linux 5.13 or later is needed, with landlock in the list of CONFIG_LSM or lsm=")
	}
	if err := landlock.V11.BestEffort().Restrict(); err != nil {
		return lacks("Landlock: %v", err)
	}
	if opens() {
		return lacks("Landlock leaves the file system open")
	}
	return nil
}

// opens tells whether the file system is still there.
func opens() bool {
	fd, err := unix.Open("/", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err == nil
}

// try goes against the walls: one that gives way is as good as none.
func try(Options) error {
	if opens() {
		return lacks("the file system is still there")
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		_ = unix.Close(fd)
		return lacks("the network is still there")
	}
	return nil
}
