package script

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// workers are the worker processes of an engine. One serves one run at a time, and then another of the same project, if
// the last one ended well.
type workers struct {
	command []string
	lanes   *lanes // bounds how many there are at once
	procs   sync.WaitGroup

	mu     sync.Mutex
	idle   []*worker
	closed bool
}

// Workers that wait for the next run.
const (
	maxIdleWorkers = 2
	idleTime       = time.Minute
	maxPrograms    = 64 // that one worker has compiled
)

func newWorkers(command []string) *workers {
	return &workers{command: command, lanes: newLanes(max(4, 2*runtime.NumCPU()))}
}

// worker is one process.
type worker struct {
	project  string
	cmd      *exec.Cmd
	in       *frameWriter
	frames   chan bson.Raw // closed when the process is gone
	programs map[string]bool
	stderr   *tail
	reap     *time.Timer // ends it when it has been idle for long
}

// tail keeps the beginning of what a process writes to stderr: why it died is there.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[:min(len(p), max(0, 4096-len(t.text)))]...)
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// take gives a worker for a project.
func (ws *workers) take(project string) (*worker, error) {
	ws.mu.Lock()
	for i, w := range ws.idle {
		if w.project == project && w.reap.Stop() {
			ws.idle = append(ws.idle[:i:i], ws.idle[i+1:]...)
			ws.mu.Unlock()
			return w, nil
		}
	}
	closed := ws.closed
	ws.mu.Unlock()
	if closed {
		return nil, errors.New("the service stops")
	}
	return ws.spawn(project)
}

// spawn starts a process: without environment, and with no descriptors but its pipes.
func (ws *workers) spawn(project string) (*worker, error) {
	cmd := exec.Command(ws.command[0], ws.command[1:]...)                         //nolint:gosec,noctx // the service's own binary; it is killed by its owner
	cmd.Env, cmd.Dir, cmd.SysProcAttr = []string{"GOMAXPROCS=1"}, "/", ownGroup() // a script takes one core
	w := &worker{project: project, cmd: cmd, frames: make(chan bson.Raw, 16), programs: map[string]bool{}, stderr: &tail{}}
	cmd.Stderr = w.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a worker process: %w", err)
	}
	beNice(cmd.Process.Pid)
	w.in = &frameWriter{w: in}
	ws.procs.Go(func() {
		defer close(w.frames)
		reader := bufio.NewReader(out)
		for {
			frame, err := readFrame(reader)
			if err != nil {
				break
			}
			w.frames <- frame
		}
		w.kill()
		_ = in.Close()
		_ = cmd.Wait() // it was killed or has died: its pipes tell
	})
	return w, nil
}

func (w *worker) kill() { _ = w.cmd.Process.Kill() } // it may be gone

// discard ends a worker. Frames that it still sends are dropped.
func (ws *workers) discard(w *worker) {
	w.kill()
	ws.procs.Go(func() {
		for range w.frames {
			continue
		}
	})
}

// put keeps a worker for the next run of its project.
func (ws *workers) put(w *worker) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed || len(w.programs) >= maxPrograms {
		ws.discard(w)
		return
	}
	if len(ws.idle) >= maxIdleWorkers {
		oldest := ws.idle[0]
		ws.idle = ws.idle[1:]
		if oldest.reap.Stop() {
			ws.discard(oldest)
		}
	}
	w.reap = time.AfterFunc(idleTime, func() { ws.expire(w) })
	ws.idle = append(ws.idle, w)
}

func (ws *workers) expire(w *worker) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for i := range ws.idle {
		if ws.idle[i] == w {
			ws.idle = append(ws.idle[:i:i], ws.idle[i+1:]...)
			break
		}
	}
	ws.discard(w)
}

// close ends the idle ones and waits for all. Runs have been told to stop.
func (ws *workers) close() {
	ws.mu.Lock()
	ws.closed = true
	for _, w := range ws.idle {
		if w.reap.Stop() {
			ws.discard(w)
		}
	}
	ws.idle = nil
	ws.mu.Unlock()
	ws.procs.Wait()
}

// isolated is one run in a worker.
type isolated struct {
	call   *Call
	w      *worker
	ctx    context.Context //nolint:containedctx // of the run
	cancel context.CancelFunc
	calls  sync.WaitGroup

	computed time.Duration // as the worker tells; 0: it has not
	stopped  bool          // the worker says that nothing of the run is left in it

	mu   sync.Mutex
	errs map[int32]error // what calls ended with
}

// withinKey marks contexts of calls that a run has made, by where it runs.
type withinKey struct{}

const (
	inService = iota + 1
	inWorker
)

// workerPlace decides where a call runs. For one that runs in a worker process it gets its place; release gives it back.
//
// A script that is slow runs apart if there is a place: there it takes nothing from requests, for a worker has a low
// priority and a heap of its own. One that ran away waits for that.
func (e *Engine) workerPlace(ctx context.Context, until time.Time, c *Call) (release func(), isolated bool, err error) {
	if e.workers == nil {
		return nil, false, nil
	}
	e.mu.Lock()
	must := c.Isolate || e.isolated[c.Project]
	e.mu.Unlock()
	record, lanes := c.Program.record, e.workers.lanes
	if !must && record.lane() == fast {
		return nil, false, nil
	}
	// A run that a worker's call leads to, such as a hook of a record that a hook writes, needs no place of its own: the one
	// that waits for it has one, and all could wait for each other. One that a call of a run in this process leads to may
	// have a lock of the store that those wait for who have the places, so it only waits if it must. Long runs have their
	// places of their caller, and would keep short ones waiting here.
	within := ctx.Value(withinKey{})
	if within == inWorker || c.Isolate && c.Long {
		return func() {}, true, nil
	}
	which := slow
	if must {
		which = fast
	}
	release = func() { lanes.release(which) }
	if !must && (within == inService || !record.isApart()) {
		return release, lanes.tryAcquire(which), nil
	}
	if ok, why := lanes.acquire(ctx.Done(), until, c.Project, which, true); !ok {
		return nil, false, refused(ctx, c, why)
	}
	return release, true, nil
}

// runIsolated runs a program in a worker process.
func (e *Engine) runIsolated(ctx context.Context, until time.Time, c *Call) (result Result, computed time.Duration, err error) {
	start := time.Now()
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	failure := func(why Reason, message string) *Failure {
		return &Failure{Reason: why, Script: c.Program.name, Message: message}
	}
	ws := e.workers
	id, ok := e.begin(cancel)
	if !ok {
		return Result{}, 0, failure(Canceled, "the service stops")
	}
	defer e.end(id)
	w, spawnErr := ws.take(c.Project)
	if spawnErr != nil {
		return Result{}, 0, failure(Killed, spawnErr.Error())
	}
	run := &isolated{call: c, w: w, errs: map[int32]error{}}
	run.ctx, run.cancel = context.WithCancel(context.WithValue(ctx, withinKey{}, inWorker))
	result, err = run.serve(ctx)
	run.cancel()
	run.calls.Wait()
	if run.worn(err) {
		ws.discard(w)
	} else {
		ws.put(w)
	}
	if run.computed == 0 {
		run.computed = time.Since(start) // it did not live to tell
	}
	return result, run.computed, err
}

// worn says whether the worker is not to be used again: it still runs the script, or has much memory that it took. To start
// another takes longer than most scripts run.
func (i *isolated) worn(err error) bool {
	f, ok := errors.AsType[*Failure](err)
	if !ok || f.Reason == Exception {
		return false
	}
	return !i.stopped || f.Reason != Timeout && f.Reason != Canceled && f.Reason != Depth
}

// serve sends the run and answers the worker until it is done, or killed.
func (i *isolated) serve(ctx context.Context) (Result, error) {
	failure := func(why Reason, message string) *Failure {
		return &Failure{Reason: why, Script: i.call.Program.name, Message: message}
	}
	frame := i.frame(ctx)
	sent := make(chan error, 1)
	i.calls.Go(func() { sent <- i.w.in.write(frame) }) // the pipe holds less than a run may be
	kill := time.NewTimer(time.Hour)
	kill.Stop()
	defer kill.Stop()
	done := ctx.Done()
	for {
		select {
		case err := <-sent:
			if err != nil {
				i.w.kill()
				return Result{}, failure(Killed, err.Error())
			}
		case frame, ok := <-i.w.frames:
			if !ok {
				return Result{}, failure(i.died())
			}
			if field[string](frame, "t") == "done" {
				return i.outcome(frame)
			}
			i.handle(frame)
		case <-done:
			done = nil
			i.calls.Go(func() { _ = i.w.in.write(bson.D{{Key: "t", Value: "stop"}}) }) // it is killed if it does not
			kill.Reset(grace)
		case <-kill.C:
			i.w.kill()
			return Result{}, failure(endOf(ctx), "it did not stop, and its worker process was killed")
		}
	}
}

// outcome decodes how the run ended. A run that the service has stopped is told so by the worker as canceled.
func (i *isolated) outcome(frame bson.Raw) (Result, error) {
	i.computed = max(1, time.Duration(field[int64](frame, "computed")))
	i.stopped = field[bool](frame, "stopped")
	result, err := framedOutcome(frame, func(call int32) error {
		i.mu.Lock()
		defer i.mu.Unlock()
		return i.errs[call]
	})
	if f, ok := errors.AsType[*Failure](err); ok && f.Reason == Canceled && i.ctx.Err() != nil {
		f.Reason = endOf(i.ctx)
	}
	return result, err
}

// died says what a worker died of.
func (i *isolated) died() (why Reason, message string) {
	text := i.w.stderr.String()
	switch {
	case strings.Contains(text, "out of memory"), strings.Contains(text, "cannot allocate memory"), strings.Contains(text, "failed to allocate"): // the last one is the race detector
		return Memory, "its worker process ran out of memory"
	case strings.Contains(text, "stack overflow"):
		return Depth, "its worker process ran out of stack"
	}
	first, _, _ := strings.Cut(text, "\n")
	return Killed, strings.TrimSpace("its worker process died " + shortenTo(first, 200))
}

// handle takes a line of the log, or a call.
func (i *isolated) handle(frame bson.Raw) {
	switch field[string](frame, "t") {
	case "log":
		if i.call.Log != nil {
			i.call.Log(Line{Time: field[bson.DateTime](frame, "time").Time(), Level: field[string](frame, "level"), Message: field[string](frame, "message")})
		}
	case "progress":
		if i.call.Progress != nil {
			i.call.Progress(document.Decode(frame.Lookup("v")))
		}
	case "call":
		i.calls.Go(func() { i.answer(frame) })
	}
}

func (i *isolated) answer(frame bson.Raw) {
	number := field[int32](frame, "id")
	v, err := askHost(i.ctx, i.call.Host, field[string](frame, "op"), field[bson.A](frame, "args"))
	reply := bson.D{{Key: "t", Value: "answer"}, {Key: "id", Value: number}}
	if err == nil {
		if i.w.in.write(append(reply, bson.E{Key: "v", Value: v})) == nil {
			return
		}
		err = errors.New("the answer can't be sent to the worker process")
	}
	i.mu.Lock()
	i.errs[number] = err
	i.mu.Unlock()
	_ = i.w.in.write(append(reply, bson.E{Key: "err", Value: errorFrame(err)})) // a worker that is gone is seen by its reader
}

// stillFrame is a time in milliseconds; nil is none.
func stillFrame(still time.Time) any {
	if still.IsZero() {
		return nil
	}
	return still.UnixMilli()
}

// frame encodes the run.
func (i *isolated) frame(ctx context.Context) bson.D {
	c, p := i.call, i.call.Program
	timeout := c.Limits.Timeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = max(time.Millisecond, time.Until(deadline))
	}
	hash := hex.EncodeToString(p.hash[:])
	env := bson.D{}
	for k, v := range c.Env {
		env = append(env, bson.E{Key: k, Value: v})
	}
	frame := bson.D{
		{Key: "t", Value: "run"},
		{Key: "project", Value: c.Project},
		{Key: "name", Value: p.name},
		{Key: "expr", Value: p.expr},
		{Key: "hash", Value: hash},
		{Key: "timeout", Value: int64(timeout)},
		{Key: "memory", Value: c.Limits.Memory},
		{Key: "maxResult", Value: int64(c.Limits.MaxResult)},
		{Key: "hosted", Value: c.Host != nil},
		{Key: "filter", Value: c.Filter},
		{Key: "still", Value: stillFrame(c.Still)},
		{Key: "progress", Value: c.Progress != nil},
		{Key: "env", Value: env},
		{Key: "args", Value: bson.A(c.Args)},
		{Key: "ctx", Value: membersFrame(slices.Concat(c.Common, c.Ctx))},
	}
	if c.Each != nil {
		each := make(bson.A, len(c.Each))
		for n, members := range c.Each {
			each[n] = membersFrame(members)
		}
		frame = append(frame, bson.E{Key: "each", Value: each})
	}
	if !i.w.programs[hash] {
		i.w.programs[hash] = true
		frame = append(frame, bson.E{Key: "text", Value: p.text}, bson.E{Key: "map", Value: bson.Binary{Data: p.smap}})
	}
	return frame
}
