package doc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// NewCmd makes svcctl doc.
func NewCmd(st *command.State) *cobra.Command {
	cmd := command.Group("doc", "Read and write records",
		newList(st, nil), byName(newGet(st, nil)), newCreate(st, nil), byName(newUpdate(st, nil)), byName(newReplace(st, nil)), byName(newPatch(st, nil)),
		byName(newEdit(st, nil)), byName(newDelete(st, nil)), newCount(st, nil), newFacet(st, nil), newWatch(st, nil),
		newImport(st, nil), newExport(st, nil))
	cmd.Aliases = []string{"record"}
	return cmd
}

// place is a collection, which every verb has.
type place struct{ Namespace, Collection string }

func (p place) String() string { return p.Namespace + "/" + p.Collection }

// Reserved are the members that the service sets and refuses from a client.
func Reserved(name string) bool {
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
		if !Reserved(m.name) {
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

// show prints one record: value by value as a table, else as it is.
func show(st *command.State, at place, r api.Record) error {
	p := st.Printer()
	if !p.ForPeople() {
		return p.Print(output.Result{Value: r, Names: []string{at.Collection + "/" + recordID(r)}})
	}
	list, err := members(r)
	if err != nil {
		return fmt.Errorf("the record of the answer: %w", err)
	}
	room := 0
	if p.Format != output.FormatWide {
		list = flat("", list, true)
		widest := 0
		for _, m := range list {
			widest = max(widest, output.Width(m.name))
		}
		if room = st.OutWidth - widest - 3; room < minCell {
			room = 0
		}
	}
	t := output.NewTable("FIELD", "VALUE")
	for _, m := range list {
		for i, line := range wrap(cellText(m.value), room) {
			if i > 0 {
				m.name = ""
			}
			t.Row(m.name, line)
		}
	}
	return p.Print(output.Result{Table: t})
}

// queryFlags adds the flags that select records.
func queryFlags(st *command.State, cmd *cobra.Command, q *client.Query) {
	filterFlag(cmd, &q.Filter)
	cmd.Flags().StringVar(&q.Sort, "sort", "", "fields to sort by, - for descending, as in -publishedAt,title")
	showFlags(st, cmd, q, 1)
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{"sort": st.CompleteFieldList(1)})
}

// showFlags adds the flags that say what of a record is shown. The command has so many arguments behind the namespace.
func showFlags(st *command.State, cmd *cobra.Command, q *client.Query, want int) {
	cmd.Flags().StringVar(&q.Select, "select", "", "fields to show, as in title,seo.title, or to leave out, as in -body")
	cmd.Flags().StringVar(&q.Projection, "projection", "", "name of a projection of the collection")
	cmd.Flags().StringVar(&q.Lookup, "lookup", "", "fields whose related records come along, as in author,tags, or JSON")
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{"select": st.CompleteFieldList(want), "lookup": st.CompleteRelations(want)})
	langFlag(st, cmd, &q.Lang, want)
}

func langFlag(st *command.State, cmd *cobra.Command, lang *string, want int) {
	cmd.Flags().StringVar(lang, "lang", "", "language of the records, as in de (default: all, with translations in _i18n)")
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{"lang": st.CompleteLanguages(want)})
}

func filterFlag(cmd *cobra.Command, filter *string) {
	cmd.Flags().StringVar(filter, "filter", "", `JSON filter, as in '{"status": "published", "views": {"$gte": 10}}'`)
}
