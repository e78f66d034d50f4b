package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const crashWrites = 20_000 // documents that are written before the process that wrote them is killed

// errNotApplicable is for what an engine doesn't do.
var errNotApplicable = errors.New("not applicable")

type settings struct {
	engine  string
	dir     string
	docs    int
	seconds float64
	crash   bool
	only    *regexp.Regexp // which operations to measure; the others are left out
	profile string         // a directory for CPU profiles
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o settings
	flag.StringVar(&o.engine, "engine", "", "measure one engine and print its figures as JSON")
	flag.StringVar(&o.dir, "dir", "", "directory for the data (default: a temporary one)")
	flag.IntVar(&o.docs, "docs", 100_000, "documents")
	flag.Float64Var(&o.seconds, "seconds", 3, "seconds for each operation")
	flag.BoolVar(&o.crash, "crash", false, "write to the engine and die")
	only := flag.String("only", "", "measure only operations whose name matches this regular expression; files is memory, checkpoint and open")
	flag.StringVar(&o.profile, "profile", "", "write a CPU profile of each operation to this directory")
	engines := flag.String("engines", "embedded,pebble,sqlite,mongod", "engines to measure, in this order")
	flag.Parse()
	err := func() (err error) {
		if o.only, err = regexp.Compile(*only); err != nil {
			return err
		}
		switch {
		case o.crash:
			return crash(ctx, o)
		case o.engine != "":
			return measure(ctx, o)
		default:
			return compare(ctx, o, strings.Split(*engines, ","))
		}
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-store:", err)
		os.Exit(1)
	}
}

func open(ctx context.Context, name, dir string) (engine, error) {
	switch name {
	case "embedded":
		return openEmbedded(ctx, dir)
	case "pebble":
		return openPebble(dir)
	case "sqlite":
		return openSQLite(ctx, dir)
	case "mongod":
		return openMongod(ctx)
	default:
		return nil, fmt.Errorf("there is no engine %q: embedded, pebble, sqlite and mongod are known", name)
	}
}

// measure is one engine in this process.
func measure(ctx context.Context, o settings) error {
	e, err := open(ctx, o.engine, o.dir)
	if err != nil {
		return err
	}
	b := &bench{engine: e, docs: articles(0, o.docs), seconds: o.seconds, only: o.only, profile: o.profile}
	start := time.Now()
	if err := e.load(ctx, b.docs); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	b.figures = append(b.figures, figure{Op: "load with 3 indexes", P50: micros(time.Since(start))})
	if err := b.run(ctx); err != nil {
		return err
	}
	if o.engine != "mongod" && o.only.MatchString("files") {
		if err := b.files(ctx, o); err != nil {
			return err
		}
	} else if err := e.close(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(b.figures)
}

// files measures what has to do with an engine's own files, and with this process. It closes the engine.
func (b *bench) files(ctx context.Context, o settings) error {
	allocs, err := b.allocations(ctx)
	if err != nil {
		return err
	}
	b.figures = append(b.figures, figure{Op: "allocations per document scanned", Rate: allocs, Target: "0"})
	b.docs = nil
	debug.FreeOSMemory()
	b.figures = append(b.figures, figure{Op: "memory, hot", Rate: resident(), Target: "200 MiB"})

	start := time.Now()
	if err := b.engine.backup(ctx, filepath.Join(o.dir, "copy")); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	b.figures = append(b.figures, figure{Op: "checkpoint", P50: micros(time.Since(start)), Target: "50 ms"})
	if err := b.engine.close(); err != nil {
		return err
	}
	if err := b.reopen(ctx, o, "open, clean", "50 ms"); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	// It kills itself, so it always fails.
	_ = exec.CommandContext(ctx, self, "-engine", o.engine, "-dir", o.dir, "-crash").Run()
	return b.reopen(ctx, o, "open after kill -9", "500 ms")
}

func (b *bench) reopen(ctx context.Context, o settings, name, target string) error {
	start := time.Now()
	e, err := open(ctx, o.engine, o.dir)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := e.get(ctx, objectID(1)); err != nil {
		return fmt.Errorf("%s: %w", name, errors.Join(err, e.close()))
	}
	b.figures = append(b.figures, figure{Op: name, P50: micros(time.Since(start)), Target: target})
	return e.close()
}

// allocations gives how often a scan allocates for each document it looks at.
func (b *bench) allocations(ctx context.Context) (float64, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := b.engine.scan(ctx, "draft", 0)
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(len(b.docs)), err
}

// crash writes documents that an earlier process has not, and dies of SIGKILL in the middle of it.
func crash(ctx context.Context, o settings) error {
	e, err := open(ctx, o.engine, o.dir)
	if err != nil {
		return err
	}
	const far = 1 << 30 // behind what was inserted before
	docs := articles(far, crashWrites)
	done := make(chan error, 64)
	for w := range cap(done) {
		go func() {
			for i := w; i < len(docs); i += cap(done) {
				if err := e.insert(ctx, docs[i]); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			return err
		}
	}
	return syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

// resident is this process' memory in MiB.
func resident() float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(status) {
		if fields := bytes.Fields(line); len(fields) > 1 && string(fields[0]) == "VmRSS:" {
			kib, _ := strconv.ParseFloat(string(fields[1]), 64)
			return kib / 1024
		}
	}
	return 0
}

// compare measures each engine in a process of its own and prints them side by side.
func compare(ctx context.Context, o settings, engines []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	results := map[string]map[string]figure{}
	var order []figure
	for _, name := range engines {
		fmt.Fprintf(os.Stderr, "measuring %s …\n", name)
		dir, err := os.MkdirTemp(o.dir, "bench-store-")
		if err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, self, "-engine", name, "-dir", dir, "-docs", strconv.Itoa(o.docs),
			"-seconds", strconv.FormatFloat(o.seconds, 'f', -1, 64), "-only", o.only.String(), "-profile", o.profile)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		var figures []figure
		if err := json.Unmarshal(out, &figures); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		results[name] = map[string]figure{}
		for _, f := range figures {
			results[name][f.Op] = f
			if !slices.ContainsFunc(order, func(g figure) bool { return g.Op == f.Op }) {
				order = append(order, f)
			}
		}
	}
	sync, err := syncTime(o.dir)
	if err != nil {
		return err
	}
	doc := articles(0, 1)[0].raw
	fmt.Printf("%d documents of %d bytes, %d cores, fdatasync of 4 KiB %s (median)\n\n", o.docs, len(doc), runtime.NumCPU(), show(micros(sync)))
	print(order, engines, results)
	return nil
}

func print(order []figure, engines []string, results map[string]map[string]figure) {
	header := []string{"", "target"}
	for _, e := range engines {
		header = append(header, e)
		if e != engines[0] {
			header = append(header, "ratio")
		}
	}
	fmt.Println("| " + strings.Join(header, " | ") + " |")
	fmt.Println("|" + strings.Repeat("---|", len(header)))
	for _, f := range order {
		row := []string{f.Op, f.Target}
		first := results[engines[0]][f.Op]
		for i, e := range engines {
			g, ok := results[e][f.Op]
			row = append(row, cell(g, ok))
			if i > 0 {
				row = append(row, ratio(first, g, ok))
			}
		}
		fmt.Println("| " + strings.Join(row, " | ") + " |")
	}
	fmt.Printf("\nTimes are medians. The ratio is how many times as long the other takes (of memory and allocations: as much).\n")
}

func cell(f figure, ok bool) string {
	switch {
	case !ok:
		return "–"
	case f.P50 == 0:
		return strconv.FormatFloat(f.Rate, 'f', 1, 64)
	case strings.HasSuffix(f.Op, "writers"):
		return fmt.Sprintf("%s, %.0f/s", show(f.P50), f.Rate)
	default:
		return show(f.P50)
	}
}

func ratio(first, other figure, ok bool) string {
	a, b := first.P50, other.P50
	if a == 0 {
		a, b = first.Rate, other.Rate
	}
	if !ok || a == 0 {
		return ""
	}
	return strconv.FormatFloat(b/a, 'f', 1, 64) + "×"
}

func show(us float64) string {
	switch {
	case us >= 1e6:
		return fmt.Sprintf("%.2f s", us/1e6)
	case us >= 1000:
		return fmt.Sprintf("%.3g ms", us/1000)
	default:
		return fmt.Sprintf("%.3g µs", us)
	}
}

// syncTime is the median time that the disk takes to make a small write durable.
func syncTime(dir string) (time.Duration, error) {
	f, err := os.CreateTemp(dir, "bench-sync-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // in a temporary directory
	block := make([]byte, 4096)
	var took []time.Duration
	for range 200 {
		start := time.Now()
		_, err := f.Write(block)
		if err := errors.Join(err, syscall.Fdatasync(int(f.Fd()))); err != nil {
			return 0, errors.Join(err, f.Close())
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took[len(took)/2], f.Close()
}
