package script

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
)

// beNice lets the service go before its workers. It is about the group of the process, for Linux takes
// a process for the one thread that has begun it.
func beNice(pid int) { _ = syscall.Setpriority(syscall.PRIO_PGRP, pid, 10) } // only a wish

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
