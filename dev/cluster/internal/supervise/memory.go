package supervise

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// pss is the proportional share of memory of a process in KiB: pages that processes
// share (all run the same binary) count once over all of them. It is 0 where the
// system does not tell.
func pss(pid int) int64 {
	if pid == 0 {
		return 0
	}
	file, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "Pss:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
			if err != nil {
				return 0
			}
			return n
		}
	}
	return 0
}
