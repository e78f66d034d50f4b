package differ

import "strings"

// Difference is something that the store does otherwise than the server, on purpose.
type Difference struct {
	ID  string // as docs/store.md names it
	Why string

	// ours is in the text of a refusal that a server does not give, theirs in that of one that only a server gives, and
	// both in that of a server where both refuse.
	ours, theirs, both string
}

// Deliberate lists the differences that are no findings. What is on the list is still run: only the answers are not
// compared.
func Deliberate() []Difference {
	return []Difference{
		{
			ID: "filter-paths", ours: "is not a field path",
			Why: "empty names and names with $ lead nowhere in records, which may not have them; a server looks for them",
		},
		{
			ID: "filter-values", ours: "is not supported here",
			Why: "an object in a filter may have no name with $ but operators where they belong; a server compares with it",
		},
		{
			ID: "filter-operator-twice", ours: "is given twice",
			Why: "a server lets the second one count as well; in most languages one of them is lost without a word",
		},
		{
			ID: "filter-mod", ours: "$mod needs a list of two whole numbers",
			Why: "a server cuts off fractions, which hides mistakes",
		},
		{
			ID: "filter-size", ours: "$size needs a whole number",
			Why: "a server takes a decimal number, too",
		},
		{
			ID: "filter-type", ours: "$type: there is no type",
			Why: "a server takes a decimal number, too",
		},
		{
			ID:  unchanged,
			Why: "a write that leaves a document as it is, to the byte, changes nothing and is in no feed; a server counts some",
		},
		{
			ID: "filter-exists", ours: "$exists needs true or false",
			Why: "a server takes every value for true that is not false, 0 or null, \"false\" among them",
		},
		{
			ID: "filter-all", ours: "$all takes values or $elemMatch, no other operators",
			Why: "a server does not read what stands beside an $elemMatch in $all",
		},
		{
			ID: "projection-slice", ours: "$slice needs a whole number",
			Why: "a server cuts off fractions, and takes a list first as an expression",
		},
		{
			ID: "projection-expressions", ours: "values and expressions are not supported here",
			Why: "values and expressions in projections come with the aggregation language",
		},
		{ID: newID, Why: "the _id of what an upsert inserts is a new one on each side where the filter does not say it"},
		{
			ID: "projection-position-elsewhere", // not generated
			Why: "where b has no c, a server looks for the list of b.c.$ in a c beside b, and makes a b.c of it; here b.c " +
				"leads nowhere",
		},
		{
			ID:  "sort-after-projection", // not generated
			Why: "a server that sorts by b.0.c and leaves out b.c leaves it out first, and then sorts by nothing",
		},
		{
			ID: "modify-then-project", both: "during findAndModify :: caused by :: positional operator",
			Why: "a server has written the document when it finds that the $ of the projection has no element; here nothing " +
				"is written",
		},
		{
			ID: "index-two-lists", both: "E11000",
			Why: "where a document has both a key that is taken and lists that an index can't take, either may be what is said",
		},
		{
			ID: "sort-two-lists", theirs: "parallel arrays",
			Why: "a server refuses to sort by two lists of one document; here it gives some order, as the port says",
		},
		{
			ID: "sort-ambiguous-name", theirs: "Ambiguous field name",
			Why: "a server refuses to sort by a.0 where a is a list of objects that have a field 0; here the name is the " +
				"index, as in filters",
		},
	}
}

// deliberate gives the id of the difference that explains two answers, or "".
func deliberate(ours, theirs *Answer) string {
	for _, d := range Deliberate() {
		switch {
		case d.ours != "" && ours.Refused == refused && theirs.Refused != refused && strings.Contains(ours.Detail, d.ours),
			d.theirs != "" && ours.Refused == "" && strings.Contains(theirs.Detail, d.theirs),
			d.both != "" && ours.Refused == refused && strings.Contains(theirs.Detail, d.both):
			return d.ID
		}
	}
	return ""
}
