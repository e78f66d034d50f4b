package doc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// NewCmd makes svcctl doc.
func NewCmd(st *command.State) *cobra.Command {
	cmd := command.Group("doc", "Read and write records",
		newList(st, nil), newGet(st, nil), newCreate(st, nil), newUpdate(st, nil), newReplace(st, nil), newPatch(st, nil),
		newEdit(st, nil), newDelete(st, nil), newCount(st, nil),
		newImport(st, nil), newExport(st, nil))
	cmd.Aliases = []string{"record"}
	return cmd
}

// place is a collection, which every verb has.
type place struct{ Namespace, Collection string }

func (p place) String() string { return p.Namespace + "/" + p.Collection }

// reserved are the members that the service sets and refuses from a client.
func reserved(name string) bool {
	switch name {
	case "id", "_id", "createdAt", "updatedAt", "createdBy", "updatedBy", "_rev":
		return true
	}
	return false
}

// member is one member of a record, in the record's order.
type member struct {
	name  string
	value json.RawMessage
}

// members takes a record apart at its top level.
func members(record api.Record) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(record))
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if tok != json.Delim('{') {
		return nil, errors.New("a record is a JSON object")
	}
	var out []member
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		out = append(out, member{name: fmt.Sprint(name), value: value})
	}
	return out, nil
}

// writable leaves out what the service sets, so that a record that was read can be written again. It gives the names
// left out, and the _rev.
func writable(record api.Record) (rest api.Record, left []string, rev string, err error) {
	all, err := members(record)
	if err != nil {
		return nil, nil, "", err
	}
	kept := slices.DeleteFunc(all, func(m member) bool {
		if !reserved(m.name) {
			return false
		}
		left = append(left, m.name)
		if m.name == "_rev" {
			rev = string(m.value)
		}
		return true
	})
	if len(left) == 0 {
		return record, nil, "", nil
	}
	return object(kept), left, rev, nil
}

// cellText is a value for a table cell: a string bare, anything else as JSON.
func cellText(value json.RawMessage) string {
	var s string
	if len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &s) == nil {
		return s
	}
	if string(value) == "null" {
		return ""
	}
	return string(value)
}

// maxCell is how many characters of a value a table shows, but for -o wide.
const maxCell = 40

func shorten(s string, wide bool) string {
	runes := []rune(s)
	if wide || len(runes) <= maxCell {
		return s
	}
	return string(runes[:maxCell-1]) + "…"
}

// maxColumns is how many columns a table has when -o wide or --select don't say otherwise.
const maxColumns = 6

// recordTable shows records in columns: the members in the order they come. Without all, these are the first plain ones
// (see column). Each of paths, which have dots, is a column of its own.
func recordTable(records []api.Record, paths []string, all, wide bool) (*output.Table, error) {
	rows := make([]map[string]json.RawMessage, 0, len(records))
	var columns []string
	for _, r := range records {
		list, err := members(r)
		if err == nil {
			list, err = spread(list, "", paths)
		}
		if err != nil {
			return nil, fmt.Errorf("a record of the answer: %w", err)
		}
		row := map[string]json.RawMessage{}
		for _, m := range list {
			row[m.name] = m.value
			if (all || column(m)) && !slices.Contains(columns, m.name) {
				columns = append(columns, m.name)
			}
		}
		rows = append(rows, row)
	}
	if !all && len(columns) > maxColumns {
		columns = columns[:maxColumns]
	}
	headings := make([]string, len(columns))
	for i, c := range columns {
		headings[i] = output.Escape(strings.ToUpper(c))
	}
	t := output.NewTable(headings...)
	for _, row := range rows {
		values := make([]any, len(columns))
		for i, c := range columns {
			values[i] = shorten(cellText(row[c]), wide)
		}
		t.Row(values...)
	}
	return t, nil
}

// selectedPaths are the paths that a --select names to show.
func selectedPaths(selected string) []string {
	if strings.HasPrefix(strings.TrimSpace(selected), "{") {
		return nil
	}
	var paths []string
	for path := range strings.SplitSeq(selected, ",") {
		if path = strings.TrimSpace(path); path != "" && path[0] != '-' {
			paths = append(paths, path)
		}
	}
	return paths
}

// nestedPaths are those of them that lead below a member.
func nestedPaths(selected string) []string {
	return slices.DeleteFunc(selectedPaths(selected), func(path string) bool { return !strings.Contains(path, ".") })
}

// spread puts the members that paths lead to in the place of the objects they are in. What is not an object, such as a
// list of them, stays whole.
func spread(list []member, prefix string, paths []string) ([]member, error) {
	var out []member
	for _, m := range list {
		m.name = prefix + m.name
		below := func(path string) bool { return strings.HasPrefix(path, m.name+".") }
		if slices.Contains(paths, m.name) || !slices.ContainsFunc(paths, below) || len(m.value) == 0 || m.value[0] != '{' {
			out = append(out, m)
			continue
		}
		inner, err := members(m.value)
		if err == nil {
			inner, err = spread(inner, m.name+".", paths)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, inner...)
	}
	return out, nil
}

// column says whether a member makes a column by itself: scalars that a person put there, and the id.
func column(m member) bool {
	if m.name == "id" {
		return true
	}
	return !reserved(m.name) && len(m.value) > 0 && m.value[0] != '{' && m.value[0] != '['
}

// recordID is the id of a record that was read.
func recordID(r api.Record) string {
	var v struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(r, &v) != nil {
		return ""
	}
	return v.ID
}

// show prints one record: member by member as a table, else as it is.
func show(st *command.State, at place, r api.Record) error {
	p := st.Printer()
	if p.Structured() || p.Format == output.FormatName {
		return p.Print(output.Result{Value: r, Names: []string{at.Collection + "/" + recordID(r)}})
	}
	list, err := members(r)
	if err != nil {
		return fmt.Errorf("the record of the answer: %w", err)
	}
	t := output.NewTable("FIELD", "VALUE")
	for _, m := range list {
		t.Row(m.name, cellText(m.value))
	}
	return p.Print(output.Result{Table: t})
}

// queryFlags adds the flags that select records.
func queryFlags(st *command.State, cmd *cobra.Command, q *client.Query) {
	filterFlag(cmd, &q.Filter)
	cmd.Flags().StringVar(&q.Sort, "sort", "", "fields to sort by, - for descending, as in -publishedAt,title")
	showFlags(cmd, q)
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{"sort": st.CompleteFieldList(1), "select": st.CompleteFieldList(1), "lookup": st.CompleteFieldList(1)})
}

// showFlags adds the flags that say what of a record is shown.
func showFlags(cmd *cobra.Command, q *client.Query) {
	cmd.Flags().StringVar(&q.Select, "select", "", "fields to show, as in title,seo.title, or to leave out, as in -body")
	cmd.Flags().StringVar(&q.Projection, "projection", "", "name of a projection of the collection")
	cmd.Flags().StringVar(&q.Lookup, "lookup", "", "fields whose related records come along, as in author,tags, or JSON")
}

func filterFlag(cmd *cobra.Command, filter *string) {
	cmd.Flags().StringVar(filter, "filter", "", `JSON filter, as in '{"status": "published", "views": {"$gte": 10}}'`)
}
