//go:build unix

package auth

import (
	"os"
	"strconv"
	"syscall"
)

// niceness is that of processes that make hashes: requests come first, and on a machine that is busy with other things
// a tenth of a core is left for a login.
const niceness = 10

// lowerPriority lowers that of this process. One that is lower already stays.
func lowerPriority() {
	threads, err := os.ReadDir("/proc/self/task") // on Linux each thread has its own, which those that it starts get, too
	if err != nil {
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, niceness)
		return
	}
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, id, niceness)
		}
	}
}
