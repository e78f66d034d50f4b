package differ

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
)

// Config says what Run does.
type Config struct {
	Store store.Store // what is tested; nil: package mql alone, which only reads
	// Start starts a server with nothing in it, and is called again if one has ended.
	Start func(ctx context.Context) (uri string, err error)
	Seed  uint64
	Ops   int // how many to run, about
	// Failures is how many differences end a run.
	Failures int
	// Log is told of what goes on, if it is not nil.
	Log func(format string, args ...any)
}

// Report is what a run came to.
type Report struct {
	Ops     int            // run and compared
	Skipped int            // not compared, as the server went down in the middle
	Allowed map[string]int // deliberate differences, by their id
	Refused int            // refused by both
	Found   []string       // what differs, made small and ready to be read by Parse
}

// String is the report in some lines.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d ops compared, %d of them refused by both, %d skipped, %d differ", r.Ops, r.Refused, r.Skipped, len(r.Found))
	for _, d := range Deliberate() {
		if n := r.Allowed[d.ID]; n > 0 {
			fmt.Fprintf(&b, "\n  %d deliberately: %s", n, d.ID)
		}
	}
	return b.String()
}

// Run compares until Config.Ops are done, Config.Failures have been found, or ctx ends.
func Run(ctx context.Context, config Config) (*Report, error) {
	d := &duel{config: config, local: sideOf(config.Store), report: &Report{Allowed: map[string]int{}}}
	if err := d.start(ctx); err != nil {
		return nil, err
	}
	defer d.server.close()
	for round := uint64(0); d.report.Ops < config.Ops && len(d.report.Found) < max(config.Failures, 1) && ctx.Err() == nil; round++ {
		r := rand.New(rand.NewPCG(config.Seed, round))
		if err := d.round(ctx, d.generate(r)); err != nil {
			return d.report, fmt.Errorf("round %d: %w", round, err)
		}
	}
	return d.report, ctx.Err()
}

// side is one that is compared with the server.
type side interface {
	load(ctx context.Context, c *Case) error
	run(ctx context.Context, op *Op) *Answer
	dump(ctx context.Context) ([]bson.Raw, error)
}

func sideOf(s store.Store) side {
	if s == nil {
		return &reference{}
	}
	return newLocal(s, "differ")
}

// duel is a run.
type duel struct {
	config Config
	local  side
	server *server
	report *Report
}

func (d *duel) start(ctx context.Context) error {
	uri, err := d.config.Start(ctx)
	if err != nil {
		return err
	}
	d.server, err = dial(ctx, uri, "differ")
	return err
}

func (d *duel) log(format string, args ...any) {
	if d.config.Log != nil {
		d.config.Log(format, args...)
	}
}

// outcome is what both sides made of a case.
type outcome struct {
	ours, theirs         []*Answer
	oursAfter, theirsEnd []bson.Raw
	serverErr            error
}

// both runs a case on both sides at once.
func (d *duel) both(ctx context.Context, c *Case) (*outcome, error) {
	o := &outcome{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.theirs, o.theirsEnd, o.serverErr = d.server.run(c)
	}()
	err := d.local.load(ctx, c)
	for i := 0; i < len(c.Ops) && err == nil; i++ {
		o.ours = append(o.ours, d.local.run(ctx, &c.Ops[i]))
	}
	if err == nil {
		o.oursAfter, err = d.local.dump(ctx)
	}
	<-done
	return o, err
}

func (d *duel) round(ctx context.Context, c *Case) error {
	o, err := d.both(ctx, c)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, c)
	}
	if o.serverErr != nil {
		d.log("the server went down: %v in %.2000s", o.serverErr, c)
		d.report.Skipped += len(c.Ops)
		d.server.close()
		return d.start(ctx)
	}
	d.report.Ops += len(c.Ops)
	for i := range c.Ops {
		kind := o.differs(c, i)
		switch {
		case kind == "":
			if o.ours[i].Refused != "" {
				d.report.Refused++
			}
			continue
		case !strings.HasPrefix(kind, "deliberate "):
			d.found(ctx, c, i, kind)
			return nil
		}
		d.report.Allowed[strings.TrimPrefix(kind, "deliberate ")]++
		if c.Ops[i].writes() && kind != "deliberate "+unchanged { // what follows is on other documents
			return nil
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
		if c.halfDone(o.theirs) || slices.EqualFunc(o.oursAfter, o.theirsEnd, equalRaw) {
			return ""
		}
		return "state"
	}
	ours, theirs := o.ours[i].Upserted.Type, o.theirs[i].Upserted.Type
	if ours == bson.TypeObjectID && theirs == ours {
		return "deliberate " + newID
	}
	kind := difference(o.ours[i], o.theirs[i])
	if kind == "" && (o.ours[i].Refused == "" || !c.Ops[i].writes()) {
		return ""
	}
	if kind == "modified" && o.ours[i].Modified < o.theirs[i].Modified {
		return "deliberate " + unchanged
	}
	if id := deliberate(o.ours[i], o.theirs[i]); id != "" {
		return "deliberate " + id
	}
	if kind == "" {
		return ""
	}
	return c.Ops[i].Kind + ": " + kind
}

// shrinkTime is for one difference; trials with indexes take long.
const shrinkTime = 20 * time.Second

// newID is for upserts whose _id each side has made up: nothing behind them can be compared.
const newID = "upsert-new-id"

// unchanged is for writes that change nothing, which are counted otherwise; what follows is compared.
const unchanged = "unchanged-not-modified"

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
	if err == nil && o.serverErr == nil {
		for i := range smallest.Ops {
			fmt.Fprintf(&text, "\n  op     %s\n  ours   %s\n  theirs %s", &smallest.Ops[i], o.ours[i], o.theirs[i])
		}
		fmt.Fprintf(&text, "\n  ours   %s\n  theirs %s", o.oursAfter, o.theirsEnd)
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
	if err != nil || o.serverErr != nil {
		return c
	}
	single := &Case{Indexes: c.Indexes, Ops: c.Ops[at : at+1]}
	for _, raw := range o.theirsEnd {
		var doc bson.D
		if err := bson.Unmarshal(raw, &doc); err != nil {
			return c
		}
		single.Docs = append(single.Docs, doc)
	}
	if d.firstDifference(ctx, single) == kind {
		return single
	}
	before.Ops = c.Ops[:at+1]
	return &before
}

// firstDifference is what a case comes to, for the shrinker.
func (d *duel) firstDifference(ctx context.Context, c *Case) string {
	o, err := d.both(ctx, c)
	if err != nil {
		return ""
	}
	if o.serverErr != nil {
		d.server.close()
		if err := d.start(ctx); err != nil {
			d.log("the server does not start again: %v", err)
		}
		return ""
	}
	for i := range len(c.Ops) + 1 {
		if kind := o.differs(c, i); kind != "" {
			return kind
		}
	}
	return ""
}

func (d *duel) generate(r *rand.Rand) *Case {
	if d.config.Store != nil {
		if r.IntN(2) == 0 {
			return generateWrites(r)
		}
		return generateReads(r)
	}
	c := generateReads(r)
	c.Indexes = nil
	c.Ops = slices.DeleteFunc(c.Ops, func(op Op) bool { return op.Kind != Find && op.Kind != Count })
	return c
}
