package differ

import (
	"math/rand/v2"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql/mqltest"
)

const (
	docsPerCase = 24
	opsPerCase  = 80
)

// Generate makes a case with some reads of one collection.
func generateReads(r *rand.Rand) *Case {
	c := &Case{}
	// An index on several fields takes no document with lists in two of them, and then they differ in what they hold.
	oneList := r.IntN(2) == 0
	for i := range docsPerCase {
		c.Docs = append(c.Docs, document1(r, int32(i), oneList))
	}
	c.Indexes = indexes(r, oneList)
	for range opsPerCase {
		c.Ops = append(c.Ops, read(r))
	}
	return c
}

func document1(r *rand.Rand, id int32, oneList bool) bson.D {
	d := mqltest.Doc(r, id)
	if !oneList {
		return d
	}
	lists := false
	return slices.DeleteFunc(d, func(e bson.E) bool {
		also := lists && hasList(e.Value)
		lists = lists || hasList(e.Value)
		return also
	})
}

func hasList(v any) bool {
	switch v := v.(type) {
	case bson.A:
		return true
	case bson.D:
		return slices.ContainsFunc(v, func(e bson.E) bool { return hasList(e.Value) })
	default:
		return false
	}
}

func indexes(r *rand.Rand, oneList bool) []Index {
	var list []Index
	single := []string{"a", "b", "c", "a.b", "b.c", "a.b.c"}
	for range r.IntN(4) {
		n := 1
		if oneList {
			n += r.IntN(3)
		}
		x := Index{}
		for _, i := range r.Perm(len(single))[:n] {
			x.Keys = append(x.Keys, bson.E{Key: single[i], Value: direction(r)})
		}
		switch r.IntN(5) {
		case 0:
			x.Sparse = true
		case 1:
			x.Partial = mqltest.PartialFilter(r)
		case 2:
			x.Unique, x.Shared = true, true
			x.Sparse = r.IntN(2) == 0
		}
		if !slices.ContainsFunc(list, func(o Index) bool { return slices.Equal(o.Keys, x.Keys) }) {
			list = append(list, x)
		}
	}
	return list
}

func direction(r *rand.Rand) int32 { return int32(1 - 2*r.IntN(2)) } //nolint:gosec // 1 or -1

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
		op.After = int32(r.IntN(docsPerCase)) //nolint:gosec // small
	} else if r.IntN(3) > 0 {
		op.Sort = order(r)
	}
	if op.Sort != nil && r.IntN(2) == 0 {
		op.Limit = r.Int64N(20)
		op.Skip = max(0, r.Int64N(16)-8)
	}
	if op.After == nil && r.IntN(3) == 0 {
		op.Project = mqltest.Projection(r)
		if r.IntN(10) == 0 {
			op.Project = mutate(r, op.Project)
		}
		op.Project = plain(r, op.Project).(bson.D) //nolint:errcheck // it stays one
	}
	return op
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
	return plain(r, f).(bson.D) //nolint:errcheck // it stays one
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
