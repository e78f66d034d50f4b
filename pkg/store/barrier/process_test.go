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

	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/barrier"
	"github.com/svcctl/svc/pkg/store/gate"
	"github.com/svcctl/svc/pkg/store/teststore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	beat = 5 * time.Millisecond // of real time
	dead = 15 * time.Second     // of the machine's, which is the test's
)

// machine is what processes run on that share a store. Its time passes when a test says so: so nobody is dead because a test is slow.
type machine struct {
	*testing.T

	store store.Store

	mu    sync.Mutex
	clock gate.Instant
	alive []*process
}

func newMachine(t *testing.T, s store.Store) *machine {
	t.Helper()
	m := &machine{T: t, store: s, clock: gate.Instant{Wall: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}}
	t.Cleanup(func() { _ = s.DropDatabase(context.Background(), m.shared()) })
	return m
}

func (m *machine) now() gate.Instant {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clock
}

// jump has time pass in which nobody does anything.
func (m *machine) jump(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock.Steady += d
	m.clock.Wall = m.clock.Wall.Add(d)
}

// pass has time pass, while all processes that run look again and again.
func (m *machine) pass(d time.Duration) {
	m.Helper()
	const step = dead / 10
	for ; d > 0; d -= step {
		m.jump(min(d, step))
		m.mu.Lock()
		alive := m.alive
		m.mu.Unlock()
		for _, p := range alive {
			p.looks()
		}
	}
}

// during does something while time passes, and says how much of it.
func (m *machine) during(fn func()) time.Duration {
	m.Helper()
	began, done := m.now(), make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	for m.Context().Err() == nil {
		select {
		case <-done:
			return m.now().Steady - began.Steady
		case <-time.After(beat):
			m.pass(dead / 10)
		}
	}
	m.Fatal("it does not end")
	return 0
}

// shared names the database of a test: others run on the same server.
func (m *machine) shared() string {
	return "shared_" + strings.ToLower(strings.ReplaceAll(m.Name(), "/", "_"))
}

// process is one of those that share a store.
type process struct {
	*barrier.Barrier

	m         *machine
	db        *spied
	gate      *gate.Gate
	stop      func()
	abandoned atomic.Int64
	wanted    atomic.Int64 // looks at which another one wanted something
	fails     atomic.Bool  // what is asked when another one is dead
}

// process makes one that does not run yet.
func (m *machine) process() *process {
	p := &process{m: m, gate: gate.New(m.store), db: &spied{Database: m.store.Database(m.shared())}}
	p.gate.Clock = m.now
	p.Barrier = barrier.New(barrier.Options{
		Gate: p.gate, DB: p.db, Holder: "a process", Logger: slog.New(slog.DiscardHandler), Beat: beat, Dead: dead,
		Wanted: func(_ context.Context, database string) {
			if database != m.shared() {
				m.Errorf("%s is wanted", database)
			}
			p.wanted.Add(1)
		},
		Abandoned: func(context.Context, string) error {
			if p.fails.Load() {
				return errors.New("not now")
			}
			p.abandoned.Add(1)
			return nil
		},
	})
	return p
}

// start runs one.
func (m *machine) start() *process {
	m.Helper()
	p := m.process()
	p.look()
	ctx, cancel := context.WithCancel(m.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx)
	}()
	m.mu.Lock()
	m.alive = append(m.alive, p)
	m.mu.Unlock()
	p.stop = sync.OnceFunc(func() {
		m.mu.Lock()
		var others []*process
		for _, other := range m.alive {
			if other != p {
				others = append(others, other)
			}
		}
		m.alive = others
		m.mu.Unlock()
		cancel()
		<-done
	})
	m.Cleanup(p.stop)
	return p
}

// look looks once, for a process that does not run.
func (p *process) look() {
	p.m.Helper()
	if err := p.Start(p.m.Context()); err != nil {
		p.m.Fatal(err)
	}
}

// looks waits for a whole look of a process that runs.
func (p *process) looks() {
	p.m.Helper()
	for to := p.db.looks.Load() + 3; p.db.looks.Load() < to; time.Sleep(beat / 5) {
		if p.m.Context().Err() != nil {
			p.m.Fatal("it does not look any more")
		}
	}
}

func (p *process) write(id string) error {
	doc, err := bson.Marshal(bson.D{{Key: "_id", Value: id}})
	if err != nil {
		return err
	}
	_, err = p.things().Write(p.m.Context(), []store.Op{{Kind: store.Insert, Doc: doc}}, true)
	return err
}

func (p *process) read(ctx context.Context) error {
	_, err := p.things().Count(ctx, nil, 0)
	return err
}

func (p *process) things() store.Collection {
	return p.gate.Database(p.m.shared()).Collection("things")
}

// want says what passes.
func (p *process) want(when string, writes, reads bool) {
	p.m.Helper()
	if err := p.write(time.Now().String()); errors.Is(err, gate.ErrShut) == writes {
		p.m.Errorf("%s: write %v", when, err)
	}
	if err := p.read(p.m.Context()); errors.Is(err, gate.ErrShut) == reads {
		p.m.Errorf("%s: read %v", when, err)
	}
}

// opens waits until all passes again.
func (p *process) opens() {
	p.m.Helper()
	for p.write(time.Now().String()) != nil {
		if p.m.Context().Err() != nil {
			p.m.Fatal("it stays shut")
		}
		time.Sleep(beat)
	}
}

// isThere says whether others see it.
func (p *process) isThere() bool {
	p.m.Helper()
	n, err := p.m.store.Database(p.m.shared()).Collection("svc.instances").Count(p.m.Context(), nil, 0)
	if err != nil {
		p.m.Fatal(err)
	}
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	return int(n) > len(p.m.alive)
}

// spied is the database that all know, as one of them sees it.
type spied struct {
	store.Database

	looks atomic.Int64
	lost  atomic.Bool // the answers to what is written
}

func (d *spied) Collection(name string) store.Collection {
	return &spiedCollection{d.Database.Collection(name), d, name}
}

type spiedCollection struct {
	store.Collection

	d    *spied
	name string
}

func (c *spiedCollection) Find(ctx context.Context, q store.Query, fn func(bson.Raw) error) error {
	err := c.Collection.Find(ctx, q, fn)
	if err == nil && c.name == "svc.barriers" {
		c.d.looks.Add(1)
	}
	return err
}

var errLost = errors.New("the store does not answer")

func (c *spiedCollection) Write(ctx context.Context, ops []store.Op, atomic bool) ([]store.Result, error) {
	results, err := c.Collection.Write(ctx, ops, atomic)
	if c.d.lost.Load() {
		return nil, errLost
	}
	return results, err
}

// eachMachine runs a test on either store.
func eachMachine(t *testing.T, test func(m *machine)) {
	t.Helper()
	teststore.EachParallel(t, func(t *testing.T, s store.Store) { test(newMachine(t, s)) })
}
