package barrier_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/barrier"
	"github.com/svcctl/svc/pkg/store/gate"
	"github.com/svcctl/svc/pkg/store/teststore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	beat = 10 * time.Millisecond
	dead = 2 * time.Second // longer than a test that is slow pauses
)

// process is one of those that share a store.
type process struct {
	*barrier.Barrier

	t         *testing.T
	gate      *gate.Gate
	stop      func()
	abandoned atomic.Int64
	fails     atomic.Bool // what is asked when another one is dead
}

// shared names the database of a test: others run on the same server.
func shared(t *testing.T) string {
	t.Helper()
	return "shared_" + strings.ToLower(strings.ReplaceAll(t.Name(), "/", "_"))
}

func start(t *testing.T, s store.Store) *process {
	t.Helper()
	p := &process{t: t, gate: gate.New(s)}
	p.Barrier = barrier.New(barrier.Options{
		Gate: p.gate, DB: s.Database(shared(t)), Holder: "a process", Logger: slog.New(slog.DiscardHandler), Beat: beat, Dead: dead,
		Abandoned: func(context.Context, string) error {
			if p.fails.Load() {
				return errors.New("not now")
			}
			p.abandoned.Add(1)
			return nil
		},
	})
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx)
	}()
	p.stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(p.stop)
	t.Cleanup(func() { _ = s.DropDatabase(context.Background(), shared(t)) })
	return p
}

func (p *process) write(id string) error {
	doc, err := bson.Marshal(bson.D{{Key: "_id", Value: id}})
	if err != nil {
		return err
	}
	_, err = p.gate.Database(shared(p.t)).Collection("things").Write(p.t.Context(), []store.Op{{Kind: store.Insert, Doc: doc}}, true)
	return err
}

func (p *process) read() error {
	_, err := p.gate.Database(shared(p.t)).Collection("things").Count(p.t.Context(), nil, 0)
	return err
}

// want says what passes.
func (p *process) want(when string, writes, reads bool) {
	p.t.Helper()
	if err := p.write(time.Now().String()); errors.Is(err, gate.ErrShut) == writes {
		p.t.Errorf("%s: write %v", when, err)
	}
	if err := p.read(); errors.Is(err, gate.ErrShut) == reads {
		p.t.Errorf("%s: read %v", when, err)
	}
}

// opens waits until all passes again.
func (p *process) opens() {
	p.t.Helper()
	for p.write(time.Now().String()) != nil {
		if p.t.Context().Err() != nil {
			p.t.Fatal("it stays shut")
		}
		time.Sleep(beat)
	}
}

// TestShut: all processes refuse writes, then reads, when Shut and Reads have returned, and pass them again later.
func TestShut(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		all := []*process{start(t, s), start(t, s), start(t, s)}
		for _, one := range all {
			shut, err := one.Shut(t.Context(), shared(t))
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range all {
				p.want("shut", false, true)
			}
			if err := shut.Reads(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, p := range all {
				p.want("shut for reads", false, false)
			}
			late := start(t, s)
			late.want("a process that comes later", false, false)
			shut.Open()
			shut.Open()
			one.want("opened", true, true)
			for _, p := range all {
				p.opens()
			}
			late.opens()
			late.stop()
		}
	})
}

// TestShutWaits for writers of other processes, and opens all when that takes too long.
func TestShutWaits(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		one, other := start(t, s), start(t, s)
		begun, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		var once sync.Once
		go func() {
			done <- other.gate.Database(shared(t)).Transact(t.Context(), func(context.Context, store.Tx) error {
				once.Do(func() { close(begun) })
				<-goOn
				return nil
			})
		}()
		<-begun
		short, cancel := context.WithTimeout(t.Context(), 20*beat)
		defer cancel()
		if _, err := one.Shut(short, shared(t)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("shut while another process writes: %v", err)
		}
		one.want("given up", true, true)
		other.opens()
		shut := make(chan gate.Shut, 2)
		for _, p := range []*process{one, other} {
			go func() {
				got, err := p.Shut(t.Context(), shared(t))
				if err != nil {
					t.Error(err)
				}
				shut <- got
			}()
		}
		close(goOn)
		if err := <-done; err != nil {
			t.Error(err)
		}
		first := <-shut
		select {
		case <-shut:
			t.Error("it was shut twice")
		case <-time.After(10 * beat):
		}
		first.Open()
		(<-shut).Open()
		one.opens()
		other.opens()
	})
}

// TestDead: nobody waits for a process that is gone without a word, and what it has begun is ended before others go on.
func TestDead(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		one := start(t, s)
		gone := start(t, s)
		gone.stop()
		if err := gone.Start(t.Context()); err != nil { // it shows once more, and then never again
			t.Fatal(err)
		}
		shut, err := one.Shut(t.Context(), shared(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := shut.Reads(t.Context()); err != nil {
			t.Fatal(err)
		}
		shut.Open()
		one.opens()

		one.fails.Store(true)
		left := start(t, s)
		if _, err := left.Shut(t.Context(), shared(t)); err != nil {
			t.Fatal(err)
		}
		left.stop() // without opening
		one.want("shut by a process that is gone", false, true)
		time.Sleep(dead + 20*beat)
		one.want("what it has begun is not ended", false, true)
		one.fails.Store(false)
		one.opens()
		if one.abandoned.Load() == 0 {
			t.Error("nothing was ended")
		}
	})
}

// TestStandsStill: a process that stands still until the others go on without it acknowledges nothing that it had under way, and begins nothing before it knows what
// they want.
func TestStandsStill(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		one, still := start(t, s), start(t, s)
		if err := still.write("while all is well"); err != nil {
			t.Fatal(err)
		}
		still.stop()
		if err := still.Start(t.Context()); err != nil { // it shows once more, and then not for long
			t.Fatal(err)
		}
		c := still.gate.Database(shared(t)).Collection("things")
		before := still.gate.Moment(t.Context())
		ends := map[string]chan error{"a write": make(chan error, 1), "a read": make(chan error, 1)}
		goOn, begun := make(chan struct{}), make(chan struct{}, 9)
		go func() {
			ends["a write"] <- still.gate.Database(shared(t)).Transact(t.Context(), func(context.Context, store.Tx) error {
				begun <- struct{}{}
				<-goOn
				return nil
			})
		}()
		go func() {
			ends["a read"] <- c.Find(t.Context(), store.Query{}, func(bson.Raw) error {
				begun <- struct{}{}
				<-goOn
				return nil
			})
		}()
		<-begun
		<-begun
		shut, err := one.Shut(t.Context(), shared(t))
		if err != nil {
			t.Fatal(err)
		}
		close(goOn)
		late := make(chan error, 1)
		go func() { late <- still.write("it does not know yet") }()
		select {
		case err := <-late:
			t.Errorf("a write that does not wait: %v", err)
		case err := <-ends["a write"]:
			t.Errorf("a write that was under way: %v", err)
		case <-time.After(10 * beat):
		}
		if err := still.Start(t.Context()); err != nil { // it goes on
			t.Fatal(err)
		}
		if err := <-late; !errors.Is(err, gate.ErrShut) {
			t.Errorf("a write that has waited: %v", err)
		}
		if err := <-ends["a write"]; errs.From(err).Code != "outcome_unknown" {
			t.Errorf("a write that was under way: %v", err)
		}
		if err := <-ends["a read"]; !errors.Is(err, gate.ErrShut) {
			t.Errorf("a read that was under way: %v", err)
		}
		if _, err := c.Count(before, nil, 0); !errors.Is(err, gate.ErrShut) {
			t.Errorf("a request from before: %v", err)
		}
		still.want("it knows", false, true)
		shut.Open()
		if err := still.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		still.want("all is well again", true, true)
	})
}

// TestSlow: a process that stands still for a while, without which nobody goes on, has nothing refused.
func TestSlow(t *testing.T) {
	s := teststore.Memory(t)
	slow := start(t, s)
	slow.stop()
	if err := slow.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := slow.gate.Moment(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- slow.gate.Database(shared(t)).Transact(t.Context(), func(context.Context, store.Tx) error {
			time.Sleep(dead)
			return nil
		})
	}()
	time.Sleep(dead + 10*beat)
	if err := slow.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := slow.gate.Database(shared(t)).Collection("things").Count(before, nil, 0); err != nil {
		t.Error(err)
	}
}
