package snapshot_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// asChild names what this test program does when it is started anew, in the folder of its argument, until it is killed.
const asChild = "SNAPSHOT_TEST_CHILD"

var children = map[string]func(dir string) error{
	"prune": pruneChild,
}

func TestMain(m *testing.M) {
	if do := children[os.Getenv(asChild)]; do != nil {
		if err := do(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
