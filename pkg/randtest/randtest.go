package randtest

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
)

// Variable is the environment variable that has the seed of an earlier run; without it each run of the tests has a new one.
const Variable = "SEED"

// base is the seed of all tests of the process.
var base = sync.OnceValue(func() uint64 {
	if n, err := strconv.ParseUint(os.Getenv(Variable), 10, 64); err == nil {
		return n
	}
	return rand.Uint64()
})

var (
	mu   sync.Mutex
	each = map[string]*rand.Rand{} // by the name of the test, while it runs
)

// Of gives the random numbers of a test: always the same generator, while it runs, which goroutines may share. What it gives depends on the seed
// and the name of the test alone. The first call logs the seed.
func Of(t testing.TB) *rand.Rand {
	t.Helper()
	name := t.Name()
	mu.Lock()
	defer mu.Unlock()
	if r := each[name]; r != nil {
		return r
	}
	t.Logf("%s=%d repeats the random choices of %s", Variable, base(), name)
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(name)) // it never fails
	r := rand.New(&locked{from: rand.NewPCG(base(), sum.Sum64())})
	each[name] = r
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		delete(each, name)
	})
	return r
}

// ForChild is what the environment of a process has to have that a test starts, so that its random choices are repeated with those of the test. Each
// call gives another one.
func ForChild(t testing.TB) string {
	t.Helper()
	return Variable + "=" + strconv.FormatUint(Of(t).Uint64(), 10)
}

// locked is a source that goroutines may share.
type locked struct {
	mu   sync.Mutex
	from rand.Source
}

// Uint64 implements rand.Source.
func (l *locked) Uint64() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.from.Uint64()
}
