package main

import (
	"os"
	"strings"
	"testing"
)

// A call that a system has not is found where it is made, and what a system has is none.
func TestCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"go.mod":        "module example.com/m\n\ngo 1.26\n",
		"main.go":       "package main\n\nimport \"example.com/m/lock\"\n\nfunc main() { lock.Take() }\n",
		"lock/lock.go":  "package lock\n\nimport \"syscall\"\n\nfunc Take() { take(); _ = syscall.SIGTERM }\n",
		"lock/linux.go": "//go:build linux || windows\n\npackage lock\n\nimport \"syscall\"\n\nfunc take() { _ = syscall.Flock(0, syscall.LOCK_EX) }\n",
	} {
		if dir, _, ok := strings.Cut(name, "/"); ok {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for system, want := range map[string]string{
		"linux":   "",
		"windows": "lock/linux.go:7:27: undefined: syscall.Flock",
		"darwin":  "lock/lock.go:5:15: undefined: take",
	} {
		got := ""
		if err := check(system, "."); err != nil {
			got = err.Error()
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("for %s: %s, want %s", system, got, want)
		}
	}
}
