package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// engine is a store under measurement. Writes return when they are durable. Methods are safe for concurrent use.
type engine interface {
	// load puts documents in and makes the three indexes.
	load(ctx context.Context, docs []article) error
	get(ctx context.Context, id bson.ObjectID) error
	// page appends as JSON the 50 documents of a kind that were made last.
	page(ctx context.Context, kind string, dst []byte) ([]byte, error)
	// fetch reads the documents whose field (seq or rnd) is from lo to before hi, in its order, up to limit.
	fetch(ctx context.Context, field string, lo, hi int64, limit int) (int, error)
	// scan looks at every document for those with a status and at least a score.
	scan(ctx context.Context, status string, score float64) (int, error)
	// count counts the documents whose seq is from lo to before hi.
	count(ctx context.Context, lo, hi int64) (int, error)
	// top gives the 20 documents of the highest score.
	top(ctx context.Context) (int, error)
	insert(ctx context.Context, a article) error
	// update sets rnd of one document.
	update(ctx context.Context, id bson.ObjectID, rnd int64) error
	// build makes an index on score and takes it away again; only the making is timed, by the caller's done.
	build(ctx context.Context, done func()) error
	// backup makes a copy that is one point in time.
	backup(ctx context.Context, dir string) error
	close() error
}

// aggregator is an engine that has pipelines.
type aggregator interface {
	// group counts the documents of each kind and adds up their scores.
	group(ctx context.Context) (int, error)
	// lookup joins documents, whose seq is from lo to before hi, with the one that each of them names, and counts those.
	lookup(ctx context.Context, lo, hi int64) (int, error)
	// facet counts all documents by status, by tag and by kind at once, with a pipeline.
	facet(ctx context.Context) (int, error)
	// values does it as the API does for its facets.
	values(ctx context.Context) (int, error)
}

const lookupName = "$lookup of 10,000 by _id"

// statuses is how many different values of status there are.
const statuses = 3

// lookups is how many documents one lookup is measured with.
const lookups = 10_000

// groupStages counts the documents of each kind and adds up their scores.
func groupStages() bson.A {
	return bson.A{bson.D{{Key: "$group", Value: bson.D{
		{Key: "_id", Value: "$kind"}, {Key: "n", Value: bson.D{{Key: "$sum", Value: 1}}}, {Key: "score", Value: bson.D{{Key: "$sum", Value: "$score"}}},
	}}}}
}

// lookupStages joins by the _id: ref is that of another document.
func lookupStages(lo, hi int64) bson.A {
	return bson.A{
		bson.D{{Key: "$match", Value: bson.D{{Key: "seq", Value: bson.D{{Key: "$gte", Value: lo}, {Key: "$lt", Value: hi}}}}}},
		bson.D{{Key: "$lookup", Value: bson.D{
			{Key: "from", Value: "articles"}, {Key: "localField", Value: "ref"}, {Key: "foreignField", Value: "_id"}, {Key: "as", Value: "to"},
		}}},
		bson.D{{Key: "$group", Value: bson.D{
			{Key: "_id", Value: nil}, {Key: "n", Value: bson.D{{Key: "$sum", Value: bson.D{{Key: "$size", Value: "$to"}}}}},
		}}},
	}
}

func facetStages() bson.A {
	return bson.A{bson.D{{Key: "$facet", Value: bson.D{
		{Key: "status", Value: bson.A{bson.D{{Key: "$sortByCount", Value: "$status"}}}},
		{Key: "tags", Value: bson.A{bson.D{{Key: "$unwind", Value: "$tags"}}, bson.D{{Key: "$sortByCount", Value: "$tags"}}}},
		{Key: "kind", Value: bson.A{bson.D{{Key: "$sortByCount", Value: "$kind"}}}},
	}}}}
}

// figure is one measured number.
type figure struct {
	Op     string  `json:"op"`
	P50    float64 `json:"p50,omitempty"`    // microseconds
	Rate   float64 `json:"rate,omitempty"`   // per second
	Max    float64 `json:"max,omitempty"`    // microseconds
	CPU    float64 `json:"cpu,omitempty"`    // microseconds of this process for one operation, which says more on a busy machine
	Target string  `json:"target,omitempty"` // of the embedded store, from the design
}

// bench measures one engine.
type bench struct {
	engine  engine
	docs    []article
	seconds float64 // for each operation
	only    *regexp.Regexp
	profile string
	figures []figure
	next    int // sequence number of the next insert
}

// read is an operation to measure, which gives want results.
type read struct {
	name, target string
	want         int
	run          func() (int, error)
}

func (b *bench) run(ctx context.Context) error {
	n := int64(len(b.docs))
	r := rand.New(rand.NewPCG(2, 3)) //nolint:gosec // test data
	var json []byte
	reads := []read{
		{"get by id", "5 µs", 1, func() (int, error) { return 1, b.engine.get(ctx, b.docs[r.IntN(len(b.docs))].ID) }},
		{"list 50 by index to JSON", "200 µs", 50, func() (int, error) {
			var err error
			json, err = b.engine.page(ctx, fmt.Sprintf("kind-%03d", r.IntN(kinds)), json[:0])
			return 50, err
		}},
		{"index to 1,000 correlated", "600 µs", 1000, func() (int, error) {
			lo := r.Int64N(n - 1000)
			return b.engine.fetch(ctx, "seq", lo, lo+1000, 1000)
		}},
		{"index to 1,000 random", "3 ms", 1000, func() (int, error) {
			return b.engine.fetch(ctx, "rnd", r.Int64N(1<<39), 1<<40, 1000)
		}},
		{"scan of all, 2 predicates", "70 ms", 0, func() (int, error) { return b.engine.scan(ctx, "draft", 0.9) }},
		{"count of all by bounds", "6 ms", len(b.docs), func() (int, error) { return b.engine.count(ctx, 0, n) }},
		{"top 20, unindexed", "110 ms", 20, func() (int, error) { return b.engine.top(ctx) }},
	}
	if a, ok := b.engine.(aggregator); ok {
		reads = append(reads, []read{
			{"$group by one key", "150 ms", kinds, func() (int, error) { return a.group(ctx) }},
			{lookupName, "", lookups, func() (int, error) {
				lo := r.Int64N(max(n-lookups, 1))
				return a.lookup(ctx, lo, lo+lookups)
			}},
			{"facet over 3 fields", "150 ms", statuses, func() (int, error) { return a.facet(ctx) }},
			{"facet of the API", "150 ms", statuses, func() (int, error) { return a.values(ctx) }},
		}...)
	}
	for _, op := range reads {
		if !b.only.MatchString(op.name) {
			continue
		}
		f, err := b.repeat(op.name, func() error {
			got, err := op.run()
			if err == nil && op.want > 0 && got != op.want {
				err = fmt.Errorf("gave %d, want %d", got, op.want)
			}
			return err
		})
		if err != nil {
			return err
		}
		f.Target = op.target
		b.figures = append(b.figures, f)
		if op.name == lookupName {
			b.figures = append(b.figures, figure{Op: "a key of it", P50: f.P50 / lookups, Target: "4 µs"})
		}
	}
	return b.writes(ctx)
}

func (b *bench) writes(ctx context.Context) error {
	b.next = len(b.docs)
	var mu sync.Mutex
	var fresh []article
	take := func() article {
		mu.Lock()
		defer mu.Unlock()
		if len(fresh) == 0 {
			fresh = articles(b.next, 10_000)
			b.next += len(fresh)
		}
		a := fresh[0]
		fresh = fresh[1:]
		return a
	}
	update := func() error {
		return b.engine.update(ctx, b.docs[rand.IntN(len(b.docs))].ID, rand.Int64N(1<<40)) //nolint:gosec // test data
	}
	for _, op := range []struct {
		name, target string
		writers      int
		run          func() error
	}{
		{"insert, 1 writer", "400 µs", 1, func() error { return b.engine.insert(ctx, take()) }},
		{"insert, 64 writers", "15,000/s", 64, func() error { return b.engine.insert(ctx, take()) }},
		{"update, 1 writer", "450 µs", 1, update},
		{"update, 64 writers", "", 64, update},
	} {
		if !b.only.MatchString(op.name) {
			continue
		}
		f, err := b.together(op.name, op.writers, op.run)
		if err != nil {
			return err
		}
		f.Target = op.target
		b.figures = append(b.figures, f)
	}
	if !b.only.MatchString("index build") {
		return nil
	}
	return b.builds(ctx, update)
}

// builds measures the making of an index, then again beside a writer, whose slowest write counts.
func (b *bench) builds(ctx context.Context, write func() error) error {
	var took time.Duration
	timed := func() (err error) {
		start := time.Now()
		return b.engine.build(ctx, func() { took = time.Since(start) })
	}
	if err := timed(); err != nil {
		return fmt.Errorf("index build: %w", err)
	}
	b.figures = append(b.figures, figure{Op: "index build", P50: micros(took), Target: "1.5 s"})

	stop, done := make(chan struct{}), make(chan error, 1)
	var slowest time.Duration
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			start := time.Now()
			if err := write(); err != nil {
				done <- err
				return
			}
			slowest = max(slowest, time.Since(start))
		}
	}()
	err := timed()
	close(stop)
	if err := errors.Join(err, <-done); err != nil {
		return fmt.Errorf("index build beside a writer: %w", err)
	}
	b.figures = append(b.figures, figure{Op: "slowest write beside it", P50: micros(slowest), Target: "10 ms"})
	return nil
}

// repeat runs op again and again for a while, once at least after a warm-up.
func (b *bench) repeat(name string, op func() error) (figure, error) {
	warm := time.Now()
	for i := 0; i < 200 && (i == 0 || time.Since(warm).Seconds() < b.seconds/4); i++ {
		if err := op(); err != nil {
			return figure{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	return b.together(name, 1, op)
}

// together runs op on several goroutines for a while.
func (b *bench) together(name string, goroutines int, op func() error) (_ figure, err error) {
	stop, err := b.startProfile(name)
	if err != nil {
		return figure{}, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	end := time.Now().Add(time.Duration(b.seconds * float64(time.Second)))
	took := make([][]time.Duration, goroutines)
	failed := make([]error, goroutines)
	start, used := time.Now(), cpuTime()
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for last := time.Now(); last.Before(end); {
				if failed[g] = op(); failed[g] != nil {
					return
				}
				now := time.Now()
				took[g] = append(took[g], now.Sub(last))
				last = now
			}
		})
	}
	wg.Wait()
	elapsed, used := time.Since(start), cpuTime()-used
	if err := errors.Join(failed...); err != nil {
		return figure{}, fmt.Errorf("%s: %w", name, err)
	}
	all := slices.Concat(took...)
	slices.Sort(all)
	return figure{
		Op: name, P50: micros(all[len(all)/2]), Max: micros(all[len(all)-1]),
		Rate: float64(len(all)) / elapsed.Seconds(), CPU: micros(used) / float64(len(all)),
	}, nil
}

// cpuTime is what this process has used so far, on all cores.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// startProfile begins the CPU profile of an operation, if profiles are wanted.
func (b *bench) startProfile(name string) (stop func() error, err error) {
	if b.profile == "" {
		return func() error { return nil }, nil
	}
	name = strings.NewReplacer(" ", "-", ",", "").Replace(fmt.Sprintf("%T-%s.prof", b.engine, name)[len("*main."):])
	f, err := os.Create(filepath.Join(b.profile, name))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
