package embeddingtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/embedding"
)

// Fault is what is wrong with a Faulty provider.
type Fault string

// The faults.
const (
	None           Fault = ""
	Down           Fault = "down"            // no call succeeds
	Hanging        Fault = "hanging"         // calls last until their context ends
	Slow           Fault = "slow"            // calls take Delay
	Throttled      Fault = "throttled"       // asked too often, for RetryAfter
	Refusing       Fault = "refusing"        // no text is taken
	TooFew         Fault = "too few"         // a vector is missing
	WrongDimension Fault = "wrong dimension" // vectors have one more
	WrongForm      Fault = "wrong form"      // sparse for dense, and the reverse
	NoNumbers      Fault = "no numbers"      // vectors have NaN in them
	NoDirection    Fault = "no direction"    // vectors are all zeros
	OtherModel     Fault = "other model"     // vectors are right in form, and not those of before
	Random         Fault = "random"          // each call gives other vectors
)

// Faulty wraps a provider, and fails on demand.
type Faulty struct {
	embedding.Provider

	Delay      time.Duration // of Slow
	RetryAfter time.Duration // of Throttled

	mu      sync.Mutex
	fault   Fault
	left    int // calls until then
	then    func()
	refuses string   // a part of the texts that are refused; "": none are
	fails   string   // a part of the texts with which calls fail as if it was down; "": with none
	all     []string // texts of all calls that went well
	calls   int
	texts   []string // of the last call
	closed  int
}

// Set breaks the provider, or with None mends it.
func (f *Faulty) Set(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// After has something be done when so many calls more have ended; at once for 0.
func (f *Faulty) After(calls int, then func()) {
	if calls == 0 {
		then()
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.then = calls, then
}

// ended counts for After.
func (f *Faulty) ended() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left--
	if f.left == 0 {
		f.then()
	}
}

// Calls is how many there were.
func (f *Faulty) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// Texts are those of the last call.
func (f *Faulty) Texts() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.texts
}

// Refuse has calls be refused whose texts have a part; "": none.
func (f *Faulty) Refuse(part string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuses = part
}

// Fail has calls whose texts have a part fail, without saying that it is the text's fault; "": none.
func (f *Faulty) Fail(part string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails = part
}

// Total is how many texts with a part there were vectors for; one that came twice counts twice.
func (f *Faulty) Total(part string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, text := range f.all {
		if strings.Contains(text, part) {
			n++
		}
	}
	return n
}

// Closed is how often it was closed.
func (f *Faulty) Closed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// Close implements embedding.Provider.
func (f *Faulty) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed++
	return f.Provider.Close()
}

// Embed implements embedding.Provider.
func (f *Faulty) Embed(ctx context.Context, texts []string, kind embedding.Kind) ([]embedding.Vector, error) {
	f.mu.Lock()
	f.calls++
	f.texts = texts
	fault, call := f.fault, f.calls
	with := func(part string) bool {
		return part != "" && slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, part) })
	}
	switch {
	case with(f.refuses):
		fault = Refusing
	case with(f.fails):
		fault = Down
	}
	if fault == None {
		f.all = append(f.all, texts...)
	}
	f.mu.Unlock()
	defer f.ended()
	if err := f.before(ctx, fault); err != nil {
		return nil, err
	}
	vectors, err := f.Provider.Embed(ctx, texts, kind)
	if err != nil || len(vectors) == 0 {
		return vectors, err
	}
	switch fault {
	case TooFew:
		return vectors[1:], nil
	case WrongForm:
		for i, v := range vectors {
			if v.Sparse == nil {
				vectors[i] = embedding.Vector{Sparse: map[string]float32{"1": 1}}
			} else {
				vectors[i] = embedding.Vector{Dense: []float32{1}}
			}
		}
	case WrongDimension:
		for i := range vectors {
			vectors[i].Dense = append(vectors[i].Dense, 1)
		}
	case NoNumbers:
		vectors[0].Dense[0] = float32(math.NaN())
	case NoDirection:
		clear(vectors[0].Dense)
	case OtherModel:
		return f.Provider.Embed(ctx, changed(texts, 0), kind)
	case Random:
		return f.Provider.Embed(ctx, changed(texts, call), kind)
	default:
	}
	return vectors, nil
}

// before is what goes wrong without a vector.
func (f *Faulty) before(ctx context.Context, fault Fault) error {
	cause := errors.New("the wrapper was told to")
	switch fault {
	case Down:
		return embedding.Failed(f.Name(), "can't be reached", cause)
	case Refusing:
		return embedding.Refused(f.Name(), cause)
	case Throttled:
		return embedding.Throttled(f.Name(), f.RetryAfter, cause)
	case Hanging:
		<-ctx.Done()
		return context.Cause(ctx)
	case Slow:
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(f.Delay):
		}
	default:
	}
	return nil
}

// changed gives other texts, the same for the same call.
func changed(texts []string, call int) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = fmt.Sprintf("%d elsewhere %d %x", call, call, text)
	}
	return out
}
