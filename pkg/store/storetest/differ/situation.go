package differ

import (
	"context"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
)

// situation is an op whose answers differ, on the documents that were there before it. The checks run it again in other
// ways.
type situation struct {
	ctx          context.Context //nolint:containedctx // it lives for one look
	d            *duel
	op           *Op
	ours, theirs *Answer
	c            *Case    // the op alone on the documents that there were
	o            *outcome // of c
	left         []Op     // behind it
	err          error    // of running it again
}

// lookAt makes sure that the sides have the same documents before the op, and runs it alone on those.
func (d *duel) lookAt(ctx context.Context, c *Case, at int, o *outcome) (*situation, error) {
	s := &situation{ctx: ctx, d: d, op: &c.Ops[at], ours: o.ours[at], theirs: o.theirs[at], left: c.Ops[at+1:]}
	before := *c
	before.Ops = c.Ops[:at]
	b, err := d.both(ctx, &before)
	if err != nil {
		return nil, err
	}
	if !slices.EqualFunc(b.oursAfter, b.theirsAfter, equalRaw) {
		s.ours = &Answer{Refused: broken, Detail: "the documents differ before it"}
		return s, nil
	}
	s.c = &Case{Docs: documents(b.oursAfter), Indexes: c.Indexes, Ops: []Op{*s.op}}
	s.o, err = d.both(ctx, s.c)
	if err != nil {
		return nil, err
	}
	if now := s.o.differs(s.c, 0); now != o.differs(c, at) {
		s.ours = &Answer{Refused: broken, Detail: "alone it comes to: " + now}
	}
	return s, nil
}

// rest is what is left behind the op, on the documents of our side.
func (s *situation) rest() *Case {
	if len(s.left) == 0 {
		return nil
	}
	return &Case{Docs: documents(s.o.oursAfter), Indexes: s.c.Indexes, Ops: s.left}
}

// again runs the op with changes.
func (s *situation) again(change func(*Case)) *outcome {
	c := *s.c
	c.Ops = slices.Clone(c.Ops)
	change(&c)
	o, err := s.d.both(s.ctx, &c)
	if err != nil {
		s.err = err
		refusal := []*Answer{{Refused: broken}}
		return &outcome{ours: refusal, theirs: refusal}
	}
	return o
}

// changedLess says whether we count fewer changes, as many as there are documents that are another now, and all else is
// the same.
func (s *situation) changedLess() bool {
	if s.op.Kind == Batch {
		return s.partsUnchanged() && slices.EqualFunc(s.o.oursAfter, s.o.theirsAfter, equalRaw)
	}
	if s.ours.Refused != "" || s.theirs.Refused != "" {
		return false
	}
	same := *s.ours
	same.Modified = s.theirs.Modified
	if s.ours.Modified >= s.theirs.Modified || difference(&same, s.theirs) != "" || len(s.c.Docs) != len(s.o.oursAfter) {
		return false
	}
	changed := int64(0)
	for i, d := range s.c.Docs {
		raw, err := document.Marshal(d)
		if err != nil {
			return false
		}
		if !equalRaw(raw, s.o.oursAfter[i]) {
			changed++
		}
	}
	return changed == s.ours.Modified && slices.EqualFunc(s.o.oursAfter, s.o.theirsAfter, equalRaw)
}

// partsUnchanged says whether the ops of a batch that both did differ only in that.
func (s *situation) partsUnchanged() bool {
	return s.ours.Refused == "" && s.theirs.Refused == "" && s.parts() == unchanged
}

// parts explains the ops that differ of several: the id of the last explanation, or "".
func (s *situation) parts() string {
	one := s.again(func(c *Case) { c.Ops = s.op.Batch })
	c := &Case{Docs: s.c.Docs, Indexes: s.c.Indexes, Ops: s.op.Batch}
	id := ""
	for i := range one.ours {
		if one.differs(c, i) == "" {
			continue
		}
		part, err := s.d.lookAt(s.ctx, c, i, one)
		if err != nil {
			s.err = err
			return ""
		}
		if id = part.explanation(); id == "" || part.writesOtherwise() {
			return id
		}
	}
	return id
}

// writesOtherwise says whether the documents differ then.
func (s *situation) writesOtherwise() bool {
	return !slices.EqualFunc(s.o.oursAfter, s.o.theirsAfter, equalRaw)
}

// sameWithoutIndex says whether a distinct is the same where there are no indexes, and ours with them.
func (s *situation) sameWithoutIndex() bool {
	if s.op.Kind != Distinct {
		return false
	}
	o := s.again(func(c *Case) { c.Indexes = nil })
	return o.differs(s.c, 0) == "" && difference(s.ours, o.ours[0]) == ""
}

// sameRewritten says whether a $ is the same if the server is given the filter as package mql rewrites it.
func (s *situation) sameRewritten() bool {
	positional := func(key string, _ any) bool {
		return strings.HasSuffix(key, ".$") || strings.Contains(key, ".$.")
	}
	f, err := mql.Compile(s.op.Filter)
	if err != nil || !anyField(s.op.Project, positional) && !anyField(s.op.Update, positional) {
		return false
	}
	o := s.again(func(c *Case) { c.Ops[0].Filter = documents([]bson.Raw{f.Raw()})[0] })
	return o.differs(s.c, 0) == "" && difference(s.ours, o.ours[0]) == "" &&
		slices.EqualFunc(o.oursAfter, o.theirsAfter, equalRaw)
}

// onlySkipped says whether we refuse, too, if nothing is skipped.
func (s *situation) onlySkipped() bool {
	if s.op.Kind != Find || s.op.Skip == 0 || s.ours.Refused != "" {
		return false
	}
	o := s.again(func(c *Case) { c.Ops[0].Skip, c.Ops[0].Limit = 0, 0 })
	return o.ours[0].Refused == refused && strings.Contains(o.ours[0].Detail, noElement) && o.differs(s.c, 0) == ""
}

// projectsFirst says whether the sort is the same without the projection, and the projection without the sort.
func (s *situation) projectsFirst() bool {
	if s.op.Kind != Find || len(s.op.Sort) == 0 || s.op.Project == nil {
		return false
	}
	sorted := s.again(func(c *Case) { c.Ops[0].Project = nil })
	projected := s.again(func(c *Case) {
		op := &c.Ops[0]
		op.Sort, op.After, op.Skip, op.Limit = nil, nil, 0, 0
	})
	return difference(sorted.ours[0], sorted.theirs[0]) == "" && difference(projected.ours[0], projected.theirs[0]) == "" &&
		sorted.ours[0].Refused == "" && len(s.ours.Docs) == len(sorted.ours[0].Docs)
}

// noElement is in the text of our refusal of a position.
const noElement = "has matched no element"

// onlyProjectionFails says whether we refuse for the position, too, and the op is the same on both without a projection.
func (s *situation) onlyProjectionFails() bool {
	if !s.op.writes() || s.theirs.Refused == "" || s.ours.Refused != refused || !strings.Contains(s.ours.Detail, noElement) {
		return false
	}
	o := s.again(func(c *Case) { c.Ops[0].Project = nil })
	if o.differs(s.c, 0) != "" || !slices.EqualFunc(o.oursAfter, o.theirsAfter, equalRaw) {
		return false
	}
	if o.theirs[0].Refused != "" {
		return o.theirs[0].Refused == s.theirs.Refused
	}
	return strings.Contains(s.theirs.Detail, writtenFirst) && slices.EqualFunc(s.o.theirsAfter, o.theirsAfter, equalRaw)
}

// onlyStoredRegex says whether a filter has a regular expression, and the sides are the same where none is stored.
func (s *situation) onlyStoredRegex() bool {
	isRegex := func(key string, v any) bool { return key == "$regex" || hasRegex(v) }
	if !s.op.anyField(isRegex) || !slices.ContainsFunc(s.c.Docs, func(d bson.D) bool { return hasRegex(d) }) {
		return false
	}
	docs := make([]bson.D, len(s.c.Docs))
	for i, d := range s.c.Docs {
		docs[i] = withoutRegex(d).(bson.D) //nolint:errcheck // it stays one
	}
	c := *s.c
	o := s.again(func(again *Case) { again.Docs = docs; c = *again })
	return o.differs(&c, 0) == "" && slices.EqualFunc(o.oursAfter, o.theirsAfter, equalRaw)
}

func hasRegex(v any) bool {
	switch v := v.(type) {
	case bson.Regex:
		return true
	case bson.A:
		return slices.ContainsFunc(v, hasRegex)
	case bson.D:
		return slices.ContainsFunc(v, func(e bson.E) bool { return hasRegex(e.Value) })
	default:
		return false
	}
}

// withoutRegex has other values in the place of regular expressions.
func withoutRegex(v any) any {
	switch v := v.(type) {
	case bson.Regex:
		return bson.Timestamp{T: 7}
	case bson.A:
		out := slices.Clone(v)
		for i := range out {
			out[i] = withoutRegex(out[i])
		}
		return out
	case bson.D:
		out := slices.Clone(v)
		for i := range out {
			out[i].Value = withoutRegex(out[i].Value)
		}
		return out
	default:
		return v
	}
}

// ofIndex says whether a document was refused for an index that can't take it.
func (a *Answer) ofIndex() bool {
	texts := []string{"an index can't span two lists", "an index path names both", "cannot index parallel arrays", "Ambiguous field name"}
	return a.Refused == refused && slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(a.Detail, t) })
}

// twoRefusals says whether one side names a taken key and the other two lists, and each of the two is true: with one of
// the indexes alone both sides say the one, with another both say the other.
func (s *situation) twoRefusals() bool {
	lists, taken := (*Answer).ofIndex, func(a *Answer) bool { return a.Refused == duplicate }
	if oneOfEach := lists(s.ours) && taken(s.theirs) || taken(s.ours) && lists(s.theirs); !oneOfEach {
		return false
	}
	isTaken, hasLists := false, false
	for i := range s.c.Indexes {
		o := s.again(func(c *Case) { c.Indexes = c.Indexes[i : i+1] })
		isTaken = isTaken || taken(o.ours[0]) && taken(o.theirs[0])
		hasLists = hasLists || lists(o.ours[0]) && lists(o.theirs[0])
	}
	if !isTaken { // of the _id
		o := s.again(func(c *Case) { c.Indexes = nil })
		isTaken = taken(o.ours[0]) && taken(o.theirs[0])
	}
	return isTaken && hasLists
}

// sortedByIndex says whether we refuse the sort, too, where no index has it, of the documents that the server sorts.
func (s *situation) sortedByIndex() bool {
	o := s.again(func(c *Case) {
		c.Indexes = nil
		if op := &c.Ops[0]; op.After != nil {
			op.Filter, op.After, op.Skip, op.Limit = op.orAfter(), nil, 0, 0
		}
	})
	return s.ours.Refused == "" && o.ours[0].Refused == refused && strings.Contains(o.ours[0].Detail, "different lists in one document")
}

func (s *situation) sortsAmbiguousName() bool {
	return s.ours.Refused != refused && slices.ContainsFunc(s.op.Sort, func(e bson.E) bool {
		return slices.ContainsFunc(s.c.Docs, func(d bson.D) bool { return ambiguous(d, strings.Split(e.Key, ".")) })
	})
}

// ambiguous says whether a path leads through a list by a number that is a name in an object of the list, too.
func ambiguous(v any, path []string) bool {
	if len(path) == 0 {
		return false
	}
	switch v := v.(type) {
	case bson.D:
		return slices.ContainsFunc(v, func(e bson.E) bool { return e.Key == path[0] && ambiguous(e.Value, path[1:]) })
	case bson.A:
		for i, item := range v {
			d, isObject := item.(bson.D)
			if isNumber(path[0]) && isObject && slices.ContainsFunc(d, func(e bson.E) bool { return e.Key == path[0] }) {
				return true
			}
			if path[0] == indexText(i) && ambiguous(item, path[1:]) || isObject && ambiguous(d, path) {
				return true
			}
		}
	}
	return false
}
