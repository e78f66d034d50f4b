// Command bench measures the service from outside: it starts svcd on a temporary store with 10,000 articles, loads it
// over keep-alive connections and prints requests per second, latency and the server's CPU time per request, how long a
// cold start takes and what memory it needs at rest. Client and server share the machine.
//
//	make bench
//	STORE_URI=mongodb://… make bench      on a MongoDB that is empty: the databases svc and svc_bench are written
//	BENCHFLAGS='-duration 10s -json out.json' make bench
//
// With -what it measures something else: what each kind of credential costs a read (credentials) and what a flood of garbage
// logins does to the p99 of reads (logins; make bench-login measures both), what one caller's most expensive queries do to it
// (abuse; make bench-abuse), what the audit log costs a write (audit; make bench-audit), what scripts cost creates and lists
// (hooks; make bench-hooks), what many projects take (scale; make bench-scale), searches and what their indexes take (search;
// make bench-search), or how reads grow with the collection and with what they ask for (growth; make bench-growth). Those run by
// turns, and print the medians of the rounds and of what each round gave beside another.
//
// load.go is the load, flood.go that of logins, abuse.go that of queries, compare.go, hooks.go and growth.go what runs by
// turns, scale.go many projects, search.go searches, server.go the process under it, data.go the articles; project/ is what it serves, which bench/peers/svc.py, the side-by-side benchmark, serves too.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

type options struct {
	svcd, project, json string
	what                string
	articles, records   int
	searched            int
	only                string // of search: matches the names of requests that are measured; "": all, and vectors
	duration            time.Duration
}

// report is the result, as -json writes it.
type report struct {
	Version     string    `json:"version"`
	Store       string    `json:"store"` // embedded or mongodb; never its address
	CPUs        int       `json:"cpus"`
	Articles    int       `json:"articles"`
	SeedSeconds float64   `json:"seedSeconds"`
	ColdStartMS []float64 `json:"coldStartMs"` // process start to the first 200 on an article, store existing
	IdleMiB     float64   `json:"idleMiB"`     // resident memory after a start, at rest
	BusyMiB     float64   `json:"busyMiB"`     // resident memory after the load
	Runs        []run     `json:"runs"`
}

// run is one operation at one number of connections.
type run struct {
	Op          string  `json:"op"`
	Connections int     `json:"connections"`
	PerSecond   float64 `json:"requestsPerSecond"`
	P50         float64 `json:"p50Ms"`
	P99         float64 `json:"p99Ms"`
	CPU         float64 `json:"cpuMicrosPerRequest"` // of svcd alone: MongoDB's is not in it
	Requests    int     `json:"requests"`
}

func main() {
	var o options
	flag.StringVar(&o.svcd, "svcd", "bin/svcd", "the program to measure")
	flag.StringVar(&o.project, "project", "bench/project", "the project to serve")
	flag.StringVar(&o.json, "json", "", "write the result as JSON to this file, too")
	flag.IntVar(&o.articles, "articles", 10000, "articles to start with")
	flag.IntVar(&o.records, "records", 1_000_000, "growth, snapshots: records of the largest collection")
	flag.IntVar(&o.searched, "searched", 100_000, "search: records that are searched")
	flag.StringVar(&o.only, "only", "", "search: measure requests whose name this regular expression matches, without vectors")
	flag.DurationVar(&o.duration, "duration", 4*time.Second, "time of each measurement")
	flag.StringVar(&o.what, "what", "service", "what to measure: service, credentials, logins, abuse, audit, hooks, growth, scale, search or snapshots")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	run, ok := map[string]func(context.Context, options) error{
		"service": measure, "credentials": measureCredentials, "logins": measureFloods, "audit": measureAudit, "hooks": measureHooks,
		"growth": measureGrowth, "abuse": measureAbuse, "scale": measureScale, "search": measureSearch, "snapshots": measureSnapshots,
	}[o.what]
	if !ok {
		flag.Usage()
		os.Exit(2)
	}
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, o options) (err error) {
	s, err := newServer(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	r := report{Store: s.store(), CPUs: runtime.NumCPU(), Articles: o.articles}
	if err := s.start(ctx, "/readyz"); err != nil {
		return err
	}
	if r.Version, err = s.version(ctx); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "seeding %d articles …\n", o.articles)
	began := time.Now()
	a, err := seed(ctx, s, o.articles)
	if err != nil {
		return err
	}
	r.SeedSeconds = time.Since(began).Seconds()
	if err := coldStarts(ctx, s, a, &r); err != nil {
		return err
	}
	for _, op := range operations(a) {
		fmt.Fprintf(os.Stderr, "measuring %s …\n", op.name)
		if _, err := load(ctx, s, op, 16, time.Second, nil); err != nil { // warm-up
			return err
		}
		for _, connections := range []int{1, 16, 64} {
			one, err := load(ctx, s, op, connections, o.duration, nil)
			if err != nil {
				return err
			}
			r.Runs = append(r.Runs, one)
		}
	}
	usage, err := s.usage(ctx)
	if err != nil {
		return err
	}
	r.BusyMiB = usage.mib
	if err := s.stop(); err != nil {
		return err
	}
	return errors.Join(r.table(os.Stdout), r.file(o.json))
}

// coldStarts starts the service five times on the seeded store, and leaves it running.
func coldStarts(ctx context.Context, s *server, a *articles, r *report) error {
	for range 5 {
		if err := s.stop(); err != nil {
			return err
		}
		began := time.Now()
		if err := s.start(ctx, articlesPath+"/"+a.ids[0]); err != nil {
			return err
		}
		r.ColdStartMS = append(r.ColdStartMS, float64(time.Since(began).Microseconds())/1000)
	}
	slices.Sort(r.ColdStartMS)
	select { // at rest: what the start has left behind is collected
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(3 * time.Second):
	}
	usage, err := s.usage(ctx)
	r.IdleMiB = usage.mib
	return err
}

func (r *report) table(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "svcd %s, %s store, %d articles, %d CPUs shared with the client\n\n", r.Version, r.Store, r.Articles, r.CPUs)
	rows := tabwriter.NewWriter(&b, 0, 0, 3, ' ', tabwriter.AlignRight)
	var text strings.Builder
	text.WriteString("operation\tconnections\trequests/s\tp50 ms\tp99 ms\tCPU µs/request\t\n")
	for _, x := range r.Runs {
		fmt.Fprintf(&text, "%s\t%d\t%.0f\t%.2f\t%.2f\t%.0f\t\n", x.Op, x.Connections, x.PerSecond, x.P50, x.P99, x.CPU)
	}
	if _, err := io.WriteString(rows, text.String()); err != nil {
		return err
	}
	if err := rows.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(&b, "\ncold start to the first answer   %.0f ms (median of %d)\nmemory at rest                   %.0f MiB\n"+
		"memory after the load            %.0f MiB\nseeding                          %.1f s\n",
		r.ColdStartMS[len(r.ColdStartMS)/2], len(r.ColdStartMS), r.IdleMiB, r.BusyMiB, r.SeedSeconds)
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *report) file(name string) error {
	if name == "" {
		return nil
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(data, '\n'), 0o644)
}
