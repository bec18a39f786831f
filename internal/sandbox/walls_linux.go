//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
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
		return fmt.Errorf("%w: open files can not be listed: %w", ErrUnsupported, err)
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
			return fmt.Errorf("%w: memory can not be measured: %w", ErrUnsupported, err)
		}
		limits[unix.RLIMIT_DATA] = uint64(has + o.Memory)
	}
	for resource, most := range limits {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("%w: limits can not be set: %w", ErrUnsupported, err)
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
		return fmt.Errorf("%w: oom_score_adj can not be set: %w", ErrUnsupported, err)
	}
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, nice) // of use, but no wall
	return nil
}

// closeFiles takes the file system and, where the kernel can, the network and signals to others away.
func closeFiles(Options) error {
	if err := landlock.V1.RestrictPaths(); err != nil {
		return fmt.Errorf("%w: the kernel has no Landlock: Linux 5.13 or later is needed, with landlock in the list of CONFIG_LSM or lsm=: %w", ErrUnsupported, err)
	}
	if err := landlock.V11.BestEffort().Restrict(); err != nil {
		return fmt.Errorf("%w: Landlock: %w", ErrUnsupported, err)
	}
	if opens() {
		return fmt.Errorf("%w: Landlock closes nothing", ErrUnsupported)
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
		return fmt.Errorf("%w: the file system is still there", ErrUnsupported)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		_ = unix.Close(fd)
		return fmt.Errorf("%w: the network is still there", ErrUnsupported)
	}
	return nil
}
