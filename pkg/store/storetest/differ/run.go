package differ

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
)

// Config says what Run does.
type Config struct {
	Store store.Store // what is tested; nil: package mql alone, which only reads
	// Start starts a server with nothing in it, a member of a replica set. It is called for each worker, and again if a
	// server has ended.
	Start func(ctx context.Context) (uri string, err error)
	Seed  uint64
	Ops   int // how many to compare, or some more
	// Workers is how many compare at once, each with a server; 0: one. The cases are the same.
	Workers int
	// Failures is how many differences end a run, about.
	Failures int
	// Log is told of what goes on, if it is not nil.
	Log func(format string, args ...any)
}

// Report is what a run came to.
type Report struct {
	Ops     int            // compared, and the same on both sides
	Refused int            // of them, refused by both
	Allowed map[string]int // deliberate differences, by their id; not among Ops
	// Disagrees is how many ops a server answers in several ways, of which ours is one (serverDisagrees); not among Ops.
	Disagrees int
	Crashed   int      // rounds not compared to their end, as the server went down
	Found     []string // what differs, made small and ready to be read by Parse
}

// String is the report in some lines.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d ops compared, %d of them refused by both, %d differ; %d rounds given up as the server crashed",
		r.Ops, r.Refused, len(r.Found), r.Crashed)
	fmt.Fprintf(&b, "\n  %d (%.4f %%) not compared, as the server disagrees with itself", r.Disagrees,
		100*float64(r.Disagrees)/float64(max(r.Ops, 1)))
	for _, d := range Deliberate() {
		if n := r.Allowed[d.ID]; n > 0 {
			fmt.Fprintf(&b, "\n  %d deliberately: %s", n, d.ID)
		}
	}
	return b.String()
}

func (r *Report) add(o *Report) {
	r.Ops += o.Ops
	r.Refused += o.Refused
	r.Crashed += o.Crashed
	r.Disagrees += o.Disagrees
	r.Found = append(r.Found, o.Found...)
	for id, n := range o.Allowed {
		r.Allowed[id] += n
	}
}

func newReport() *Report { return &Report{Allowed: map[string]int{}} }

// roundsPerBlock rounds have the same indexes, which take a server long to make.
const roundsPerBlock = 10

// progress is after how many ops a run tells how far it is.
const progress = 50_000

// Run compares until Config.Ops are done, Config.Failures have been found, or ctx ends.
func Run(ctx context.Context, config Config) (*Report, error) {
	var (
		mu     sync.Mutex
		total  = newReport()
		blocks uint64
		wait   sync.WaitGroup
		failed error
	)
	next := func(done *Report, err error) (block uint64, more bool) {
		mu.Lock()
		defer mu.Unlock()
		before := total.Ops
		total.add(done)
		if total.Ops/progress > before/progress && config.Log != nil {
			config.Log("%d compared", total.Ops)
		}
		failed = errors.Join(failed, err)
		blocks++
		return blocks - 1, failed == nil && total.Ops < config.Ops && len(total.Found) < max(config.Failures, 1) && ctx.Err() == nil
	}
	for i := range max(config.Workers, 1) {
		wait.Go(func() {
			d := newDuel(config, fmt.Sprintf("differ%d", i))
			defer d.close()
			err := d.start(ctx)
			for block, more := next(d.report, err); more; block, more = next(d.report, err) {
				d.report = newReport()
				err = d.block(ctx, block)
			}
		})
	}
	wait.Wait()
	return total, errors.Join(failed, ctx.Err())
}

// side is one that is compared with the server.
type side interface {
	load(ctx context.Context, c *Case) error
	run(ctx context.Context, op *Op) *Answer
	dump(ctx context.Context) ([]bson.Raw, error)
}

func sideOf(s store.Store, database string) side {
	if s == nil {
		return &reference{}
	}
	return newLocal(s, database)
}

// duel is the work of one worker.
type duel struct {
	config Config
	local  side
	server *server
	report *Report
}

func newDuel(config Config, database string) *duel {
	return &duel{config: config, local: sideOf(config.Store, database), report: newReport()}
}

func (d *duel) start(ctx context.Context) error {
	uri, err := d.config.Start(ctx)
	if err != nil {
		return err
	}
	d.server, err = dial(ctx, uri, "differ")
	return err
}

func (d *duel) close() {
	if d.server != nil {
		d.server.close()
	}
}

func (d *duel) log(format string, args ...any) {
	if d.config.Log != nil {
		d.config.Log(format, args...)
	}
}

func (d *duel) block(ctx context.Context, block uint64) error {
	for i := range uint64(roundsPerBlock) {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // Run says so
		}
		if err := d.round(ctx, d.generate(block*roundsPerBlock+i)); err != nil {
			return fmt.Errorf("round %d: %w", block*roundsPerBlock+i, err)
		}
	}
	return nil
}

// outcome is what both sides made of a case.
type outcome struct {
	ours, theirs           []*Answer
	oursAfter, theirsAfter []bson.Raw
}

// errCrashed says that the server went down.
var errCrashed = errors.New("the server went down")

// both runs a case on both sides at once.
func (d *duel) both(ctx context.Context, c *Case) (*outcome, error) {
	o := &outcome{}
	done := make(chan error, 1)
	go func() {
		var err error
		o.theirs, o.theirsAfter, err = d.server.run(c)
		done <- err
	}()
	err := d.local.load(ctx, c)
	for i := 0; i < len(c.Ops) && err == nil; i++ {
		o.ours = append(o.ours, d.local.run(ctx, &c.Ops[i]))
	}
	if err == nil {
		o.oursAfter, err = d.local.dump(ctx)
	}
	crash := <-done
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, c)
	}
	if crash != nil {
		d.log("the server went down: %v in %.2000s", crash, c)
		d.server.close()
		if err := d.start(ctx); err != nil {
			return nil, err
		}
		return nil, errCrashed
	}
	c.settle(o.ours, o.oursAfter)
	c.settle(o.theirs, o.theirsAfter)
	return o, nil
}

// round compares a case. Where a write differs on purpose it goes on from the documents of our side.
func (d *duel) round(ctx context.Context, c *Case) error {
	var err error
	for c != nil && err == nil {
		c, err = d.stretch(ctx, c)
	}
	if errors.Is(err, errCrashed) {
		d.report.Crashed++
		return nil
	}
	return err
}

// stretch compares a case up to a write behind which the sides have different documents, and gives what is left then.
func (d *duel) stretch(ctx context.Context, c *Case) (*Case, error) {
	o, err := d.both(ctx, c)
	if err != nil {
		return nil, err
	}
	for i := range c.Ops {
		kind := o.differs(c, i)
		if kind == "" {
			d.report.Ops++
			if o.ours[i].Refused != "" {
				d.report.Refused++
			}
			continue
		}
		s, err := d.lookAt(ctx, c, i, o)
		if err != nil {
			return nil, err
		}
		id := s.explanation()
		if s.err != nil {
			return nil, s.err
		}
		switch {
		case id != "":
			d.report.Allowed[id]++
		case s.serverDisagrees():
			d.report.Disagrees++
			d.log("the server disagrees with itself: %s on %s", s.op, s.c)
		case s.err != nil:
			return nil, s.err
		default:
			d.found(ctx, c, i, kind)
			return nil, nil //nolint:nilnil // nothing is left
		}
		if c.Ops[i].writes() {
			return s.rest(), nil
		}
	}
	return nil, d.end(ctx, c, o)
}

// end compares the documents that there are behind a case: where its last write was done by half, those before that.
func (d *duel) end(ctx context.Context, c *Case, o *outcome) error {
	if c.halfDone(o.theirs) {
		before := *c
		before.Ops = c.Ops[:len(c.Ops)-1]
		c = &before
		var err error
		if o, err = d.both(ctx, c); err != nil {
			return err
		}
	}
	if kind := o.differs(c, len(c.Ops)); kind != "" {
		d.found(ctx, c, len(c.Ops), kind)
	}
	return nil
}

// halfDone says whether the last op is a write of many documents that failed: which ones it had done is up to the order
// of the scan.
func (c *Case) halfDone(answers []*Answer) bool {
	last := len(c.Ops) - 1
	return last >= 0 && c.Ops[last].Many && answers[last].Refused != ""
}

// differs names the difference in an answer, or behind the last one in the documents that there are at the end.
func (o *outcome) differs(c *Case, i int) string {
	if i == len(c.Ops) {
		if c.halfDone(o.theirs) || slices.EqualFunc(o.oursAfter, o.theirsAfter, equalRaw) {
			return ""
		}
		return "state"
	}
	if kind := difference(o.ours[i], o.theirs[i]); kind != "" {
		return c.Ops[i].Kind + ": " + kind
	}
	if c.Ops[i].Return != "" && strings.Contains(o.theirs[i].Detail, writtenFirst) {
		return c.Ops[i].Kind + ": refused when it was written"
	}
	return ""
}

// writtenFirst is in the text of a refusal behind which the server has written.
const writtenFirst = "during findAndModify :: caused by :: positional operator"

// shrinkTime is for one difference; trials with indexes take long.
const shrinkTime = 10 * time.Second

// found makes a case that differs in an op small, and reports it.
func (d *duel) found(ctx context.Context, c *Case, at int, kind string) {
	if at == len(c.Ops) {
		c, at = d.firstOp(ctx, c, kind)
	}
	small := d.alone(ctx, c, at, kind)
	giveUp := time.Now().Add(shrinkTime)
	smallest := shrink(small, func(c *Case) bool { return time.Now().Before(giveUp) && d.firstDifference(ctx, c) == kind })
	o, err := d.both(ctx, smallest)
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n  case   %s", kind, smallest)
	if err == nil {
		for i := range smallest.Ops {
			fmt.Fprintf(&text, "\n  op     %s\n  ours   %s\n  theirs %s", &smallest.Ops[i], o.ours[i], o.theirs[i])
		}
		fmt.Fprintf(&text, "\n  ours   %s\n  theirs %s", o.oursAfter, o.theirsAfter)
	}
	d.log("%s", &text)
	d.report.Found = append(d.report.Found, text.String())
}

// firstOp finds the op behind which the documents differ.
func (d *duel) firstOp(ctx context.Context, c *Case, kind string) (*Case, int) {
	lo, n := 0, len(c.Ops)
	for lo < n {
		shorter, mid := *c, (lo+n)/2
		shorter.Ops = c.Ops[:mid]
		if d.firstDifference(ctx, &shorter) == kind {
			n = mid
		} else {
			lo = mid + 1
		}
	}
	shorter := *c
	shorter.Ops = c.Ops[:n]
	return &shorter, max(n-1, 0)
}

// alone is the op that differs on the documents that the server had before it, if it differs there, too.
func (d *duel) alone(ctx context.Context, c *Case, at int, kind string) *Case {
	before := *c
	before.Ops = c.Ops[:at]
	o, err := d.both(ctx, &before)
	if err != nil {
		return c
	}
	single := &Case{Docs: documents(o.theirsAfter), Indexes: c.Indexes, Ops: c.Ops[at : at+1]}
	if d.firstDifference(ctx, single) == kind {
		return single
	}
	before.Ops = c.Ops[:at+1]
	return &before
}

func documents(list []bson.Raw) []bson.D {
	docs := make([]bson.D, len(list))
	for i, raw := range list {
		if err := bson.Unmarshal(raw, &docs[i]); err != nil {
			panic(err) // a store gave it
		}
	}
	return docs
}

// firstDifference is what a case comes to that is not on purpose, for the shrinker.
func (d *duel) firstDifference(ctx context.Context, c *Case) string {
	o, err := d.both(ctx, c)
	if err != nil {
		return ""
	}
	for i := range len(c.Ops) + 1 {
		kind := o.differs(c, i)
		if kind == "" {
			continue
		}
		if i < len(c.Ops) {
			if s, err := d.lookAt(ctx, c, i, o); err != nil || s.explanation() != "" || s.serverDisagrees() {
				return ""
			}
		}
		return kind
	}
	return ""
}

// generate makes the case of a round: the same in every run with the same seed.
func (d *duel) generate(round uint64) *Case {
	r := rand.New(rand.NewPCG(d.config.Seed, round))
	ofBlock := rand.New(rand.NewPCG(^d.config.Seed, round/roundsPerBlock))
	c := generateAny(r, ofBlock, d.config.Store != nil)
	if r.IntN(4) == 0 {
		theme(r, c)
	}
	if d.config.Store != nil {
		return c
	}
	c.Indexes = nil
	c.Ops = slices.DeleteFunc(c.Ops, func(op Op) bool { return op.Kind != Find && op.Kind != Count })
	return c
}

func generateAny(r, ofBlock *rand.Rand, writes bool) *Case {
	if writes && r.IntN(2) == 0 {
		return generateWrites(r, ofBlock)
	}
	return generateReads(r, ofBlock)
}
