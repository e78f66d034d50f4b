//go:build !linux

package script

import (
	"os/exec"
	"runtime/debug"
	"syscall"
)

// startNice starts a worker. The service can't go first everywhere.
func startNice(cmd *exec.Cmd) error { return cmd.Start() }

// limitMemory makes the collector work harder from the limit on. The watchdog stops the script.
func limitMemory(_, script int64) { debug.SetMemoryLimit(script + 64<<20) }

// dataSize is not known here.
func dataSize() int64 { return 0 }

// ownGroup is nothing that every system has.
func ownGroup() *syscall.SysProcAttr { return nil }
