package script

import (
	"bufio"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// ServeWorker is a worker process: it runs what the frames from in tell it to, one run after the other, and returns when
// in ends, which it does when the service does. The process has to end then, whatever still runs.
func ServeWorker(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &workerProcess{
		base: dataSize(), engine: NewEngine(Options{Parallel: 1}), out: &frameWriter{w: out}, programs: map[string]*Program{},
	}
	reader := bufio.NewReader(in)
	for {
		frame, err := readFrame(reader)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch field[string](frame, "t") {
		case "run":
			w.begin(ctx, frame)
		case "compile":
			w.compile(ctx, field[string](frame, "entry"))
		case "answer":
			w.answer(frame)
		case "stop":
			w.stop()
		}
	}
}

// workerProcess is the state of a worker process: one run at a time.
type workerProcess struct {
	base     int64 // bytes of memory before the first run
	engine   *Engine
	out      *frameWriter
	programs map[string]*Program // by hash

	mu      sync.Mutex
	cancel  context.CancelFunc
	calls   map[int32]chan bson.Raw // that wait for an answer
	errs    map[error]int32         // which call an error was the answer to
	numbers int32
}

// begin starts a run.
func (w *workerProcess) begin(ctx context.Context, frame bson.Raw) {
	limitMemory(w.base, field[int64](frame, "memory"))
	ctx, cancel := context.WithCancel(ctx)
	w.reset(cancel)
	go func() { // the process ends with what in ends
		defer cancel()
		result, computed, err := w.run(ctx, frame)
		done := append(outcomeFrame(result, err, w.callOf), bson.E{Key: "computed", Value: int64(computed)}, bson.E{Key: "stopped", Value: !w.engine.left()})
		if w.out.write(done) != nil {
			_ = w.out.write(outcomeFrame(Result{}, &Failure{Reason: Exception, Script: field[string](frame, "name"), Message: "what the script gives back is too large"}, w.callOf))
		}
	}()
}

// reset forgets the run before. stop ends what begins.
func (w *workerProcess) reset(stop context.CancelFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancel, w.calls, w.errs = stop, map[int32]chan bson.Raw{}, map[error]int32{}
}

func (w *workerProcess) run(ctx context.Context, frame bson.Raw) (Result, time.Duration, error) {
	program, err := w.program(frame)
	if err != nil {
		return Result{}, 0, err
	}
	c := Call{
		Project: field[string](frame, "project"), Program: program, Ctx: framedMembers(rawField(frame, "ctx")), Env: map[string]string{},
		Filter: field[bool](frame, "filter"),
		Limits: Limits{Timeout: time.Duration(field[int64](frame, "timeout")), Memory: field[int64](frame, "memory"), MaxResult: int(field[int64](frame, "maxResult"))},
		Log: func(l Line) {
			_ = w.out.write(bson.D{{Key: "t", Value: "log"}, {Key: "time", Value: bson.NewDateTimeFromTime(l.Time)}, {Key: "level", Value: l.Level}, {Key: "message", Value: l.Message}})
		},
	}
	if ms, ok := rawField(frame, "still").AsInt64OK(); ok {
		c.Still = time.UnixMilli(ms)
	}
	if field[bool](frame, "progress") {
		c.Progress = func(v any) { _ = w.out.write(bson.D{{Key: "t", Value: "progress"}, {Key: "v", Value: v}}) }
	}
	if field[bool](frame, "hosted") {
		c.Host = workerHost{w}
	}
	for _, a := range items(rawField(frame, "args")) {
		c.Args = append(c.Args, a)
	}
	for _, members := range items(rawField(frame, "each")) {
		c.Each = append(c.Each, framedMembers(members))
	}
	for _, e := range field[bson.D](frame, "env") {
		if s, ok := e.Value.(string); ok {
			c.Env[e.Key] = s
		}
	}
	return w.engine.run(ctx, c)
}

// program gives the program of a run; its text comes with the first.
func (w *workerProcess) program(frame bson.Raw) (*Program, error) {
	hash := field[string](frame, "hash")
	if p, ok := w.programs[hash]; ok {
		p.record = &record{} // the service keeps the books
		return p, nil
	}
	p := &Program{name: field[string](frame, "name"), expr: field[bool](frame, "expr"), text: field[string](frame, "text")}
	p.smap = field[bson.Binary](frame, "map").Data
	tree, err := goja.Parse(p.name, p.text, parser.WithDisableSourceMaps)
	if err != nil {
		return nil, &Failure{Reason: Exception, Script: p.name, Message: err.Error()}
	}
	p, problems := p.finish(tree)
	if len(problems) > 0 {
		return nil, &Failure{Reason: Exception, Script: field[string](frame, "name"), Message: problems[0].String()}
	}
	w.programs[hash] = p
	return p, nil
}

func (w *workerProcess) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel != nil {
		w.cancel()
	}
}

// answer hands an answer to the call that waits for it.
func (w *workerProcess) answer(frame bson.Raw) {
	w.mu.Lock()
	defer w.mu.Unlock()
	number := field[int32](frame, "id")
	if c := w.calls[number]; c != nil {
		delete(w.calls, number)
		c <- frame
	}
}

func (w *workerProcess) callOf(err error) int32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		return 0
	}
	return w.errs[err]
}

// workerHost asks the service.
type workerHost struct{ w *workerProcess }

// Call sends the call and waits for its answer.
func (h workerHost) Call(ctx context.Context, op string, args bson.A) (any, error) {
	w := h.w
	c := make(chan bson.Raw, 1)
	w.mu.Lock()
	w.numbers++
	number := w.numbers
	w.calls[number] = c
	w.mu.Unlock()
	if err := w.out.write(bson.D{{Key: "t", Value: "call"}, {Key: "id", Value: number}, {Key: "op", Value: op}, {Key: "args", Value: args}}); err != nil {
		return nil, err
	}
	select {
	case frame := <-c:
		if v := rawField(frame, "err"); v.Type == bson.TypeEmbeddedDocument {
			err := framedError(v.Value)
			w.mu.Lock()
			w.errs[err] = number
			w.mu.Unlock()
			return nil, err
		}
		return document.Decode(rawField(frame, "v")), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
