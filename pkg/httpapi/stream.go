package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
)

const (
	commentEvery = 15 * time.Second // so that proxies keep a quiet stream open
	eventGrace   = 30 * time.Second // in which a reader has to take an event
	lastGrace    = time.Second      // the same, once the stream is to end
	checkEvery   = 3 * time.Second  // whether the reader still may read it
)

// errRefused ends streams whose reader may not read them any more.
var errRefused = errors.New("the reader may not read this any more")

// errStopping ends streams when the service stops.
var errStopping = errs.New(errs.Unavailable, "stopping", "the service is stopping; try again")

// wantsStream says that the answer is to be a stream of server-sent events.
func (r *request) wantsStream() bool {
	for accepted := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		media, _, _ := strings.Cut(accepted, ";")
		if strings.TrimSpace(media) == api.MediaEvents {
			return true
		}
	}
	return false
}

// lastEvent is the id of the event that the reader had last: 0 for none.
func (r *request) lastEvent() (int64, error) {
	text := r.Header.Get(api.HeaderLastEventID)
	if text == "" {
		return 0, nil
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 0 {
		return 0, errs.New(errs.Invalid, "bad_event_id", "%s must be the id of an event", api.HeaderLastEventID)
	}
	return id, nil
}

// sendEvent writes one event of a stream. data is JSON.
type sendEvent func(id int64, kind string, data []byte) error

// stream answers with server-sent events: those that follow sends, until it returns. Its context ends when the reader is
// gone, the service stops, or check fails, which is asked every few seconds whether the reader still may read this. A quiet
// stream gets a comment every 15 s; one that ends because the service stops, an event stopping, after which the reader
// connects again with the id of the last event. One that ends by check just ends: who connects again is told why.
func (s *Server) stream(w http.ResponseWriter, r *request, check func() error, follow func(ctx context.Context, send sendEvent) error) error {
	st := s.newStream(w, r)
	if err := st.begin(check, func() string { return aComment }); err != nil {
		return st.end(err)
	}
	return st.end(follow(st.ctx, st.out.event))
}

const aComment = ": \n\n"

// eventStream is an answer by server-sent events.
type eventStream struct {
	s      *Server
	out    *eventWriter
	header http.Header
	ctx    context.Context //nolint:containedctx // it is the stream's own
	cancel context.CancelCauseFunc
	over   chan struct{}
	keeper sync.WaitGroup
}

// newStream makes a stream that has sent nothing yet. It has to be ended.
func (s *Server) newStream(w http.ResponseWriter, r *request) *eventStream {
	st := &eventStream{s: s, out: &eventWriter{w: w, control: http.NewResponseController(w)}, header: w.Header(), over: make(chan struct{})}
	st.ctx, st.cancel = context.WithCancelCause(r.Context())
	return st
}

// begin sends the head, and has the stream kept open, and ended when the service stops or check fails. beat gives what is
// sent every 15 s.
func (st *eventStream) begin(check func() error, beat func() string) error {
	h := st.header
	h.Set("Content-Type", api.MediaEvents)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // a proxy may not hold events back
	h.Set("X-Content-Type-Options", "nosniff")
	if err := st.out.write(aComment); err != nil {
		return err
	}
	st.keeper.Go(func() { st.keep(check, beat) })
	st.keeper.Go(st.awaitEnd)
	return nil
}

// awaitEnd has a stream that is to end wait for its reader no longer. It is apart from keep, which may wait for them itself.
func (st *eventStream) awaitEnd() {
	select {
	case <-st.over:
		return
	case <-st.s.ending:
		st.cancel(errStopping)
	case <-st.ctx.Done():
	}
	st.out.hurry()
}

func (st *eventStream) keep(check func() error, beat func() string) {
	ticks := time.NewTicker(commentEvery)
	defer ticks.Stop()
	checks := time.NewTicker(checkEvery)
	defer checks.Stop()
	for {
		select {
		case <-checks.C:
			if check() != nil {
				st.cancel(errRefused)
				return
			}
		case <-st.over:
			return
		case <-st.ctx.Done():
			return
		case <-ticks.C:
			if err := st.out.beat(beat); err != nil {
				st.cancel(err)
				return
			}
		}
	}
}

// end ends the stream, which has ended with err.
func (st *eventStream) end(err error) error {
	defer st.cancel(nil)
	close(st.over)
	st.keeper.Wait()
	switch cause := context.Cause(st.ctx); {
	case errors.Is(cause, errStopping):
		return st.out.write("event: " + api.EventStopping + "\ndata: {\"message\":\"the service is stopping; connect again\"}\n\n")
	case errors.Is(cause, errRefused):
		return nil
	case cause != nil:
		return errClientGone.With(cause)
	}
	return err
}

// eventWriter writes events. It is safe for concurrent use.
type eventWriter struct {
	mu      sync.Mutex
	w       http.ResponseWriter
	control *http.ResponseController
	hurried atomic.Bool
}

// hurry gives the reader little time to take an event, the one that is being written included.
func (e *eventWriter) hurry() {
	e.hurried.Store(true)
	_ = e.control.SetWriteDeadline(time.Now().Add(lastGrace))
}

func (e *eventWriter) event(id int64, kind string, data []byte) error {
	return e.write(fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", id, kind, data))
}

// beat writes what keeps a quiet stream open. One that something is being written to is not quiet.
func (e *eventWriter) beat(text func() string) error {
	if !e.mu.TryLock() {
		return nil
	}
	defer e.mu.Unlock()
	return e.put(text())
}

func (e *eventWriter) write(text string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.put(text)
}

// put is write under mu.
func (e *eventWriter) put(text string) error {
	err := supported(e.control.SetWriteDeadline(time.Now().Add(eventGrace)))
	if e.hurried.Load() { // asked only now: else this would undo what hurry does
		e.hurry()
	}
	if err == nil {
		_, err = e.w.Write([]byte(text))
	}
	if err == nil {
		err = e.control.Flush()
	}
	if err != nil {
		return errClientGone.With(err)
	}
	return nil
}

// EndStreams ends every stream, now and from now on: the service is stopping, and would wait for them.
func (s *Server) EndStreams() { s.endOnce.Do(func() { close(s.ending) }) }
