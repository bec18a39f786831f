// Package usage owns the measurement of a process tree from outside: proportional memory and processor time, read from
// /proc, so that it works on Linux only.
//
// It may depend on the standard library alone.
package usage

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of the times in /proc/PID/stat: Linux shows a hundredth of a second on every architecture.
const tick = 10 * time.Millisecond

// process is what /proc/PID/stat says.
type process struct {
	pid, parent, session int
	// cpu is user and system time of the process and of its ended and reaped children.
	cpu time.Duration
}

// tree finds root, its descendants, and whoever was started in root's session and lost its parent.
func tree(root int) ([]process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("processes: %w", err)
	}
	children := map[int][]process{}
	var found []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		p, err := stat(pid)
		if err != nil {
			continue // ended since the directory was read
		}
		if pid == root {
			found = append(found, p)
		}
		children[p.parent] = append(children[p.parent], p)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("process %d: %w", root, os.ErrProcessDone)
	}
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].pid]...)
	}
	if found[0].session == root {
		found = append(found, orphans(found, children)...)
	}
	return found, nil
}

func orphans(found []process, children map[int][]process) []process {
	known := map[int]bool{}
	for _, p := range found {
		known[p.pid] = true
	}
	var lost []process
	for _, list := range children {
		for _, p := range list {
			if p.session == found[0].pid && !known[p.pid] {
				lost = append(lost, p)
			}
		}
	}
	return lost
}

func stat(pid int) (process, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, err
	}
	return parseStat(pid, string(text))
}

// parseStat reads the fields after the command, which is in parentheses and may hold anything.
func parseStat(pid int, text string) (process, error) {
	end := strings.LastIndexByte(text, ')')
	if end < 0 {
		return process{}, fmt.Errorf("process %d: stat without a command", pid)
	}
	f := strings.Fields(text[end+1:])
	// Numbered from the state, which is field 3 of proc(5): parent 4, session 6, utime 14 to cstime 17.
	if len(f) < 15 {
		return process{}, fmt.Errorf("process %d: stat has %d fields", pid, len(f))
	}
	var n [6]int64
	for i, at := range []int{1, 3, 11, 12, 13, 14} {
		v, err := strconv.ParseInt(f[at], 10, 64)
		if err != nil {
			return process{}, fmt.Errorf("process %d: stat: %w", pid, err)
		}
		n[i] = v
	}
	ticks := n[2] + n[3] + n[4] + n[5]
	return process{pid: pid, parent: int(n[0]), session: int(n[1]), cpu: time.Duration(ticks) * tick}, nil
}

// CPU is user and system time of the tree of root, ended children included.
func CPU(root int) (time.Duration, error) {
	found, err := tree(root)
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, p := range found {
		sum += p.cpu
	}
	return sum, nil
}

// Memory is the sum of Pss over the tree of root in bytes: memory shared by several processes counts once.
func Memory(root int) (int64, error) {
	found, err := tree(root)
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, p := range found {
		n, err := pss(p.pid)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH):
			continue // ended, or a zombie without memory
		case err != nil:
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

func pss(pid int) (int64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
	if err != nil {
		return 0, err
	}
	return parsePss(pid, text)
}

func parsePss(pid int, text []byte) (int64, error) {
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte("Pss:"))
		if !ok {
			continue
		}
		kb, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("process %d: smaps_rollup: %w", pid, err)
		}
		return kb << 10, nil
	}
	return 0, nil // a kernel thread or a zombie has none
}

// Machine is the busy time of all processors since the machine started.
func Machine() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("machine: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return 0, fmt.Errorf("machine: /proc/stat begins with %q", line)
	}
	var busy int64
	for i, v := range f[1:9] {
		if i == 3 || i == 4 { // idle, waiting for a disk
			continue
		}
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("machine: %w", err)
		}
		busy += n
	}
	return time.Duration(busy) * tick, nil
}
