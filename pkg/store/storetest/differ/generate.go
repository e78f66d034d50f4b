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
	if op.After == nil && !hasIndex(op.Sort) && r.IntN(3) == 0 {
		op.Project = mqltest.Projection(r)
		if r.IntN(10) == 0 {
			op.Project = mutate(r, op.Project)
		}
		op.Project = plain(r, op.Project).(bson.D) //nolint:errcheck // it stays one
	}
	return op
}

// hasIndex says whether a path of a sort has an index of a list in it.
func hasIndex(sort bson.D) bool {
	return slices.ContainsFunc(sort, func(e bson.E) bool { return strings.Contains(e.Key, ".0") })
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

// generateWrites makes a case with writes, and the indexes on both sides: they decide what is refused. A write of many
// documents comes last, as which ones it has done before it fails is up to the order of the scan.
func generateWrites(r *rand.Rand) *Case {
	c := &Case{}
	oneList := r.IntN(2) == 0
	for i := range docsPerWrites {
		c.Docs = append(c.Docs, document1(r, int32(i), oneList))
	}
	if r.IntN(3) > 0 { // they take long to make
		for _, x := range indexes(r, oneList) {
			x.Shared = true
			c.Indexes = append(c.Indexes, x)
		}
	}
	for range writesPerCase {
		c.Ops = append(c.Ops, write(r))
	}
	last := write(r)
	if last.Return == "" && last.Kind != Replace && last.Kind != Insert {
		last.Many, last.Upsert, last.Filter = true, false, filter(r)
	}
	c.Ops = append(c.Ops, last)
	return c
}

const (
	docsPerWrites = 12
	writesPerCase = 60
)

// write chooses one document: by its _id, or as the first in a total order.
func write(r *rand.Rand) Op {
	id := int32(r.IntN(docsPerWrites + 4)) // some are free
	op := Op{Kind: [...]string{Insert, Update, Update, Update, Update, Update, Replace, Replace, Delete}[r.IntN(9)]}
	if op.Kind == Insert {
		op.Doc = mqltest.Doc(r, id)
		return op
	}
	op.Filter = bson.D{{Key: "_id", Value: id}}
	if r.IntN(2) == 0 {
		op.Filter = bson.D{{Key: "$and", Value: bson.A{filter(r), op.Filter}}}
	}
	if r.IntN(3) == 0 {
		modify(r, &op)
	}
	op.Upsert = op.Kind != Delete && r.IntN(4) == 0
	switch op.Kind {
	case Update:
		op.Update, op.ArrayFilters = update(r)
		if op.Upsert {
			op.Filter = append(plain(r, mqltest.Upsert(r)).(bson.D), bson.E{Key: "_id", Value: id}) //nolint:errcheck // it stays one
		}
	case Replace:
		op.Doc = mqltest.Doc(r, id)
		if r.IntN(2) == 0 {
			op.Doc = op.Doc[1:]
		}
	}
	return op
}

// modify asks for the document.
func modify(r *rand.Rand, op *Op) {
	op.Return = "before"
	if op.Kind != Delete && r.IntN(2) == 0 {
		op.Return = "after"
	}
	if r.IntN(2) == 0 {
		op.Filter, op.Sort = filter(r), order(r)
	}
	if r.IntN(2) == 0 && !hasIndex(op.Sort) {
		op.Project = plain(r, mqltest.Projection(r)).(bson.D) //nolint:errcheck // it stays one
	}
}

// update has no $currentDate: clocks differ.
func update(r *rand.Rand) (bson.D, []bson.D) {
	for {
		u, filters := mqltest.Update(r)
		if !slices.ContainsFunc(u, func(e bson.E) bool { return e.Key == "$currentDate" }) {
			u = plain(r, u).(bson.D) //nolint:errcheck // it stays one
			for i := range filters {
				filters[i] = plain(r, filters[i]).(bson.D) //nolint:errcheck // as above
			}
			return u, filters
		}
	}
}
