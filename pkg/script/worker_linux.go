package script

import (
	"runtime/debug"
	"syscall"
)

// beNice lets the service go first.
func beNice() { _ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 10) } // only a wish

// What a worker needs beside the memory of its script.
const (
	softMemory = 64 << 20
	hardMemory = 256 << 20
)

// limitMemory bounds the process: the collector works harder from the soft limit on, and the kernel refuses what is over
// the hard one, of which the process dies. What is between is for garbage.
func limitMemory(script int64) {
	debug.SetMemoryLimit(script + softMemory)
	limit := uint64(2*script + hardMemory) //nolint:gosec // sizes of memory
	var now syscall.Rlimit
	const data = 2 // RLIMIT_DATA on every architecture of Linux that Go knows
	if syscall.Getrlimit(data, &now) != nil {
		return // the watchdog remains
	}
	now.Cur = min(limit, now.Max)
	_ = syscall.Setrlimit(data, &now)
}
