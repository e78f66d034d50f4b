package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Listing is a list that was to be printed, taken apart: what is done with lists after verbs have made them.
type Listing struct {
	result Result
	items  []json.RawMessage
	keys   []string // by which items are found again
	headed bool     // the headings are printed
}

// NewListing takes a list apart. Its table has a row, and its names one, for each item.
func NewListing(r Result) (*Listing, error) {
	raw, err := encode(r.Value)
	if err != nil {
		return nil, err
	}
	var whole struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(raw, &whole); err != nil || r.Table == nil || len(r.Names) != len(whole.Items) || len(r.Table.rows) != len(whole.Items) {
		return nil, errors.New("what the command prints is no list")
	}
	l := &Listing{result: r, items: whole.Items}
	for i, name := range r.Names {
		var of struct {
			Namespace json.RawMessage `json:"namespace"`
		}
		_ = json.Unmarshal(whole.Items[i], &of) // what is no object has no namespace
		l.keys = append(l.keys, string(of.Namespace)+" "+name)
	}
	return l, nil
}

// ItemsOf gives the items with the namespace that they are of as their first member, unless they have it.
func (l *Listing) ItemsOf(namespace string) []json.RawMessage {
	name, err := encode(namespace)
	if err != nil {
		return l.items
	}
	out := make([]json.RawMessage, len(l.items))
	for i, item := range l.items {
		out[i] = item
		var has struct {
			Namespace *string `json:"namespace"`
		}
		rest, ok := bytes.CutPrefix(bytes.TrimSpace(item), []byte("{"))
		if !ok || json.Unmarshal(item, &has) == nil && has.Namespace != nil {
			continue
		}
		sep := ","
		if bytes.HasPrefix(bytes.TrimSpace(rest), []byte("}")) {
			sep = ""
		}
		out[i] = slices.Concat([]byte(`{"namespace":`), name, []byte(sep), rest)
	}
	return out
}

// Show prints the items that are not as they were in the listing before, which is nil at first: a table whole at first, and then its rows in the
// same columns; JSON an object a line, YAML a document each.
func (l *Listing) Show(p Printer, before *Listing) error {
	table := &Table{columns: l.result.Table.columns}
	var names []string
	for i, name := range l.result.Names {
		if before.same(l.keys[i], l.items[i]) {
			continue
		}
		switch p.Format {
		case FormatJSON:
			if err := JSONLine(p.W, l.items[i]); err != nil {
				return err
			}
		case FormatYAML:
			if _, err := fmt.Fprintln(p.W, "---"); err != nil {
				return err
			}
			if err := p.YAML(l.items[i]); err != nil {
				return err
			}
		}
		table.rows, names = append(table.rows, l.result.Table.rows[i]), append(names, name)
	}
	l.headed = before != nil && before.headed
	if p.Structured() || len(names) == 0 {
		return nil
	}
	if l.headed {
		p.NoHeaders = true
		table.widen(before.result.Table)
	}
	l.headed, p.Order = true, Order{} // which it has already
	return p.Print(Result{Table: table, Names: names})
}

// same says whether an item was there, and is as it was.
func (l *Listing) same(key string, item json.RawMessage) bool {
	if l == nil {
		return false
	}
	i := slices.Index(l.keys, key)
	return i >= 0 && bytes.Equal(l.items[i], item)
}

// Join adds the rows of another table behind a first column that says whose they are. Columns are told by their names: one that this table does
// not have yet is added.
func (t *Table) Join(first string, other *Table) {
	at := make([]int, len(other.columns))
	for i, c := range other.columns {
		at[i] = 1 + slices.IndexFunc(t.columns[1:], func(own Column) bool { return own.Name == c.Name })
		if at[i] == 0 {
			at[i] = len(t.columns)
			t.columns = append(t.columns, c)
		}
	}
	for i := range t.rows {
		t.rows[i] = append(t.rows[i], make([]cell, len(t.columns)-len(t.rows[i]))...)
	}
	for _, row := range other.rows {
		joined := make([]cell, len(t.columns))
		joined[0] = cell{text: Escape(first)}
		for i, c := range row {
			joined[at[i]] = c
		}
		t.rows = append(t.rows, joined)
	}
}

// widen has the cells be as wide as the columns of an earlier table, so that both stand below each other.
func (t *Table) widen(earlier *Table) {
	for i, c := range earlier.columns[:min(len(earlier.columns), len(t.columns))] {
		width := Width(c.Name)
		for _, row := range earlier.rows {
			width = max(width, Width(row[i].text))
		}
		for _, row := range t.rows {
			if missing := width - Width(row[i].text); missing > 0 {
				row[i].text += strings.Repeat(" ", missing)
			}
		}
	}
}
