package output_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/cli/output"
)

func listing(t *testing.T, items string, names []string, rows ...[]any) (*output.Listing, *output.Table) {
	t.Helper()
	table := output.NewTable("NAME", "STATE")
	for _, row := range rows {
		table.Row(row...)
	}
	l, err := output.NewListing(output.Result{Value: json.RawMessage(`{"items":` + items + `}`), Table: table, Names: names})
	if err != nil {
		t.Fatal(err)
	}
	return l, table
}

// A watch shows all, and then what has changed, in the same columns.
func TestListingShowsChanges(t *testing.T) {
	t.Parallel()
	none, _ := listing(t, `[]`, nil)
	first, _ := listing(t, `[{"v":1},{"v":2}]`, []string{"x/a-long-name", "x/b"}, []any{"a-long-name", "new"}, []any{"b", "new"})
	same, _ := listing(t, `[{"v":1},{"v":2}]`, []string{"x/a-long-name", "x/b"}, []any{"a-long-name", "older"}, []any{"b", "older"})
	next, _ := listing(t, `[{"v":1},{"v":3},{"v":4}]`, []string{"x/a-long-name", "x/b", "x/c"}, []any{"a-long-name", "new"}, []any{"b", "done"}, []any{"c", "new"})
	for format, want := range map[string]string{
		"table": "NAME          STATE\na-long-name   new\nb             new\nb             done\nc             new\n",
		"name":  "x/a-long-name\nx/b\nx/b\nx/c\n",
		"json":  "{\"v\":1}\n{\"v\":2}\n{\"v\":3}\n{\"v\":4}\n",
		"yaml":  "---\nv: 1\n---\nv: 2\n---\nv: 3\n---\nv: 4\n",
	} {
		var b bytes.Buffer
		p := output.Printer{W: &b, Format: format}
		var before *output.Listing
		for _, l := range []*output.Listing{none, first, same, next} {
			if err := l.Show(p, before); err != nil {
				t.Fatal(err)
			}
			before = l
		}
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("-o %s: %s", format, diff)
		}
	}
	for _, r := range []output.Result{
		{Value: map[string]int{"v": 1}}, {Value: json.RawMessage(`{"items":[{}]}`), Table: output.NewTable("A"), Names: []string{"a"}}, {Value: json.RawMessage(`{"items":[]}`)},
	} {
		if _, err := output.NewListing(r); err == nil {
			t.Errorf("%v was taken for a list", r)
		}
	}
}

// Lists of several projects have their namespaces, and the columns of all.
func TestJoin(t *testing.T) {
	t.Parallel()
	all := output.NewTable("NAMESPACE")
	blog, blogTable := listing(t, `[{"name":"a"},{},{"namespace":"own"}]`, []string{"x/a", "x/b", "x/c"}, []any{"a", "ready"}, []any{"b", "ready"}, []any{"c", "x"})
	other := output.NewTable("NAME", "MESSAGE", "STATE")
	other.Row("d", "why", "failed")
	all.Join("blog", blogTable)
	all.Join("shop", other)
	want := "NAMESPACE   NAME   STATE    MESSAGE\nblog        a      ready\nblog        b      ready\nblog        c      x\nshop        d      failed   why\n"
	if diff := cmp.Diff(want, printed(t, output.Printer{Format: "table"}, output.Result{Table: all})); diff != "" {
		t.Error(diff)
	}
	raw, err := json.Marshal(blog.ItemsOf("b\"log"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`[{"namespace":"b\"log","name":"a"},{"namespace":"b\"log"},{"namespace":"own"}]`, string(raw)); diff != "" {
		t.Error(diff)
	}
}
