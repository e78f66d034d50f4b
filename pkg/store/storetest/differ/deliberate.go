package differ

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Difference is something that the store does otherwise than the server, on purpose.
type Difference struct {
	ID  string // as docs/store.md names it
	Why string

	// ours is in the text of our refusal, theirs in that of the server; where both are empty neither refuses. A side
	// without a text does not refuse, or for that reason.
	ours, theirs string
	// holds says whether Why is the reason of a difference with these texts.
	holds func(*situation) bool
}

const unchanged = "unchanged-not-modified"

// Deliberate lists the differences that are no findings. What is on the list is still run and looked at, but does not
// count as compared.
func Deliberate() []Difference {
	return append(refusals(), []Difference{
		{
			ID:    unchanged,
			Why:   "a write that leaves a document as it is, to the byte, changes nothing and is in no feed; a server counts some",
			holds: (*situation).changedLess,
		},
		{
			ID: "filter-stored-regex",
			Why: "a regular expression of a filter is rewritten, and is equal to a stored one as it is then; a server takes it as it " +
				"came",
			holds: (*situation).onlyStoredRegex,
		},
		{
			ID:    "position-of-rewritten",
			Why:   "of several conditions on lists the last one says where $ is: in the filter as it is rewritten, with $and joined",
			holds: (*situation).sameRewritten,
		},
		{
			ID:    "distinct-of-index",
			Why:   "a server gives a null where an index has one for a missing field; here an index never changes an answer",
			holds: (*situation).sameWithoutIndex,
		},
		{
			ID: "projection-skipped", theirs: "positional operator",
			Why:   "a server looks for the position of documents that are skipped, too",
			holds: (*situation).onlySkipped,
		},
		{
			ID: "projection-position-elsewhere", // not generated
			Why: "where b has no c, a server looks for the list of b.c.$ in a c beside b, and makes a b.c of it; here b.c " +
				"leads nowhere",
			holds: never,
		},
		{
			ID:    "names-with-dots", // not generated
			Why:   "a distinct by a.b.c finds a name b.c in a on a server; here a path never leads to it",
			holds: never,
		},
		{
			ID:    "sort-after-projection",
			Why:   "a server may project first and sort then, by what is left; here a sort sees the whole document",
			holds: (*situation).projectsFirst,
		},
		{
			ID: "modify-then-project",
			Why: "a server has written the document, or refused to, when it finds that the $ of the projection has no element; " +
				"here nothing is written",
			holds: (*situation).onlyProjectionFails,
		},
		{
			ID:    "index-two-lists",
			Why:   "where a document has both a key that is taken and lists that an index can't take, either may be what is said",
			holds: (*situation).twoRefusals,
		},
		{
			ID: "sort-two-lists", theirs: "parallel arrays",
			Why:   "a server refuses to sort by two lists of one document; here an index may have the order, and else it is refused",
			holds: (*situation).sortedByIndex,
		},
		{
			ID: "sort-ambiguous-name", theirs: "Ambiguous field name",
			Why: "a server refuses to sort by a.0 where a is a list of objects that have a field 0; here the name is the " +
				"index, as in filters",
			holds: (*situation).sortsAmbiguousName,
		},
	}...)
}

func never(*situation) bool { return false }

// refusals are what only we refuse.
func refusals() []Difference {
	return []Difference{
		{
			ID: "filter-paths", ours: "is not a field path",
			Why:   "empty names and names with $ lead nowhere in records, which may not have them; a server looks for them",
			holds: func(s *situation) bool { return s.op.anyField(func(key string, _ any) bool { return noPath(key) }) },
		},
		{
			ID: "filter-values", ours: "is not supported here",
			Why:   "an object in a filter may have no name with $ but operators where they belong; a server compares with it",
			holds: func(s *situation) bool { return s.op.anyFilter(misplacedName) },
		},
		{
			ID: "filter-operator-twice", ours: "is given twice",
			Why:   "a server lets the second one count as well; in most languages one of them is lost without a word",
			holds: func(s *situation) bool { return s.op.anyFilter(nameTwice) },
		},
		{
			ID: "filter-mod", ours: "$mod needs a list of two whole numbers",
			Why:   "a server cuts off fractions, which hides mistakes",
			holds: operandIs("$mod", func(v any) bool { return !wholeNumbers(v, 2) }),
		},
		{
			ID: "filter-size", ours: "$size needs a whole number",
			Why:   "a server takes a decimal number, too",
			holds: operandIs("$size", isDecimal),
		},
		{
			ID: "filter-type", ours: "$type: there is no type",
			Why:   "a server takes a decimal number, too",
			holds: operandIs("$type", hasDecimal),
		},
		{
			ID: "filter-exists", ours: "$exists needs true or false",
			Why:   "a server takes every value for true that is not false, 0 or null, \"false\" among them",
			holds: operandIs("$exists", func(v any) bool { _, is := v.(bool); return !is }),
		},
		{
			ID: "filter-all", ours: "$all takes values or $elemMatch, no other operators",
			Why:   "a server does not read what stands beside an $elemMatch in $all",
			holds: operandIs("$all", besideElemMatch),
		},
		{
			ID: "filter-types", ours: "can't be compared with",
			Why:   "symbols, code and undefined are no values to look for: no record holds them",
			holds: func(s *situation) bool { return s.op.anyFilter(func(d bson.D) bool { return anyValue(d, isOldType) }) },
		},
		{
			ID: "text-utf8", ours: "a text is not valid UTF-8",
			Why:   "a server looks for texts and stores them whatever their bytes are; JSON can't say such a text",
			holds: func(s *situation) bool { return s.op.anyValue(isBadText) },
		},
		{
			ID: "projection-slice", ours: "$slice needs a whole number",
			Why:   "a server cuts off fractions, and takes a list first as an expression",
			holds: operandIs("$slice", func(v any) bool { return !wholeNumbers(v, 0) }),
		},
		{
			ID: "projection-expressions", ours: "projection: ",
			Why:   "values and expressions in projections come with the aggregation language",
			holds: func(s *situation) bool { return hasExpression(s.op.Project) },
		},
	}
}

// explanation gives the id of the difference that explains a situation, or "".
func (s *situation) explanation() string {
	ours, theirs := s.ours, s.theirs
	if ours.Refused == broken || theirs.Refused == broken {
		return ""
	}
	if s.op.Kind == Each {
		return s.parts()
	}
	theyRefuse := theirs.Refused == refused && !strings.Contains(theirs.Detail, writtenFirst)
	for _, d := range Deliberate() {
		if d.ours != "" && (ours.Refused != refused || theyRefuse || !strings.Contains(ours.Detail, d.ours)) ||
			d.theirs != "" && !strings.Contains(theirs.Detail, d.theirs) {
			continue
		}
		if d.holds(s) {
			return d.ID
		}
	}
	return ""
}
