package differ

import "strings"

// Difference is something that the store does otherwise than the server, on purpose.
type Difference struct {
	ID  string // as docs/store.md names it
	Why string

	// refusal is in the text of ours, and only ours refuses; or theirs is in the text of a server that alone refuses.
	refusal, theirs string
}

// Deliberate lists the differences that are no findings. What is on the list is still run: only the answers are not
// compared.
func Deliberate() []Difference {
	return []Difference{
		{
			ID: "filter-paths", refusal: "is not a field path",
			Why: "empty names and names with $ lead nowhere in records, which may not have them; a server looks for them",
		},
		{
			ID: "filter-values", refusal: "is not supported here",
			Why: "an object in a filter may have no name with $ but operators where they belong; a server compares with it",
		},
		{
			ID: "filter-operator-twice", refusal: "is given twice",
			Why: "a server lets the second one count as well; in most languages one of them is lost without a word",
		},
		{
			ID: "filter-mod", refusal: "$mod needs a list of two whole numbers",
			Why: "a server cuts off fractions, which hides mistakes",
		},
		{
			ID: "filter-exists", refusal: "$exists needs true or false",
			Why: "a server takes every value for true that is not false, 0 or null, \"false\" among them",
		},
		{
			ID: "filter-all", refusal: "$all takes values or $elemMatch, no other operators",
			Why: "a server does not read what stands beside an $elemMatch in $all",
		},
		{
			ID: "projection-slice", refusal: "$slice needs a whole number",
			Why: "a server cuts off fractions, and takes a list first as an expression",
		},
		{
			ID: "projection-expressions", refusal: "values and expressions are not supported here",
			Why: "values and expressions in projections come with the aggregation language",
		},
		{
			ID: "projection-position-elsewhere", // not generated
			Why: "where b has no c, a server looks for the list of b.c.$ in a c beside b, and makes a b.c of it; here b.c " +
				"leads nowhere",
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
		onlyOurs := d.refusal != "" && theirs.Refused == "" && strings.Contains(ours.Detail, d.refusal)
		onlyTheirs := d.theirs != "" && ours.Refused == "" && strings.Contains(theirs.Detail, d.theirs)
		if onlyOurs && ours.Refused == refused || onlyTheirs && theirs.Refused == refused {
			return d.ID
		}
	}
	return ""
}
