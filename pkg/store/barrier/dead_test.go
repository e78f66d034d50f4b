package barrier_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/gate"
)

// TestDead: nobody waits for a process that is gone without a word, and what it has begun is ended before others go on.
func TestDead(t *testing.T) {
	eachMachine(t, func(m *machine) {
		one, gone := m.start(), m.process()
		gone.look() // once, and then never again
		var shut gate.Shut
		took := m.during(func() {
			var err error
			if shut, err = one.Shut(m.Context(), m.shared()); err == nil {
				err = shut.Reads(m.Context())
			}
			if err != nil {
				m.Error(err)
			}
		})
		if took < dead {
			m.Errorf("it was waited for no longer than %s", took)
		}
		shut.Open()
		one.opens()

		one.fails.Store(true)
		left := m.start()
		if _, err := left.Shut(m.Context(), m.shared()); err != nil {
			m.Fatal(err)
		}
		left.stop() // without opening
		one.want("shut by a process that is gone", false, true)
		before := one.wanted.Load()
		m.pass(dead / 2)
		if n := one.wanted.Load() - before; n < 3 {
			m.Errorf("what is wanted is told %d times", n)
		}
		m.pass(dead)
		one.want("what it has begun is not ended", false, true)
		one.fails.Store(false)
		one.opens()
		if one.abandoned.Load() == 0 {
			m.Error("nothing was ended")
		}
	})
}

// TestDeadAtOnce: what a process has begun that is taken for dead with what it wants is tried to be ended again at once.
func TestDeadAtOnce(t *testing.T) {
	eachMachine(t, func(m *machine) {
		one := m.start()
		one.fails.Store(true)
		gone := m.process()
		gone.look()
		one.stop()
		if _, err := gone.Shut(m.Context(), m.shared()); err != nil {
			m.Fatal(err)
		}
		two := m.start()
		two.fails.Store(true)
		for gone.isThere() {
			m.pass(dead / 10)
		}
		two.fails.Store(false)
		two.opens() // without any time
	})
}

// stoodStill is a process that has stood still, with a write and a read under way, until others have gone on without it.
type stoodStill struct {
	*process

	before context.Context // of a request
	ends   map[string]chan error
	goOn   func()
}

func (m *machine) standsStill() *stoodStill {
	m.Helper()
	s := &stoodStill{process: m.process(), ends: map[string]chan error{"a write": make(chan error, 1), "a read": make(chan error, 1)}}
	s.look() // once, and then not for long
	if err := s.write("while all is well"); err != nil {
		m.Fatal(err)
	}
	s.before = s.gate.Moment(m.Context())
	goOn, begun := make(chan struct{}), make(chan struct{}, 9)
	go func() {
		s.ends["a write"] <- s.gate.Database(m.shared()).Transact(m.Context(), func(context.Context, store.Tx) error {
			begun <- struct{}{}
			<-goOn
			return nil
		})
	}()
	go func() {
		s.ends["a read"] <- s.things().Find(m.Context(), store.Query{}, func(bson.Raw) error {
			begun <- struct{}{}
			<-goOn
			return nil
		})
	}()
	<-begun
	<-begun
	s.goOn = sync.OnceFunc(func() { close(goOn) })
	m.Cleanup(s.goOn)
	return s
}

// refused wants what was under way to have failed.
func (s *stoodStill) refused() {
	s.m.Helper()
	if err := <-s.ends["a write"]; err == nil || errs.From(err).Code != gate.OutcomeUnknown {
		s.m.Errorf("a write that was under way: %v", err)
	}
	if err := <-s.ends["a read"]; !errors.Is(err, gate.ErrShut) {
		s.m.Errorf("a read that was under way: %v", err)
	}
	if err := s.read(s.before); !errors.Is(err, gate.ErrShut) {
		s.m.Errorf("a request from before: %v", err)
	}
}

// passes wants it not to have failed.
func (s *stoodStill) passes() {
	s.m.Helper()
	for what, end := range s.ends {
		if err := <-end; err != nil {
			s.m.Errorf("%s that was under way: %v", what, err)
		}
	}
	if err := s.read(s.before); err != nil {
		s.m.Errorf("a request from before: %v", err)
	}
}

// TestStandsStill: a process that stands still until the others go on without it acknowledges nothing that it had under way, and begins nothing before it knows what
// they want.
func TestStandsStill(t *testing.T) {
	eachMachine(t, func(m *machine) {
		one, still := m.start(), m.standsStill()
		var shut gate.Shut
		m.during(func() {
			var err error
			if shut, err = one.Shut(m.Context(), m.shared()); err != nil {
				m.Error(err)
			}
		})
		still.goOn()
		late := make(chan error, 1)
		go func() { late <- still.write("it does not know yet") }()
		select {
		case err := <-late:
			m.Errorf("a write that does not wait: %v", err)
		case err := <-still.ends["a write"]:
			m.Errorf("a write that was under way: %v", err)
		case <-time.After(10 * beat):
		}
		still.look() // it goes on
		if err := <-late; !errors.Is(err, gate.ErrShut) {
			m.Errorf("a write that has waited: %v", err)
		}
		still.refused()
		still.want("it knows", false, true)
		shut.Open()
		still.look()
		still.want("all is well again", true, true)
	})
}

// TestStandsStillUnseen: so it is when the process can't see that it was taken for dead, since the answer of the store was lost by which it would have.
func TestStandsStillUnseen(t *testing.T) {
	eachMachine(t, func(m *machine) {
		m.start()
		still := m.standsStill()
		for still.isThere() {
			m.pass(dead / 10)
		}
		still.loses()
		if !still.isThere() {
			m.Error("it does not show")
		}
		still.goOn()
		still.look()
		still.refused()
	})
}

// loses has it look in vain.
func (p *process) loses() {
	p.m.Helper()
	p.db.lost.Store(true)
	defer p.db.lost.Store(false)
	if err := p.Start(p.m.Context()); !errors.Is(err, errLost) {
		p.m.Errorf("without an answer: %v", err)
	}
}

// TestSlow: a process that stands still for a while, without which nobody goes on, has nothing refused; nor has one that has lost an answer before others could have
// taken it for dead.
func TestSlow(t *testing.T) {
	eachMachine(t, func(m *machine) {
		slow := m.standsStill()
		m.jump(2 * dead)
		slow.goOn()
		slow.look()
		slow.passes()

		slow = m.standsStill()
		m.jump(dead / 3)
		slow.loses()
		m.jump(dead / 2)
		slow.goOn()
		slow.look()
		slow.passes()
	})
}

// TestBlind: who has not looked at the others for long, such as while the store was away from all, takes nobody for dead by that.
func TestBlind(t *testing.T) {
	eachMachine(t, func(m *machine) {
		one, other := m.start(), m.standsStill()
		one.looks()
		for range 3 {
			m.jump(dead * 2)
			one.looks()
			if !other.isThere() {
				m.Fatal("it was taken for dead")
			}
		}
		shut := make(chan gate.Shut, 1)
		go func() {
			got, err := one.Shut(m.Context(), m.shared())
			if err != nil {
				m.Error(err)
			}
			shut <- got
		}()
		select {
		case <-shut:
			m.Error("it is not waited for")
		case <-time.After(10 * beat):
		}
		other.goOn()
		other.look()
		other.passes()
		other.look() // which tells that it has shut it
		(<-shut).Open()
	})
}
