package script

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
)

// startNice starts a worker with a low priority from its first instruction, for it takes a while to begin. On Linux it is
// the thread that has a priority, and hands it on; that thread ends with the goroutine that it is locked to.
func startNice(cmd *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, niceness) // only a wish
		started <- cmd.Start()
	}()
	return <-started
}

// niceness lets the service go before its workers.
const niceness = 10

// What a worker needs beside the memory of its script.
const (
	softMemory = 64 << 20
	hardMemory = 256 << 20
)

// limitMemory bounds the process: the collector works harder from the soft limit on, and the kernel refuses what is over
// the hard one, of which the process dies. What is between is for garbage.
func limitMemory(base, script int64) {
	debug.SetMemoryLimit(script + softMemory)
	limit := uint64(base + 2*script + hardMemory) //nolint:gosec // sizes of memory
	var now syscall.Rlimit
	const data = 2 // RLIMIT_DATA on every architecture of Linux that Go knows
	if syscall.Getrlimit(data, &now) != nil {
		return // the watchdog remains
	}
	now.Cur = min(limit, now.Max)
	_ = syscall.Setrlimit(data, &now)
}

// dataSize is what the process has of the memory that limitMemory bounds; 0 if that is not known.
func dataSize() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 6 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[5], 10, 64)
	return pages * int64(os.Getpagesize())
}

// ownGroup keeps what a terminal sends to the service from its workers: the service ends them.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
