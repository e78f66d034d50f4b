package store

import "context"

// Pace is what a long read goes by. An adapter that does the work of reads in this process asks Step as it goes, every few
// keys, from the goroutine that called it: Step may let others go first, and its error ends the read.
type Pace interface {
	Step(ctx context.Context) error
	// Leave gives back what Step has taken, before a wait for what others do. The next Step takes it again.
	Leave()
}

type paceKey struct{}

// WithPace has the reads that are given the context go by p.
func WithPace(ctx context.Context, p Pace) context.Context {
	return context.WithValue(ctx, paceKey{}, p)
}

// PaceOf gives the pace of reads with this context; nil if they have none.
func PaceOf(ctx context.Context) Pace {
	p, _ := ctx.Value(paceKey{}).(Pace)
	return p
}
