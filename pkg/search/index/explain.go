package index

import (
	"context"
	"slices"
)

// A Part is what one leaf of a query has given to the score of a hit.
type Part struct {
	Group, Leaf int    // their places in the query
	Tag         string // of the leaf
	Field       Field
	Terms       []string // those of the leaf that the record has; all of a phrase
	Count       int      // how often
	Records     int      // that are seen and match the leaf
	Of          int      // that are seen and have the field
	Length      int      // of the record's field, in terms
	Score       float32
}

// Why says how a score came to be: it is the sum of the parts' scores, multiplied with Recency.
type Why struct {
	Parts   []Part
	Recency float32 // 1 if the query has none
}

// Explain says, for records that a query has found in this view, how their scores came to be, in the order of the numbers. It costs as
// much as a search does.
func (v *View) Explain(ctx context.Context, q Query, numbers []uint32) ([]Why, error) {
	out := make([]Why, len(numbers))
	for i, number := range numbers {
		out[i].Recency = 1
		if q.Recency != nil {
			out[i].Recency = q.Recency.of(v.values[q.Recency.Field], number)
		}
	}
	for g, group := range q.Groups {
		if group.Occur == MustNot {
			continue
		}
		for l, leaf := range group.Leaves {
			if err := v.explain(ctx, out, numbers, Part{Group: g, Leaf: l, Tag: leaf.Tag, Field: leaf.Field}, leaf); err != nil {
				return nil, v.ix.disk.fail(err)
			}
		}
	}
	return out, nil
}

// explain adds the part of a leaf to those of the records that match it.
func (v *View) explain(ctx context.Context, out []Why, numbers []uint32, part Part, l Leaf) error {
	all, err := v.matching(ctx, nil, l)
	if err != nil || len(all) == 0 {
		return err
	}
	w := v.weigh(l, len(all))
	part.Records, part.Of = len(all), v.totals.fields[l.Field].records
	at := make(map[uint32]int, len(numbers)) // in their parts
	for i, number := range numbers {
		k, ok := find(all, number)
		if !ok {
			continue
		}
		p := part
		p.Count, p.Score = int(all[k].count), w.score(all[k])
		if int(number) < len(w.lengths) {
			p.Length = int(w.lengths[number])
		}
		if l.Phrase != nil || len(l.Terms) == 1 {
			p.Terms = l.Terms
		}
		at[number] = len(out[i].Parts)
		out[i].Parts = append(out[i].Parts, p)
	}
	if l.Phrase != nil || len(l.Terms) == 1 {
		return nil
	}
	for _, t := range l.Terms {
		list, err := v.postings(all[:0], l.Field, t)
		if err != nil {
			return err
		}
		for i, number := range numbers {
			if _, ok := find(list, number); ok {
				p := &out[i].Parts[at[number]]
				p.Terms = append(p.Terms, t)
			}
		}
	}
	return nil
}

func find(list []posting, number uint32) (int, bool) {
	return slices.BinarySearchFunc(list, number, func(p posting, n uint32) int { return int(int64(p.number) - int64(n)) })
}
