package script_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/script"
)

// workerArgument makes the test binary a worker process.
const workerArgument = "script-worker"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workerArgument {
		if err := script.ServeWorker(context.Background(), os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m) // R19: no goroutine outlives the tests
}

// workerEngine runs isolated calls in processes.
func workerEngine(t *testing.T) *script.Engine {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e := script.NewEngine(script.Options{WorkerCommand: []string{binary, workerArgument}})
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return e
}

// TestWorker has all that a run gives come through a process.
func TestWorker(t *testing.T) {
	t.Parallel()
	e := workerEngine(t)
	id := bson.NewObjectID()
	var lines []string
	cause := errs.New(errs.Conflict, "taken", "it is taken")
	h := host{
		"db.find": func(_ context.Context, args bson.A) (any, error) {
			return bson.A{bson.D{{Key: "args", Value: args[1]}}}, nil
		},
		"db.insert": func(context.Context, bson.A) (any, error) { return nil, cause },
	}
	p := compile(t, `export default async (value, ctx) => {
		console.log('found', env.KEY)
		const found = await db.collection('x').find({a: ctx.doc.when})
		ctx.doc.n = 5
		return [value, found[0].args, ctx.doc._id, process]
	}
	const process = typeof globalThis.process`)
	when := bson.DateTime(1_700_000_000_123)
	for range 2 { // the second is in the same process
		result, err := e.Run(t.Context(), script.Call{
			Project: "p", Program: p, Isolate: true, Host: h, Args: []any{int64(7)}, Env: map[string]string{"KEY": "v"},
			Ctx: []script.Member{{Name: "doc", Value: bson.D{{Key: "_id", Value: id}, {Key: "when", Value: when}, {Key: "f", Value: 2.0}}, Out: true}},
			Log: func(l script.Line) { lines = append(lines, l.Message) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(bson.A{int32(7), bson.D{{Key: "a", Value: when}}, id, "undefined"}, result.Value); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]any{"doc": bson.D{{Key: "_id", Value: id}, {Key: "when", Value: when}, {Key: "f", Value: 2.0}, {Key: "n", Value: int32(5)}}}, result.Out); diff != "" {
			t.Error(diff)
		}
	}
	if diff := cmp.Diff([]string{"found v", "found v"}, lines); diff != "" {
		t.Error(diff)
	}

	_, err := e.Run(t.Context(), script.Call{Project: "p", Isolate: true, Host: h, Program: compile(t, "\n\nexport default async () => { await db.collection('x').insert({}) }")})
	f := failure(t, err)
	if f.Reason != script.Exception || !errors.Is(f, cause) || f.Line != 3 {
		t.Errorf("got %+v", f)
	}
	_, err = e.Run(t.Context(), script.Call{Project: "p", Isolate: true, Program: compile(t, "\n\nexport default () => { null.x }")})
	if f := failure(t, err); f.Line != 3 || f.Script != "hook.js" {
		t.Errorf("got %+v", f)
	}
	_, err = e.Run(t.Context(), script.Call{Project: "p", Isolate: true, Program: compile(t, "export default (ctx) => { throw ctx.error(422, 'no', [{path: 'a', message: 'b'}]) }")})
	if diff := cmp.Diff(error(&script.Thrown{Status: 422, Message: "no", Fields: []errs.FieldError{{Path: "a", Rule: "script", Message: "b"}}}), err); diff != "" {
		t.Error(diff)
	}
}

func failure(t *testing.T, err error) *script.Failure {
	t.Helper()
	f, ok := errors.AsType[*script.Failure](err)
	if !ok {
		t.Fatalf("got %T %v", err, err)
	}
	return f
}

// TestWorkerLimits has workers end runs that do not end by themselves, and be replaced where something is left of them.
func TestWorkerLimits(t *testing.T) {
	t.Parallel()
	e := workerEngine(t)
	for _, c := range []struct {
		text string
		want script.Reason
		idle int // workers that can be used again; -1: that depends on how soon it stops
	}{
		{`export default () => { for (;;); }`, script.Timeout, -1},
		{`export default () => { const f = () => f() + 1; return f() }`, script.Depth, 1},
		{`export default () => { const a = []; for (;;) a.push({x: [1, 2, 3]}) }`, script.Memory, 0},
		{`export default () => sleep(1e6)`, script.Timeout, -1},
		{`export default () => 'x'.repeat(1e9)`, script.Exception, 1},
		{`export default () => 1`, "", 1},
	} {
		timeout := time.Minute
		if c.want == script.Timeout {
			timeout = time.Second
		}
		_, err := e.Run(t.Context(), script.Call{Project: "p", Isolate: true, Program: compile(t, c.text), Limits: script.Limits{Timeout: timeout}})
		if got := reason(err); got != c.want {
			t.Errorf("%s: got %v: %v", c.text, got, err)
		}
		if idle := e.IdleWorkers(); idle != c.idle && c.idle >= 0 {
			t.Errorf("%s: %d workers can be used again, want %d", c.text, idle, c.idle)
		}
	}
}

// TestWorkersLeadToWorkers has more runs, each of which waits for another one, than there are workers.
func TestWorkersLeadToWorkers(t *testing.T) {
	t.Parallel()
	e := workerEngine(t)
	p := compile(t, `export default async (ctx) => ctx.depth === 0 ? 0 : 1 + await db.collection('x').count({depth: ctx.depth - 1})`)
	var run func(ctx context.Context, depth any) (any, error)
	h := host{"db.count": func(ctx context.Context, args bson.A) (any, error) {
		return run(ctx, args[1].(bson.D)[0].Value)
	}}
	run = func(ctx context.Context, depth any) (any, error) {
		result, err := e.Run(ctx, script.Call{Project: "p", Program: p, Isolate: true, Host: h, Ctx: []script.Member{{Name: "depth", Value: depth}}, Limits: script.Limits{Timeout: time.Minute}})
		return result.Value, err
	}
	var group sync.WaitGroup
	for range 2 * runtime.NumCPU() {
		group.Go(func() {
			if v, err := run(t.Context(), 4); err != nil || v != int32(4) {
				t.Errorf("%v, %v", v, err)
			}
		})
	}
	group.Wait()
}

// TestWorkerIsKilled has a process that never answers.
func TestWorkerIsKilled(t *testing.T) {
	t.Parallel()
	e := script.NewEngine(script.Options{WorkerCommand: []string{"/bin/sh", "-c", "exec sleep 1000"}})
	_, err := e.Run(t.Context(), script.Call{Isolate: true, Program: compile(t, `export default () => 1`), Limits: script.Limits{Timeout: 50 * time.Millisecond}})
	if f := failure(t, err); f.Reason != script.Timeout || !strings.Contains(f.Message, "killed") {
		t.Errorf("got %+v", f)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// TestWorkerDies has a process that ends, one that says nonsense, and one that can't be started.
func TestWorkerDies(t *testing.T) {
	t.Parallel()
	for _, command := range [][]string{{"/bin/sh", "-c", "exit 3"}, {"/bin/sh", "-c", "echo nonsense; cat >/dev/null"}, {filepath.Join(t.TempDir(), "none")}} {
		e := script.NewEngine(script.Options{WorkerCommand: command})
		_, err := e.Run(t.Context(), script.Call{Isolate: true, Program: compile(t, `export default () => 1`)})
		if f := failure(t, err); f.Reason != script.Killed {
			t.Errorf("%v: got %+v", command, f)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestWorkerEndsWithItsParent closes the pipe, as the end of the service does, while a script runs.
func TestWorkerEndsWithItsParent(t *testing.T) {
	t.Parallel()
	in, feed := pipe(t)
	done := make(chan error, 1)
	_, out := pipe(t)
	go func() { done <- script.ServeWorker(context.WithoutCancel(t.Context()), in, out) }()
	if err := feed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(); _ = w.Close() })
	return r, w
}

// ctx.progress is there where somebody listens, in this process and in a worker.
func TestProgress(t *testing.T) {
	t.Parallel()
	e := workerEngine(t)
	p := compile(t, `export default (ctx) => {
		if (!ctx.progress) return 'nobody listens'
		ctx.progress('one')
		ctx.progress({done: 1, total: 2})
		return 'progress' in ctx
	}`)
	for _, isolate := range []bool{false, true} {
		var got []any
		result, err := e.Run(t.Context(), script.Call{Program: p, Isolate: isolate, Progress: func(v any) { got = append(got, v) }})
		if err != nil || result.Value != true {
			t.Fatal(result.Value, err)
		}
		if len(got) != 2 || got[0] != "one" || !strings.Contains(fmt.Sprint(got[1]), "total") {
			t.Errorf("isolate %v: %v", isolate, got)
		}
		if result, err = e.Run(t.Context(), script.Call{Program: p, Isolate: isolate}); err != nil || result.Value != "nobody listens" {
			t.Error(result.Value, err)
		}
	}
}

// TestLongRunsTakeNoPlaces has more long runs wait than there are places for short ones, which come through nevertheless.
func TestLongRunsTakeNoPlaces(t *testing.T) {
	t.Parallel()
	e := workerEngine(t)
	arrived, open := make(chan struct{}), make(chan struct{})
	h := host{"cache.get": func(ctx context.Context, _ bson.A) (any, error) {
		arrived <- struct{}{}
		select {
		case <-open:
		case <-ctx.Done():
		}
		return nil, ctx.Err()
	}}
	p := compile(t, `export default async () => { await cache.get('k') }`)
	limits := script.Limits{Timeout: time.Minute}
	var all sync.WaitGroup
	long := max(4, 2*runtime.NumCPU()) + 1
	for range long {
		all.Go(func() {
			if _, err := e.Run(t.Context(), script.Call{Project: "p", Program: p, Isolate: true, Long: true, Host: h, Limits: limits}); err != nil {
				t.Error(err)
			}
		})
	}
	for range long {
		<-arrived
	}
	if _, err := e.Run(t.Context(), script.Call{Project: "p", Program: compile(t, `export default () => 1`), Isolate: true, Limits: limits}); err != nil {
		t.Error(err)
	}
	close(open)
	all.Wait()
}

// TestStill: where the time stands still, neither it nor chance makes a difference, wherever the script runs.
func TestStill(t *testing.T) {
	t.Parallel()
	here, apart := engine(t), workerEngine(t)
	p := compile(t, `module.exports = () => [Date.now(), new Date().getTime(), Math.random(), Math.random()].join(' ')`)
	run := func(e *script.Engine, still time.Time, isolate bool) string {
		result, err := e.Run(t.Context(), script.Call{Program: p, Still: still, Isolate: isolate, Limits: script.Limits{Timeout: time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		return result.Value.(string)
	}
	at := time.UnixMilli(1750000000123)
	first := run(here, at, false)
	if !strings.HasPrefix(first, "1750000000123 1750000000123 0.") || run(here, at, false) != first || run(apart, at, true) != first {
		t.Errorf("%s, %s, %s", first, run(here, at, false), run(apart, at, true))
	}
	if parts := strings.Fields(first); parts[2] == parts[3] {
		t.Error("chance stands still, too")
	}
	if a, b := run(here, time.Time{}, false), run(apart, time.Time{}, true); a == b || strings.HasPrefix(a, "1750000000123") {
		t.Errorf("%s, %s", a, b)
	}
}
