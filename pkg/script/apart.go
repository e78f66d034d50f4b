package script

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
)

// Compilers recurse, and take long for text that nests deep: one that runs out of stack ends its process, and nothing can
// stop one that takes for ever. So what is large enough for that is compiled by a worker process first.
const (
	maxHere        = 32 << 10 // of text, with what it imports, that can't nest deep enough
	compileTime    = 10 * time.Second
	compileMemory  = 256 << 20
	compileStack   = 64 << 20
	compileProject = "#compile" // no namespace: these workers run nothing
	compileAtOnce  = 2          // of different projects, since one compiles one after the other
)

// Compile is the function Compile for a service: no text can end the process, or take for ever. Projects take turns. took
// is the time without waiting for that.
func (e *Engine) Compile(project, entry string, read func(name string) ([]byte, error)) (p *Program, problems Problems, took time.Duration) {
	began := time.Now()
	if e.workers == nil {
		p, problems = Compile(entry, read)
		return p, problems, time.Since(began)
	}
	t := &texts{read: read, known: map[string]text{}, limit: maxHere}
	if p, problems = Compile(entry, t.file); !t.over {
		return p, problems, time.Since(began)
	}
	t.limit = 0
	waited, err := e.compileApart(project, entry, t.file)
	if err != nil {
		return nil, Problems{{File: entry, Message: err.Error()}}, time.Since(began) - waited
	}
	p, problems = Compile(entry, t.file)
	return p, problems, time.Since(began) - waited
}

// texts reads each file once, so that what was tried is what is compiled.
type texts struct {
	read  func(name string) ([]byte, error)
	known map[string]text
	size  int
	limit int  // how much may be read; 0: all
	over  bool // there was more than the limit
}

type text struct {
	data []byte
	err  error
}

func (t *texts) file(name string) ([]byte, error) {
	f, ok := t.known[name]
	if !ok {
		f.data, f.err = t.read(name)
		t.known[name] = f
		t.size += len(f.data)
	}
	if t.limit > 0 && t.size > t.limit {
		t.over = true
		return nil, errors.New("more text than is compiled here")
	}
	return f.data, f.err
}

// compileApart has a worker process compile a script. Without an error it did, or found problems that the text has.
func (e *Engine) compileApart(project, entry string, read func(name string) ([]byte, error)) (waited time.Duration, _ error) {
	began := time.Now()
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // loading a config has no context; Close ends it
	defer cancel()
	id, ok := e.begin(cancel)
	if !ok {
		return 0, errStops
	}
	defer e.end(id)
	if ok, _ := e.compiling.acquire(ctx.Done(), time.Time{}, project, fast, false); !ok {
		return time.Since(began), errStops
	}
	defer e.compiling.release(fast)
	waited = time.Since(began)
	w, err := e.workers.take(compileProject)
	if err != nil {
		return waited, err
	}
	ctx, done := context.WithTimeout(ctx, compileTime)
	defer done()
	if err := compileIn(ctx, w, entry, read); err != nil {
		e.workers.discard(w)
		return waited, err
	}
	e.workers.put(w)
	return waited, nil
}

var errStops = errors.New("the service stops")

// compileIn sends the entry to a worker and answers what it asks until it is done.
func compileIn(ctx context.Context, w *worker, entry string, read func(name string) ([]byte, error)) error {
	if err := w.in.write(bson.D{{Key: "t", Value: "compile"}, {Key: "entry", Value: entry}}); err != nil {
		return fmt.Errorf("compile it: %w", err)
	}
	for {
		select {
		case frame, ok := <-w.frames:
			switch {
			case !ok:
				return errors.New("nests too deep, or is too large, to compile; put data into a .json file")
			case field[string](frame, "t") == "done":
				return nil
			}
			name, _ := first(field[bson.A](frame, "args")).(string)
			reply := bson.D{{Key: "t", Value: "answer"}, {Key: "id", Value: field[int32](frame, "id")}}
			data, err := read(name)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				reply = append(reply, bson.E{Key: "err", Value: errorFrame(errs.New(errs.NotFound, "no_file", "there is no such file"))})
			case err != nil:
				reply = append(reply, bson.E{Key: "err", Value: errorFrame(errs.New(errs.Invalid, "bad_file", "the file can't be read"))})
			default:
				reply = append(reply, bson.E{Key: "v", Value: bson.Binary{Data: data[:min(len(data), maxFile+1)]}})
			}
			if err := w.in.write(reply); err != nil {
				return fmt.Errorf("compile it: %w", err)
			}
		case <-ctx.Done():
			if endOf(ctx) == Canceled {
				return errStops
			}
			return fmt.Errorf("takes longer than %s to compile: it nests too deep, or is too large", compileTime)
		}
	}
}

func first(args bson.A) any {
	if len(args) == 0 {
		return nil
	}
	return args[0]
}

// compile compiles for compileApart, in a worker process. What comes of it is not sent: the service compiles again.
func (w *workerProcess) compile(ctx context.Context, entry string) {
	limitMemory(w.base, compileMemory)
	debug.SetMaxStack(compileStack)
	w.reset(func() {})
	go func() { // the process ends with what in ends
		_, _ = Compile(entry, func(name string) ([]byte, error) {
			v, err := workerHost{w}.Call(ctx, "read", bson.A{name})
			if errs.KindOf(err) == errs.NotFound {
				return nil, fs.ErrNotExist
			}
			data, _ := v.(bson.Binary)
			return data.Data, err
		})
		_ = w.out.write(bson.D{{Key: "t", Value: "done"}}) // a service that is gone ends the process
	}()
}
