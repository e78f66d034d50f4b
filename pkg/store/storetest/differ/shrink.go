package differ

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

const maxTrials = 600

// shrink removes parts of a case, of its documents and its ops as long as differs holds.
func shrink(c *Case, differs func(*Case) bool) *Case {
	trials := 0
	for {
		smaller := (*Case)(nil)
		for next := range reductions(toD(c)) {
			if trials++; trials > maxTrials {
				return c
			}
			if candidate, ok := fromD(next); ok && differs(candidate) {
				smaller = candidate
				break
			}
		}
		if smaller == nil {
			return c
		}
		c = smaller
	}
}

func toD(c *Case) bson.D {
	var d bson.D
	b, err := bson.Marshal(c)
	if err == nil {
		err = bson.Unmarshal(b, &d)
	}
	if err != nil {
		panic(err) // it was made of nothing else
	}
	return d
}

func fromD(v any) (*Case, bool) {
	b, err := bson.Marshal(v)
	if err != nil {
		return nil, false
	}
	var c Case
	err = bson.Unmarshal(b, &c)
	// An update of nothing is a replacement.
	empty := slices.ContainsFunc(c.Ops, func(op Op) bool { return op.Kind == "" || op.Kind == Update && len(op.Update) == 0 })
	return &c, err == nil && len(c.Ops) > 0 && !empty
}

// reductions gives v with one part less each: large parts first.
func reductions(v any) func(yield func(any) bool) {
	return func(yield func(any) bool) {
		switch v := v.(type) {
		case bson.A:
			reduceList(v, yield)
		case bson.D:
			reduceObject(v, yield)
		}
	}
}

func reduceList(v bson.A, yield func(any) bool) {
	for size := len(v); size > 0; size /= 2 {
		for at := 0; at+size <= len(v); at += size {
			if !yield(slices.Delete(slices.Clone(v), at, at+size)) {
				return
			}
		}
	}
	for i := range v {
		for smaller := range reductions(v[i]) {
			out := slices.Clone(v)
			out[i] = smaller
			if !yield(out) {
				return
			}
		}
	}
}

// stays says whether a field is never left out: what documents have as _id, and what says which op it is and that the
// server has an index, too.
func stays(name string) bool { return name == "_id" || name == "kind" || name == "shared" }

func reduceObject(v bson.D, yield func(any) bool) {
	for i := range v {
		if !stays(v[i].Key) && !yield(slices.Delete(slices.Clone(v), i, i+1)) {
			return
		}
	}
	for i := range v {
		for smaller := range reductions(v[i].Value) {
			out := slices.Clone(v)
			out[i].Value = smaller
			if !yield(out) {
				return
			}
		}
	}
}
