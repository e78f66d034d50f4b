package differ

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
)

// Golden is a case with the answers of a server, to check without one.
type Golden struct {
	Name    string     `bson:"name,omitempty"` // of those that were found and not generated
	Case    Case       `bson:"case"`
	Answers []*Answer  `bson:"answers"`
	After   []bson.Raw `bson:"after"` // the documents at the end, by _id
}

// Record makes golden cases of the named ones and of random ones, config.Ops calls in all. Deliberate differences are
// left out; any other is an error.
func Record(ctx context.Context, config Config, named []Golden) ([]Golden, error) {
	d := newDuel(config, "differ")
	defer d.close()
	if err := d.start(ctx); err != nil {
		return nil, err
	}
	var all []Golden
	for _, g := range named {
		if err := d.record(ctx, &g); err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	for ops, round := 0, uint64(0); ops < config.Ops; round++ {
		g := Golden{Case: *d.generate(round)}
		if err := d.record(ctx, &g); err != nil {
			return nil, err
		}
		ops += len(g.Case.Ops)
		all = append(all, g)
	}
	return all, nil
}

// record asks both sides, and leaves out what differs on purpose.
func (d *duel) record(ctx context.Context, g *Golden) error {
	for {
		o, err := d.both(ctx, &g.Case)
		if err != nil {
			return err
		}
		g.Answers, g.After = o.theirs, o.theirsAfter
		at := -1
		for i := 0; i < len(g.Case.Ops) && at < 0; i++ {
			if o.differs(&g.Case, i) != "" {
				at = i
			}
		}
		if at < 0 {
			if kind := o.differs(&g.Case, len(g.Case.Ops)); kind != "" {
				return fmt.Errorf("%s in %s", kind, &g.Case)
			}
			g.brief()
			return nil
		}
		if s, err := d.lookAt(ctx, &g.Case, at, o); err != nil || s.explanation() == "" && !s.serverDisagrees() {
			return fmt.Errorf("%s: %s and %s in %s", &g.Case.Ops[at], o.ours[at], o.theirs[at], &g.Case)
		}
		g.Case.Ops = slices.Delete(slices.Clone(g.Case.Ops), at, at+1)
	}
}

// brief keeps only the _id of documents that were found as they are.
func (g *Golden) brief() {
	for i, a := range g.Answers {
		g.Answers[i] = a.brief(&g.Case.Ops[i])
	}
}

func (a *Answer) brief(op *Op) *Answer {
	if op.Kind != Find || len(op.Project) > 0 {
		return a
	}
	short := *a
	short.Docs = make([]bson.Raw, len(a.Docs))
	for i, doc := range a.Docs {
		id, err := bson.Marshal(bson.D{{Key: "_id", Value: doc.Lookup("_id")}})
		if err != nil {
			panic(err) // it was in a document
		}
		short.Docs[i] = id
	}
	if len(op.Sort) == 0 {
		slices.SortFunc(short.Docs, slices.Compare)
	}
	return &short
}

// Check runs a golden case on a store, or with nil on package mql alone, and tells of the first difference; "" is none.
func (g *Golden) Check(ctx context.Context, s store.Store) string {
	refuses := func(x Index) bool { return x.refuses() } // package mql alone has no indexes
	if s == nil && slices.ContainsFunc(g.Case.Indexes, refuses) {
		return ""
	}
	local := sideOf(s, "differ")
	if err := local.load(ctx, &g.Case); err != nil {
		return err.Error()
	}
	answers := make([]*Answer, len(g.Case.Ops))
	for i := range g.Case.Ops {
		op := &g.Case.Ops[i]
		if s == nil && op.Kind != Find && op.Kind != Count {
			answers[i] = g.Answers[i]
			continue
		}
		answers[i] = local.run(ctx, op)
	}
	after, err := local.dump(ctx)
	g.Case.settle(answers, after)
	for i, ours := range answers {
		op := &g.Case.Ops[i]
		if kind := difference(ours.brief(op), g.Answers[i]); kind != "" {
			return fmt.Sprintf("%s: %s\nours   %s\ntheirs %s\nin %s", kind, op, ours, g.Answers[i], &g.Case)
		}
	}
	if s == nil || g.Case.halfDone(g.Answers) {
		return ""
	}
	if err != nil || !slices.EqualFunc(after, g.After, equalRaw) {
		return fmt.Sprintf("documents at the end: %v\nours   %s\ntheirs %s\nin %s", err, after, g.After, &g.Case)
	}
	return ""
}

// WriteGolden writes cases for ReadGolden.
func WriteGolden(w io.Writer, cases []Golden) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	for i := range cases {
		b, err := bson.Marshal(&cases[i])
		if err != nil {
			return err
		}
		if _, err := z.Write(b); err != nil {
			return err
		}
	}
	return z.Close()
}

// ReadGolden reads what WriteGolden wrote.
func ReadGolden(r io.Reader) ([]Golden, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(z, 1<<16)
	var cases []Golden
	for {
		size, err := in.Peek(4)
		if errors.Is(err, io.EOF) && len(size) == 0 {
			return cases, nil
		}
		if err != nil {
			return nil, err
		}
		b := make([]byte, binary.LittleEndian.Uint32(size))
		if _, err := io.ReadFull(in, b); err != nil {
			return nil, err
		}
		var g Golden
		if err := bson.Unmarshal(b, &g); err != nil {
			return nil, err
		}
		cases = append(cases, g)
	}
}
