package differ

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// serverDisagrees says whether the server gives our answer, too, where it does the same work in another way: with
// indexes of its own, or on documents that came in another order. Then there is no answer to compare with. Ours must
// be what it is without indexes.
//
// Indexes that change what there is are no other way: sparse and partial ones may give less on a server, and unique ones
// refuse documents.
func (s *situation) serverDisagrees() bool {
	if s.ours.Refused == broken || s.theirs.Refused == broken || len(s.op.Batch) > 0 || s.o.differs(s.c, 0) == "" {
		return false
	}
	if !s.op.writes() {
		if o := s.again(func(c *Case) { c.Indexes = nil }); difference(s.o.ours[0], o.ours[0]) != "" {
			return false
		}
	}
	return slices.ContainsFunc(s.otherWays(), func(c *Case) bool {
		answers, after, err := s.d.server.run(c)
		if err != nil {
			s.err = err
			return false
		}
		c.settle(answers, after)
		return difference(s.o.ours[0], answers[0]) == "" && slices.EqualFunc(s.o.oursAfter, after, equalRaw)
	})
}

func (s *situation) otherWays() []*Case {
	reversed := *s.c
	reversed.Docs = slices.Clone(s.c.Docs)
	slices.Reverse(reversed.Docs)
	planned := *s.c
	planned.Ops = slices.Clone(s.c.Ops)
	planned.Ops[0].planned = true
	if s.op.writes() {
		return []*Case{&reversed, &planned}
	}
	none := planned
	none.Indexes = nil
	ways := []*Case{&reversed, &none}
	for _, x := range s.c.Indexes {
		if x.Sparse || x.Partial != nil {
			continue
		}
		one := planned
		one.Indexes = []Index{{Keys: x.Keys, Shared: true}}
		ways = append(ways, &one)
	}
	byFilter := planned
	byFilter.Indexes = []Index{{Keys: bson.D{{Key: "a", Value: 1}}, Shared: true}, {Keys: bson.D{{Key: "b", Value: 1}}, Shared: true}}
	return append(ways, &byFilter)
}
