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
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"
)

const (
	benchUser     = "bench"
	benchPassword = "bench-password-of-no-worth-0000"
	authRounds    = 9
	readers       = 8   // connections that read at a fixed rate
	readsPerS     = 400 // over all of them
	loginsPerS    = 500
	loginWorkers  = 160 // more than may wait in the service
)

// measureLogins measures what a session costs a read, and what a flood of garbage logins does to reads.
func measureLogins(ctx context.Context, o options) (err error) {
	s, err := newServer(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	s.env = []string{"API_TRUSTED_PROXIES=127.0.0.1", "ADMIN_USER=" + benchUser, "ADMIN_PASSWORD=" + benchPassword}
	if err := s.start(ctx, "/readyz"); err != nil {
		return err
	}
	a, err := seed(ctx, s, min(o.articles, 2000))
	if err != nil {
		return err
	}
	var session struct {
		Token string `json:"token"`
	}
	if err := s.login(ctx, &session); err != nil {
		return err
	}
	read := operations(a)[0]
	if err := compareReads(ctx, s, read, session.Token, o.duration); err != nil {
		return err
	}
	return floods(ctx, s, read, o.duration)
}

// login logs the administrator in, who is made at the start.
func (s *server) login(ctx context.Context, out any) error {
	body := strings.NewReader(`{"username":"` + benchUser + `","password":"` + benchPassword + `"}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.addr+"/api/v1/login", body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	return answerTo(req, out)
}

// compareReads reads records by turns without and with a session, and compares the CPU time of the service and the
// latency: the medians of the rounds, for a machine has other things to do.
func compareReads(ctx context.Context, s *server, public operation, token string, duration time.Duration) error {
	private := public
	private.header = "X-Auth-Token: " + token + "\r\n"
	var runs [2][]run
	for i := range authRounds + 1 {
		for j, op := range []operation{public, private} {
			one, err := load(ctx, s, op, 16, duration/2)
			if err != nil {
				return err
			}
			if i > 0 { // the first is a warm-up
				runs[j] = append(runs[j], one)
			}
		}
	}
	middle := func(runs []run, of func(run) float64) float64 {
		var values []float64
		for _, r := range runs {
			values = append(values, of(r))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	cpu, p50 := func(r run) float64 { return r.CPU }, func(r run) float64 { return r.P50 }
	var w strings.Builder
	fmt.Fprintf(&w, "read-one\tCPU µs/request\tp50 ms\t\n")
	fmt.Fprintf(&w, "public\t%.1f\t%.3f\t\n", middle(runs[0], cpu), middle(runs[0], p50))
	fmt.Fprintf(&w, "with a session\t%.1f\t%.3f\t\n", middle(runs[1], cpu), middle(runs[1], p50))
	fmt.Fprintf(&w, "more (target: 15 %%)\t%+.1f %%\t%+.1f %%\t\n\n", (middle(runs[1], cpu)/middle(runs[0], cpu)-1)*100, (middle(runs[1], p50)/middle(runs[0], p50)-1)*100)
	return printTable(w.String())
}

// floods reads at a fixed rate: alone, while garbage logins come from one address, while they come from many.
func floods(ctx context.Context, s *server, read operation, duration time.Duration) error {
	var w strings.Builder
	fmt.Fprintf(&w, "%d reads/s beside\treads\tp50 ms\tp99 ms\tp99, times\tlogins/s\tanswers\t\n", readsPerS)
	var alone float64
	for _, flood := range []struct {
		name string
		addr func(i int64) string // "" is no flood
	}{
		{"nothing", nil},
		{fmt.Sprintf("%d logins/s, one address (target: 2)", loginsPerS), func(int64) string { return "203.0.113.9" }},
		{"nothing, again", nil},
		{fmt.Sprintf("%d logins/s, many addresses (target: 3)", loginsPerS), func(i int64) string {
			return fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)
		}},
	} {
		flooding, stop := context.WithCancel(ctx)
		var answers sync.Map
		var sent atomic.Int64
		var wg sync.WaitGroup
		if flood.addr != nil {
			wg.Go(func() { floodLogins(flooding, s, flood.addr, &sent, &answers) })
			time.Sleep(time.Second) // until it has got going
		}
		before, began := sent.Load(), time.Now()
		took, err := paced(ctx, s.addr, read, 3*duration)
		rate := float64(sent.Load()-before) / time.Since(began).Seconds()
		stop()
		wg.Wait()
		if err != nil {
			return err
		}
		slices.Sort(took)
		at := func(part float64) float64 { return float64(took[int(part*float64(len(took)-1))].Microseconds()) / 1000 }
		if alone == 0 {
			alone = at(0.99)
		}
		fmt.Fprintf(&w, "%s\t%d\t%.2f\t%.2f\t%.2f\t%.0f\t%s\t\n", flood.name, len(took), at(0.5), at(0.99), at(0.99)/alone, rate, counts(&answers))
	}
	return printTable(w.String())
}

// printTable aligns the columns of a text, which tabs end.
func printTable(text string) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	if _, err := io.WriteString(w, text); err != nil {
		return err
	}
	return w.Flush()
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
				n, _ := answers.LoadOrStore(status, new(atomic.Int64))
				if n, ok := n.(*atomic.Int64); ok {
					n.Add(1)
				}
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
