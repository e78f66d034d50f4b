package command

import (
	"context"
	"io"
)

// Stdin is st.In as commands read it: a read that waits ends with the command, so that Ctrl-C and a signal end what waits for somebody who types, or
// for a pipe. A program that is started gets st.In itself.
func (st *State) Stdin() io.Reader {
	ctx := st.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	return ending{ctx, st.In}
}

// ending is a reader that gives up waiting when ctx ends. The read that waits then is left to the end of the process.
type ending struct {
	ctx context.Context
	r   io.Reader
}

func (e ending) Read(p []byte) (int, error) {
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	into := make([]byte, min(len(p), 64<<10)) // its own: a read that was given up may still write into it
	go func() {
		n, err := e.r.Read(into)
		done <- result{n, err}
	}()
	select {
	case <-e.ctx.Done():
		return 0, context.Cause(e.ctx)
	case got := <-done:
		return copy(p, into[:got.n]), got.err
	}
}
