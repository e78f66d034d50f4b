package differ

import "strings"

// Difference is something that the store does otherwise than the server, on purpose.
type Difference struct {
	ID  string // as docs/store.md names it
	Why string

	applies func(op *Op, ours, theirs *Answer) bool
}

// Deliberate lists the differences that are no findings. What is on the list is still run: only the answers are not
// compared.
func Deliberate() []Difference {
	return []Difference{
		{
			ID:  "sort-two-lists",
			Why: "a server refuses to sort by two lists of one document; here it gives some order, as the port says",
			applies: func(_ *Op, ours, theirs *Answer) bool {
				return ours.Refused == "" && strings.Contains(theirs.Detail, "parallel arrays")
			},
		},
		{
			ID: "sort-ambiguous-name",
			Why: "a server refuses to sort by a.0 where a is a list of objects that have a field 0; here the name is the " +
				"index, as in filters",
			applies: func(_ *Op, ours, theirs *Answer) bool {
				return ours.Refused == "" && strings.Contains(theirs.Detail, "Ambiguous field name")
			},
		},
	}
}

// deliberate gives the id of the difference that explains two answers, or "".
func deliberate(op *Op, ours, theirs *Answer) string {
	for _, d := range Deliberate() {
		if d.applies(op, ours, theirs) {
			return d.ID
		}
	}
	return ""
}
