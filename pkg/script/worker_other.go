//go:build !linux

package script

import (
	"runtime/debug"
	"syscall"
)

// beNice lets the service go first, where the system can.
func beNice(int) {}

// limitMemory makes the collector work harder from the limit on. The watchdog stops the script.
func limitMemory(_, script int64) { debug.SetMemoryLimit(script + 64<<20) }

// dataSize is not known here.
func dataSize() int64 { return 0 }

// ownGroup is nothing that every system has.
func ownGroup() *syscall.SysProcAttr { return nil }
