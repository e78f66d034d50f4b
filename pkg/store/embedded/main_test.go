package embedded_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain is row R19 of the fault list: no goroutine outlives the tests, but for those of stores whose process has died in a
// test of failing disks: each of these stands in failAt for good.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		for giveUp := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
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

// leaks gives the stacks of goroutines of stores that have not died: of those that are open and of builds of indexes, as many are of dead ones
// as these are.
func leaks() string {
	buf := make([]byte, 16<<20)
	var open, builds, other []string
	died := 0
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		switch {
		case strings.Contains(stack, "embedded_test.failAt"):
			died++
		case strings.Contains(stack, "embedded.(*Store).sweeps"): // each store has one
			open = append(open, stack)
		case strings.Contains(stack, "embedded.(*build).run"): // it waits for what the one that died had begun
			builds = append(builds, stack)
		case strings.Contains(stack, "/pkg/store/embedded."):
			other = append(other, stack)
		}
	}
	for _, list := range [][]string{open, builds} {
		if len(list) > died {
			other = append(other, list[died:]...)
		}
	}
	return strings.Join(other, "\n\n")
}
