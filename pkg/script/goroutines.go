package script

import "sync"

// maxIdle is how many goroutines wait for something to do.
const maxIdle = 32

// goroutines runs functions in goroutines of their own, and keeps some for the next: one that ran a script has the stack for
// it, which takes longer to grow than a short script to run.
type goroutines struct {
	all sync.WaitGroup

	mu     sync.Mutex
	idle   []chan func() // the last one is the next: it is the warmest
	closed bool
}

// run runs f.
func (g *goroutines) run(f func()) {
	g.mu.Lock()
	if n := len(g.idle); n > 0 {
		next := g.idle[n-1]
		g.idle = g.idle[:n-1]
		g.mu.Unlock()
		next <- f
		return
	}
	g.mu.Unlock()
	g.all.Go(func() {
		next := make(chan func(), 1)
		for f := f; f != nil && g.again(f, next); {
			f = <-next
		}
	})
}

// again runs f, and says whether there may be more to do.
func (g *goroutines) again(f func(), next chan func()) bool {
	f()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || len(g.idle) >= maxIdle {
		return false
	}
	g.idle = append(g.idle, next)
	return true
}

// close ends those that wait. The others end when they have done what they do.
func (g *goroutines) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, next := range g.idle {
		close(next)
	}
	g.idle = nil
}
