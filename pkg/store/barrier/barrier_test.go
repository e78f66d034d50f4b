package barrier_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/gate"
)

// TestShut: all processes refuse writes, then reads, when Shut and Reads have returned, and pass them again later.
func TestShut(t *testing.T) {
	eachMachine(t, func(m *machine) {
		all := []*process{m.start(), m.start(), m.start()}
		for _, one := range all {
			shut, err := one.Shut(m.Context(), m.shared())
			if err != nil {
				m.Fatal(err)
			}
			for _, p := range all {
				p.want("shut", false, true)
			}
			if err := shut.Reads(m.Context()); err != nil {
				m.Fatal(err)
			}
			for _, p := range all {
				p.want("shut for reads", false, false)
			}
			late := m.start()
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
	eachMachine(t, func(m *machine) {
		one, other := m.start(), m.start()
		begun, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		var once sync.Once
		go func() {
			done <- other.gate.Database(m.shared()).Transact(m.Context(), func(context.Context, store.Tx) error {
				once.Do(func() { close(begun) })
				<-goOn
				return nil
			})
		}()
		<-begun
		short, cancel := context.WithTimeout(m.Context(), 20*beat)
		defer cancel()
		if _, err := one.Shut(short, m.shared()); !errors.Is(err, context.DeadlineExceeded) {
			m.Errorf("shut while another process writes: %v", err)
		}
		one.want("given up", true, true)
		other.opens()
		shut := make(chan gate.Shut, 2)
		for _, p := range []*process{one, other} {
			go func() {
				got, err := p.Shut(m.Context(), m.shared())
				if err != nil {
					m.Error(err)
				}
				shut <- got
			}()
		}
		close(goOn)
		if err := <-done; err != nil {
			m.Error(err)
		}
		first := <-shut
		select {
		case <-shut:
			m.Error("it was shut twice")
		case <-time.After(10 * beat):
		}
		first.Open()
		(<-shut).Open()
		one.opens()
		other.opens()
	})
}
