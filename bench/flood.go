package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	floodRounds  = 7
	readers      = 8   // connections that read at a fixed rate
	readsPerS    = 400 // over all of them
	loginsPerS   = 500
	loginWorkers = 160 // more than may wait in the service
)

// flood is one kind of weather for reads.
type flood struct {
	name string
	blow func(ctx context.Context, f *flood) // sends what others ask for until ctx ends; nil: nothing
	p50  []float64                           // of each round, in ms
	p99  []float64
	rate []float64 // requests of others per second

	sent *atomic.Int64 // of others

	answers sync.Map // status -> *atomic.Int64
}

// measureFloods reads at a fixed rate, by turns alone, while garbage logins come from one address, and while they come
// from many. A flood is held against the round of reads alone before it: a machine has other things to do, now more and
// now less.
func measureFloods(ctx context.Context, o options) (err error) {
	s, a, err := seeded(ctx, o, 2000)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	var sent atomic.Int64
	logins := func(from string, target int, addr func(i int64) string) *flood {
		return &flood{
			name: fmt.Sprintf("%d logins/s, %s (target: %d)", loginsPerS, from, target), sent: &sent,
			blow: func(ctx context.Context, f *flood) { floodLogins(ctx, s, addr, f.sent, &f.answers) },
		}
	}
	one := logins("one address", 2, func(int64) string { return "203.0.113.9" })
	many := logins("many addresses", 3, func(i int64) string { return fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255) })
	return weather(ctx, s, operations(a)[0], []*flood{one, many}, floodRounds, o.duration)
}

// weather reads in each of some floods, and before each of them alone, round by round, and prints how they compare.
func weather(ctx context.Context, s *server, read operation, floods []*flood, rounds int, duration time.Duration) error {
	var weathers []*flood
	for _, f := range floods {
		weathers = append(weathers, &flood{name: "nothing", sent: f.sent}, f)
	}
	for range rounds {
		for _, f := range weathers {
			if err := f.round(ctx, s, read, duration); err != nil {
				return err
			}
		}
	}
	var w strings.Builder
	fmt.Fprintf(&w, "%d reads/s beside\tp50 ms\tp99 ms\tp99, times\tof each round\trequests/s\tanswers\t\n", readsPerS)
	for i, f := range weathers {
		calm := weathers[i-i%2]
		times := ratios(f.p99, calm.p99)
		fmt.Fprintf(&w, "%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.0f\t%s\t\n",
			f.name, median(f.p50), median(f.p99), median(times), times, median(f.rate), counts(&f.answers))
	}
	return printTable(w.String())
}

// round reads for a time in this weather.
func (f *flood) round(ctx context.Context, s *server, read operation, duration time.Duration) error {
	flooding, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	if f.blow != nil {
		wg.Go(func() { f.blow(flooding, f) })
	}
	time.Sleep(time.Second) // until it has got going, or the one before has gone
	before, began := f.sent.Load(), time.Now()
	took, err := paced(ctx, s.addr, read, duration)
	f.rate = append(f.rate, float64(f.sent.Load()-before)/time.Since(began).Seconds())
	stop()
	wg.Wait()
	if err != nil {
		return err
	}
	slices.Sort(took)
	at := func(part float64) float64 { return float64(took[int(part*float64(len(took)-1))].Microseconds()) / 1000 }
	f.p50, f.p99 = append(f.p50, at(0.5)), append(f.p99, at(0.99))
	return nil
}

func counts(m *sync.Map) string {
	var parts []string
	m.Range(func(status, n any) bool {
		if n, ok := n.(*atomic.Int64); ok {
			parts = append(parts, fmt.Sprintf("%v: %d", status, n.Load()))
		}
		return true
	})
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func tally(answers *sync.Map, status int) {
	n, _ := answers.LoadOrStore(status, new(atomic.Int64))
	if n, ok := n.(*atomic.Int64); ok {
		n.Add(1)
	}
}

// floodLogins sends loginsPerS logins of made-up names until ctx ends, whatever becomes of them.
func floodLogins(ctx context.Context, s *server, addr func(int64) string, sent *atomic.Int64, answers *sync.Map) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: loginWorkers}}
	due := make(chan struct{}, loginsPerS)
	var wg sync.WaitGroup
	for range loginWorkers {
		wg.Go(func() {
			for range due {
				i := sent.Add(1)
				status, err := garbageLogin(ctx, client, s.addr, addr(i), i)
				if err != nil {
					continue
				}
				tally(answers, status)
			}
		})
	}
	const tick = 10 * time.Millisecond
	for ticker := time.NewTicker(tick); ctx.Err() == nil; {
		select {
		case <-ctx.Done():
			ticker.Stop()
		case <-ticker.C:
			for range int(loginsPerS * tick / time.Second) {
				select {
				case due <- struct{}{}:
				default: // all are busy
				}
			}
		}
	}
	close(due)
	wg.Wait()
	client.CloseIdleConnections()
}

// garbageLogin tries to log in as somebody who is not there, from an address, and gives the status of the answer.
func garbageLogin(ctx context.Context, client *http.Client, server, from string, i int64) (int, error) {
	body := fmt.Sprintf(`{"username":"nobody%d","password":"%x"}`, i, rand.Uint64())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+server+"/api/v1/login", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Forwarded-For", from)
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, errors.Join(err, resp.Body.Close())
}

// paced reads at a fixed rate and gives how long each answer took, counted from when it was due: a read that has to wait
// for the one before is slow, too.
func paced(ctx context.Context, addr string, op operation, duration time.Duration) ([]time.Duration, error) {
	took, errs := make([][]time.Duration, readers), make([]error, readers)
	gap := readers * time.Second / readsPerS
	began := time.Now()
	var wg sync.WaitGroup
	for i := range readers {
		wg.Go(func() {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			if err != nil {
				errs[i] = err
				return
			}
			defer conn.Close() //nolint:errcheck // everything has been read
			answers, rng := bufio.NewReaderSize(conn, 64<<10), rand.New(rand.NewPCG(uint64(i), 1))
			for due := began.Add(gap * time.Duration(i) / readers); due.Sub(began) < duration && ctx.Err() == nil; due = due.Add(gap) {
				time.Sleep(time.Until(due))
				if errs[i] = exchange(conn, answers, addr, op, rng); errs[i] != nil {
					return
				}
				took[i] = append(took[i], time.Since(due))
			}
		})
	}
	wg.Wait()
	return slices.Concat(took...), errors.Join(errors.Join(errs...), ctx.Err())
}
