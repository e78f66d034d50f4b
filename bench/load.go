package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// operation is one kind of request.
type operation struct {
	name   string
	status int
	least  int64  // bytes of an answer that can be right
	header string // more header lines, each with its end
	make   func(rng *rand.Rand) (method, path, body string)
}

// operations are read-one, a list as a front page asks for it, create and update.
func operations(a *articles) []operation {
	all := "/api/v1/_/bench/" + a.collection
	list := all + "?limit=20&sort=-publishedAt&filter=" + url.QueryEscape(`{"status":"published","active":true}`)
	var created atomic.Int64
	templates := make([]string, 200)
	for i := range templates {
		record := a.article(i)
		record["slug"] = "@SLUG@"
		data, err := json.Marshal(record)
		if err != nil {
			panic(err) // strings and numbers
		}
		templates[i] = string(data)
	}
	id := func(rng *rand.Rand) string { return all + "/" + a.ids[rng.IntN(len(a.ids))] }
	return []operation{
		{"read-one", http.StatusOK, bodyLength, "", func(rng *rand.Rand) (string, string, string) { return http.MethodGet, id(rng), "" }},
		{"list", http.StatusOK, 20 * bodyLength, "", func(*rand.Rand) (string, string, string) { return http.MethodGet, list, "" }},
		{"create", http.StatusCreated, bodyLength, "", func(rng *rand.Rand) (string, string, string) {
			slug := fmt.Sprintf("new-%d", created.Add(1))
			return http.MethodPost, all, strings.Replace(templates[rng.IntN(len(templates))], "@SLUG@", slug, 1)
		}},
		{"update", http.StatusOK, bodyLength, "", func(rng *rand.Rand) (string, string, string) {
			return http.MethodPut, id(rng), fmt.Sprintf(`{"title":"Updated %d","views":%d}`, rng.IntN(1e9), rng.IntN(1e5))
		}},
	}
}

// load keeps a number of connections busy for a time, each with one request after the other, and checks every answer.
// then, which may be nil, is what the service has to do then; its time counts.
func load(ctx context.Context, s *server, op operation, connections int, duration time.Duration, then func() error) (run, error) {
	before, err := s.usage(ctx)
	if err != nil {
		return run{}, err
	}
	var wg sync.WaitGroup
	took, errs := make([][]time.Duration, connections), make([]error, connections)
	began := time.Now()
	for i := range connections {
		wg.Go(func() { took[i], errs[i] = connection(ctx, s.addr, op, uint64(i), began.Add(duration)) })
	}
	wg.Wait()
	if then != nil {
		if err := then(); err != nil {
			return run{}, err
		}
	}
	elapsed := time.Since(began)
	for _, err := range errs {
		if err != nil {
			return run{}, fmt.Errorf("%s: %w", op.name, err)
		}
	}
	after, err := s.usage(ctx)
	if err != nil {
		return run{}, err
	}
	all := slices.Concat(took...)
	slices.Sort(all)
	at := func(part float64) float64 { return float64(all[int(part*float64(len(all)-1))].Microseconds()) / 1000 }
	return run{
		Op: op.name, Connections: connections, Requests: len(all),
		PerSecond: float64(len(all)) / elapsed.Seconds(), P50: at(0.5), P99: at(0.99),
		CPU: (after.cpuSeconds - before.cpuSeconds) * 1e6 / float64(len(all)),
	}, nil
}

// connection sends requests over one connection until the deadline.
func connection(ctx context.Context, addr string, op operation, seed uint64, deadline time.Time) ([]time.Duration, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // everything has been read
	if err := conn.SetDeadline(deadline.Add(startLimit)); err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(seed, uint64(deadline.UnixNano())))
	answers := bufio.NewReaderSize(conn, 64<<10)
	var took []time.Duration
	for now := time.Now(); (now.Before(deadline) || len(took) == 0) && ctx.Err() == nil; {
		if err := exchange(conn, answers, addr, op, rng); err != nil {
			return nil, err
		}
		done := time.Now()
		took, now = append(took, done.Sub(now)), done
	}
	return took, ctx.Err()
}

// exchange sends one request and reads the answer.
func exchange(conn io.Writer, answers *bufio.Reader, addr string, op operation, rng *rand.Rand) error {
	method, path, body := op.make(rng)
	request := method + " " + path + " HTTP/1.1\r\nHost: " + addr + "\r\nAccept: application/json\r\n" + op.header
	if body != "" {
		request += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	if _, err := io.WriteString(conn, request+"\r\n"+body); err != nil {
		return err
	}
	return check(answers, op)
}

// check reads one answer.
func check(r *bufio.Reader, op operation) error {
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	if resp.StatusCode != op.status {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	n, err := io.Copy(io.Discard, resp.Body)
	if err == nil && n < op.least {
		err = fmt.Errorf("an answer of %d bytes is not what was asked for", n)
	}
	return err
}
