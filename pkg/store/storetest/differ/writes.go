package differ

import (
	"math/rand/v2"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql/mqltest"
)

const (
	docsPerWrites = 12
	writesPerCase = 60
)

// generateWrites makes a case with writes, and the indexes on both sides: they decide what is refused. What leaves
// documents that can't be compared to the end comes last: a write of many documents, as which ones it has done before
// it fails is up to the order of the scan; and the current date.
func generateWrites(r, ofIndexes *rand.Rand) *Case {
	c := &Case{}
	oneList := ofIndexes.IntN(2) == 0
	for i := range docsPerWrites {
		d := document1(r, int32(i), oneList)
		if r.IntN(3) == 0 {
			if d = withLists(r, d); oneList {
				d = mqltest.OneList(d)
			}
		}
		c.Docs = append(c.Docs, d)
	}
	for _, x := range indexes(ofIndexes) {
		x.Shared = true
		c.Indexes = append(c.Indexes, x)
	}
	for range writesPerCase {
		if r.IntN(12) == 0 {
			c.Ops = append(c.Ops, together(r))
		} else {
			c.Ops = append(c.Ops, write(r))
		}
	}
	last := write(r)
	switch {
	case r.IntN(3) == 0:
		last = Op{Kind: Update, Filter: last.Filter, ID: last.ID, If: last.If, Upsert: last.ID == nil && r.IntN(4) == 0}
		last.Update, last.ArrayFilters = update(r, true)
		if last.ID == nil { // one document, whichever order they are in
			last.Filter = bson.D{{Key: "_id", Value: int32(r.IntN(docsPerWrites))}}
		}
	case last.ID == nil && last.Return == "" && last.Kind != Replace && last.Kind != Insert:
		last.Many, last.Upsert, last.Filter = true, false, filter(r)
	}
	c.Ops = append(c.Ops, last)
	return c
}

// write chooses one document: by its _id, or as the first in a total order.
func write(r *rand.Rand) Op {
	id := int32(r.IntN(docsPerWrites + 4)) // some are free
	op := Op{Kind: [...]string{Insert, Update, Update, Update, Update, Update, Replace, Replace, Delete}[r.IntN(9)]}
	if op.Kind == Insert {
		op.Doc = document1(r, sameNumber(r, id), false)
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
		change(r, &op, id)
	case Replace:
		op.Doc = document1(r, id, false)
		if r.IntN(2) == 0 {
			op.Doc = slices.DeleteFunc(op.Doc, func(e bson.E) bool { return e.Key == "_id" })
		}
	}
	if r.IntN(4) == 0 {
		byID(r, &op, id)
	}
	if op.Kind == Replace && r.IntN(100) == 0 {
		op.Doc = append(op.Doc, bson.E{Key: "d", Value: badText})
	}
	return op
}

// change says what an update does.
func change(r *rand.Rand, op *Op, id int32) {
	switch r.IntN(12) {
	case 0:
		positional(r, op)
	case 1:
		pushes(r, op, id)
	default:
		op.Update, op.ArrayFilters = update(r, false)
		if op.Upsert {
			op.Filter = append(known(r, mqltest.Upsert(r)), bson.E{Key: "_id", Value: id})
		}
	}
}

// positional changes the element of a list that the filter matches, or elements that are deep in lists.
func positional(r *rand.Rand, op *Op) {
	path := []string{"a", "b", "a.b"}[r.IntN(3)]
	value := mqltest.Value(r, 1)
	if r.IntN(2) == 0 {
		on := filter(r)
		for i := range on {
			if !strings.HasPrefix(on[i].Key, "$") {
				on[i].Key = []string{"b", "c", "0", "b.c"}[r.IntN(4)]
			}
		}
		op.Filter = append(bson.D{{Key: path, Value: bson.D{{Key: "$elemMatch", Value: on}}}}, op.Filter...)
		op.Update = bson.D{{Key: "$set", Value: bson.D{{Key: path + []string{".$", ".$.b", ".$.0"}[r.IntN(3)], Value: value}}}}
		return
	}
	deep := []string{".$[]", ".$[x]", ".$[x].b", ".$[].b.$[x]", ".$[x].$[]", ".$[x].b.$[].c", ".$[].$[x].0"}[r.IntN(7)]
	op.Update = bson.D{{Key: []string{"$set", "$unset", "$max", "$push"}[r.IntN(4)], Value: bson.D{{Key: path + deep, Value: value}}}}
	if !strings.Contains(deep, "x") {
		return
	}
	on := filter(r)
	for i := range on {
		if !strings.HasPrefix(on[i].Key, "$") {
			on[i].Key = []string{"x", "x.b", "x.c", "x.b.c", "x.0"}[r.IntN(5)]
		}
	}
	op.ArrayFilters = []bson.D{on}
}

// sameNumber is mostly the number as it is.
func sameNumber(r *rand.Rand, n int32) any {
	return []any{n, n, n, n, n, n, int64(n), float64(n)}[r.IntN(8)]
}

// byID makes an op that chooses by the _id.
func byID(r *rand.Rand, op *Op, id int32) {
	op.ID, op.Filter, op.Sort = sameNumber(r, id), nil, nil
	if op.Kind == Replace {
		op.Doc = document1(r, op.ID, false)
	}
	if !op.Upsert && r.IntN(2) == 0 {
		op.If = filter(r)
	}
}

// together makes several writes. What does not compile is for ops that stand alone, as we refuse it before anything is
// done, and so is what differs on purpose for a sort or projection.
func together(r *rand.Rand) Op {
	op := Op{Kind: [...]string{Batch, Each}[r.IntN(2)]}
	for range 2 + r.IntN(3) {
		part := write(r)
		for part.Sort != nil || part.Project != nil || !compiles(&part) {
			part = write(r)
		}
		op.Batch = append(op.Batch, part)
	}
	return op
}

func compiles(op *Op) bool {
	_, err := writeOp(op)
	return err == nil
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
	if r.IntN(2) == 0 && !hasPosition(op.Sort) {
		op.Project = plain(r, mqltest.Projection(r)).(bson.D) //nolint:errcheck // it stays one
	}
}

// update makes one that has the current date, or not.
func update(r *rand.Rand, dated bool) (bson.D, []bson.D) {
	for {
		u, filters := mqltest.Update(r)
		if slices.ContainsFunc(u, func(e bson.E) bool { return e.Key == "$currentDate" }) == dated {
			u = spice(r, plain(r, u), true).(bson.D) //nolint:errcheck // it stays one
			for i := range filters {
				filters[i] = known(r, filters[i])
			}
			return u, filters
		}
	}
}
