package embedded_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain is row R19 of the fault list: no goroutine outlives the tests, but in the process of TestR4FailingDisk, where each
// store whose process has died leaves some.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 && os.Getenv(failingDiskEnv) == "" {
		for giveUp := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			left := leaks()
			if left == "" {
				break
			}
			if time.Now().After(giveUp) {
				fmt.Fprintln(os.Stderr, "goroutines that outlive the tests:\n"+left)
				code = 1
				break
			}
		}
	}
	os.Exit(code)
}

// leaks gives the stacks of goroutines of stores.
func leaks() string {
	buf := make([]byte, 16<<20)
	var left []string
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, "/pkg/store/embedded.") {
			left = append(left, stack)
		}
	}
	return strings.Join(left, "\n\n")
}
