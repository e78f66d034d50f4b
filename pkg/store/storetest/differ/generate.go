package differ

import (
	"math/rand/v2"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql/mqltest"
)

const (
	docsPerCase = 24
	opsPerCase  = 80
)

// generateReads makes a case with some reads of one collection; ofIndexes makes its indexes.
func generateReads(r, ofIndexes *rand.Rand) *Case {
	c := &Case{}
	oneList := ofIndexes.IntN(2) == 0
	for i := range docsPerCase {
		c.Docs = append(c.Docs, document1(r, int32(i), oneList))
	}
	c.Indexes = indexes(ofIndexes)
	for i := range c.Indexes {
		x := &c.Indexes[i]
		// Those that refuse documents have to be on both sides.
		x.Shared = x.refuses()
	}
	for range opsPerCase {
		c.Ops = append(c.Ops, read(r))
	}
	return c
}

// refuses says whether there are documents that an index does not take.
func (x *Index) refuses() bool {
	return x.Unique || len(x.Keys) > 1 || hasPosition(x.Keys) // a.0 is ambiguous where a holds {"0": 1}
}

// document1 makes a document; with oneList, one that every index takes.
func document1(r *rand.Rand, id any, oneList bool) bson.D {
	d := spice(r, mqltest.Doc(r, id), true).(bson.D) //nolint:errcheck // it stays one
	if r.IntN(10) == 0 {
		r.Shuffle(len(d), func(i, j int) { d[i], d[j] = d[j], d[i] }) // the _id comes anywhere
	}
	if oneList {
		d = mqltest.OneList(d)
	}
	return d
}

func indexes(r *rand.Rand) []Index {
	var list []Index
	paths := []string{"a", "b", "c", "a.b", "a.c", "b.c", "a.b.c", "c.b", "_id"}
	for range r.IntN(4) {
		x := Index{}
		switch r.IntN(16) {
		case 0, 1:
			x.Keys = bson.D{{Key: "a.b", Value: direction(r)}, {Key: "a.c", Value: direction(r)}}
		case 2:
			x.Keys = positions(r)
		default:
			for _, i := range r.Perm(len(paths))[:1+r.IntN(2)*r.IntN(3)] {
				x.Keys = append(x.Keys, bson.E{Key: paths[i], Value: direction(r)})
			}
			if x.Keys[0].Key == "_id" { // there is one
				x.Keys[0].Key = "d"
			}
		}
		switch r.IntN(5) {
		case 0:
			x.Sparse = true
		case 1:
			x.Partial = mqltest.PartialFilter(r)
			x.Unique = r.IntN(3) == 0
		case 2:
			x.Unique = true
			x.Sparse = r.IntN(2) == 0
		}
		if !slices.ContainsFunc(list, func(o Index) bool { return slices.Equal(o.Keys, x.Keys) }) {
			list = append(list, x)
		}
	}
	return list
}

// positions are the keys of an index with one that leads through a position of a list, alone or beside others.
func positions(r *rand.Rand) bson.D {
	paths := []string{"a.0", "b.0.c", "a.b.0", "a.1", "a.0.0", "a.0.b", "a.1.0"}
	keys := bson.D{{Key: paths[r.IntN(len(paths))], Value: direction(r)}}
	if r.IntN(2) == 0 {
		return keys
	}
	others := []string{"a.b", "a", "b", "b.c", "a.0", "a.1", "d"}
	if other := others[r.IntN(len(others))]; other != keys[0].Key {
		keys = append(keys, bson.E{Key: other, Value: direction(r)})
		r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	}
	return keys
}

func direction(r *rand.Rand) int32 { return int32(1 - 2*r.IntN(2)) }

func read(r *rand.Rand) Op {
	switch r.IntN(8) {
	case 0:
		return Op{Kind: Count, Filter: filter(r), Limit: max(0, r.Int64N(20)-10)}
	case 1:
		return Op{Kind: Distinct, Filter: filter(r), Path: mqltest.Path(r)}
	default:
		return find(r)
	}
}

func find(r *rand.Rand) Op {
	op := Op{Kind: Find, Filter: filter(r)}
	if r.IntN(8) == 0 { // the page behind a document
		for _, f := range mqltest.Sort(r) {
			op.Sort = append(op.Sort, bson.E{Key: f.Path, Value: sign(f.Desc)})
		}
		op.After = int32(r.IntN(docsPerCase))
	} else if r.IntN(3) > 0 {
		op.Sort = order(r)
	}
	if op.Sort != nil && r.IntN(2) == 0 {
		op.Limit = r.Int64N(20)
		op.Skip = max(0, r.Int64N(16)-8)
	}
	if op.After != nil && r.IntN(4) == 0 {
		op.Project = bson.D{{Key: mqltest.Path(r), Value: r.IntN(2) == 0}} // the page is found by the _id
	}
	if op.After == nil && !hasPosition(op.Sort) && r.IntN(3) == 0 {
		op.Project = mqltest.Projection(r)
		if r.IntN(10) == 0 {
			op.Project = mutate(r, op.Project)
		}
		op.Project = plain(r, op.Project).(bson.D) //nolint:errcheck // it stays one
	}
	return op
}

// hasPosition says whether a path of a sort or an index leads through a position of a list.
func hasPosition(sort bson.D) bool {
	return slices.ContainsFunc(sort, func(e bson.E) bool { return strings.ContainsAny(e.Key, "01") })
}

func sign(desc bool) int32 {
	if desc {
		return -1
	}
	return 1
}

// order is total.
func order(r *rand.Rand) bson.D {
	var s bson.D
	paths := []string{"a", "b", "c", "a.b", "a.c", "b.c", "a.0", "a.b.c", "c.b", "b.0.c"}
	for _, i := range r.Perm(len(paths))[:r.IntN(3)] {
		s = append(s, bson.E{Key: paths[i], Value: direction(r)})
	}
	return append(s, bson.E{Key: "_id", Value: direction(r)})
}

// filter has only patterns that mean the same in RE2 and in the server's PCRE; package mql translates others, which
// storetest.Differential is about.
func filter(r *rand.Rand) bson.D {
	f := mqltest.Filter(r)
	if r.IntN(10) == 0 {
		f = mutate(r, f)
	}
	if r.IntN(200) == 0 {
		f = append(f, bson.E{Key: "d", Value: badText})
	}
	return known(r, f)
}

func known(r *rand.Rand, d bson.D) bson.D {
	return spice(r, plain(r, d), false).(bson.D) //nolint:errcheck // it stays one
}

func plain(r *rand.Rand, v any) any {
	switch v := v.(type) {
	case bson.Regex:
		return bson.Regex{Pattern: pattern(r), Options: v.Options}
	case bson.A:
		out := make(bson.A, len(v))
		for i := range v {
			out[i] = plain(r, v[i])
		}
		return out
	case bson.D:
		out := make(bson.D, len(v))
		for i, e := range v {
			out[i] = bson.E{Key: e.Key, Value: plain(r, e.Value)}
			if _, ok := e.Value.(string); ok && e.Key == "$regex" {
				out[i].Value = pattern(r)
			}
		}
		return out
	default:
		return v
	}
}

func pattern(r *rand.Rand) string {
	pool := []string{"", "a", "^a", "^ab", "b", "^a.b", "[ab]", "^[^a]", "^(?:a|b)", "a+", `^a\z`, "é", `\d`, "^a|^b", "x?", `^\n`}
	return pool[r.IntN(len(pool))]
}
