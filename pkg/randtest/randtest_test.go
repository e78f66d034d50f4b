package randtest_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/svcctl/svc/pkg/randtest"
)

// TestChoices is run by TestSeed in processes of its own, too: it tells what it was given.
func TestChoices(t *testing.T) {
	for _, name := range []string{"one", "two"} {
		t.Run(name, func(t *testing.T) {
			fmt.Println("choice", name, randtest.Of(t).IntN(1<<30), randtest.Of(t).IntN(1<<30))
		})
	}
}

// TestSeed: the seed of a run is logged, and repeats it; without one, runs differ, and so do tests, and calls within one.
func TestSeed(t *testing.T) {
	t.Parallel()
	run := func(seed string) (choices, log string) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChoices$", "-test.v")
		cmd.Env = append(os.Environ(), randtest.Variable+"="+seed)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var told []string
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "choice") {
				told = append(told, line)
			}
		}
		return strings.Join(told, ""), string(out)
	}
	first, log := run("")
	_, rest, _ := strings.Cut(log, randtest.Variable+"=")
	seed, _, _ := strings.Cut(rest, " ")
	if again, _ := run(seed); again != first || seed == "" {
		t.Errorf("seed %q: %s, and then %s", seed, first, again)
	}
	if other, _ := run(""); other == first {
		t.Errorf("two runs are the same: %s", other)
	}
	numbers := map[string]bool{}
	for word := range strings.FieldsSeq(first) {
		numbers[word] = true
	}
	if len(numbers) != 3+4 { // words, and numbers
		t.Errorf("numbers come twice: %s", first)
	}
}

// TestShared: goroutines may share one.
func TestShared(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				if n := randtest.Of(t).IntN(3); n < 0 || n > 2 {
					t.Error(n)
				}
			}
		})
	}
	all.Wait()
}
