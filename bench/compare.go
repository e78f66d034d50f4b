package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

const (
	benchUser       = "ann"
	benchPassword   = "bench-password-of-no-worth-0000"
	collectionToken = "bench-collection-token-of-no-worth-0000" // of project/public.yaml
	readRounds      = 64
	writeRounds     = 15
	connections     = 16
)

// measureCredentials compares reads with each kind of credential with the same reads without one.
func measureCredentials(ctx context.Context, o options) (err error) {
	s, a, err := seeded(ctx, o, 2000)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	credentials, err := s.credentials(ctx)
	if err != nil {
		return err
	}
	for _, read := range operations(a)[:2] {
		var ops []operation
		for _, c := range credentials {
			op := read
			op.name, op.header = read.name+", "+c[0], c[1]
			ops = append(ops, op)
		}
		runs, err := compare(ctx, s, ops, readRounds, o.duration/16, nil)
		if err != nil {
			return err
		}
		var w strings.Builder
		w.WriteString("\tCPU µs/request\tmore (target: 15 %)\tp50 ms\tmore\t\n")
		for i, op := range ops {
			cpu, p50 := column(runs[i], cpuOf), column(runs[i], p50Of)
			fmt.Fprintf(&w, "%s\t%.1f\t%+.1f %%\t%.3f\t%+.1f %%\t\n", op.name,
				median(cpu), (median(ratios(cpu, column(runs[0], cpuOf)))-1)*100,
				median(p50), (median(ratios(p50, column(runs[0], p50Of)))-1)*100)
		}
		if err := printTable(w.String() + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// credentials gives a header line for each kind of credential, with its name; first comes none.
func (s *server) credentials(ctx context.Context) ([][2]string, error) {
	const scope = "namespace.bench"
	user := map[string]any{"username": benchUser, "password": benchPassword, "scopes": []string{scope}}
	if err := s.want(ctx, http.MethodPost, "/api/v1/user", user, http.StatusCreated, nil); err != nil {
		return nil, err
	}
	var session, pat struct {
		Token string `json:"token"`
	}
	if err := s.want(ctx, http.MethodPost, "/api/v1/login", map[string]any{"username": benchUser, "password": benchPassword}, http.StatusOK, &session); err != nil {
		return nil, err
	}
	token := map[string]any{"name": "bench", "scopes": []string{scope}}
	if err := s.wantAs(ctx, "X-Auth-Token: "+session.Token, http.MethodPost, "/api/v1/token", token, http.StatusCreated, &pat); err != nil {
		return nil, err
	}
	return [][2]string{
		{"no credential", ""},
		{"session", "X-Auth-Token: " + session.Token + "\r\n"},
		{"session cookie", "Cookie: svc_session=" + session.Token + "\r\n"},
		{"personal access token", "Authorization: Bearer " + pat.Token + "\r\n"},
		{"collection token", "Token: " + collectionToken + "\r\n"},
	}, nil
}

// measureAudit compares writes that are logged with writes that are not. The time in which entries are sealed counts
// for the writes that made them.
func measureAudit(ctx context.Context, o options) (err error) {
	s, a, err := seeded(ctx, o, 2000)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	ids, err := a.fill(ctx, s, "audited", 2000, a.article)
	if err != nil {
		return err
	}
	logged := *a
	logged.collection, logged.ids = "audited", ids
	for i, write := range operations(a)[2:] {
		audited := operations(&logged)[2+i]
		audited.name += ", logged"
		runs, err := compare(ctx, s, []operation{write, audited}, writeRounds, o.duration/2, func() error { return s.sealed(ctx) })
		if err != nil {
			return err
		}
		var w strings.Builder
		w.WriteString("\trequests/s\ttimes\tp50 ms\ttimes\tp99 ms\ttimes\tCPU µs/request\ttimes\t\n")
		for i, op := range []operation{write, audited} {
			w.WriteString(op.name)
			for _, of := range []func(run) float64{perSecondOf, p50Of, p99Of, cpuOf} {
				values := column(runs[i], of)
				fmt.Fprintf(&w, "\t%.2f\t%.2f", median(values), median(ratios(values, column(runs[0], of))))
			}
			w.WriteString("\t\n")
		}
		if err := printTable(w.String() + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// sealed waits until the newest entry of the audit log has its place.
func (s *server) sealed(ctx context.Context) error {
	for {
		var page struct {
			Items []struct {
				Seq int64 `json:"seq"`
			} `json:"items"`
		}
		if err := s.want(ctx, http.MethodGet, "/api/v1/_/bench/_/audit?limit=1", nil, http.StatusOK, &page); err != nil {
			return err
		}
		if len(page.Items) == 0 || page.Items[0].Seq > 0 {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
}

// compare runs operations by turns, for a machine has other things to do, now more and now less. The runs of one
// operation are a row. after comes after each run, which it belongs to.
func compare(ctx context.Context, s *server, ops []operation, rounds int, duration time.Duration, after func() error) ([][]run, error) {
	runs := make([][]run, len(ops))
	for round := range rounds + 1 {
		for i := range ops {
			i = (i + round) % len(ops) // nobody is always behind the same
			one, err := load(ctx, s, ops[i], connections, duration, after)
			if err != nil {
				return nil, err
			}
			if round > 0 { // the first is a warm-up
				runs[i] = append(runs[i], one)
			}
		}
	}
	return runs, nil
}

func perSecondOf(r run) float64 { return r.PerSecond }
func p50Of(r run) float64       { return r.P50 }
func p99Of(r run) float64       { return r.P99 }
func cpuOf(r run) float64       { return r.CPU }

func column(runs []run, of func(run) float64) []float64 {
	values := make([]float64, len(runs))
	for i, r := range runs {
		values[i] = of(r)
	}
	return values
}

func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}

// ratios holds each value against the one of the same round.
func ratios(values, of []float64) []float64 {
	out := make([]float64, len(values))
	for i := range values {
		out[i] = values[i] / of[i]
	}
	return out
}

// printTable aligns the columns of a text, which tabs end.
func printTable(text string) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	if _, err := io.WriteString(w, text); err != nil {
		return err
	}
	return w.Flush()
}
