package doc

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/cli/command/commandtest"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

func TestRecordTable(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 50)
	plain := []api.Record{
		api.Record(`{"title":"T","id":"1","tags":["x","y"],"n":null,"createdAt":"d"}`),
		api.Record(`{"id":"2","title":"` + long + `","views":3,"tags":[],"a":1,"b":2,"c":3,"d":4}`),
	}
	nested := []api.Record{
		api.Record(`{"id":"1","title":"T","speaker":{"id":"9","name":"Ann","home":{"city":"Ulm"}},"lines":[{"sku":"A","n":1},{"sku":"B"}]}`),
		api.Record(`{"id":"2","speaker":{"id":"8","name":{"first":"Bo"}},"lines":[{"sku":null}]}`),
	}
	scored := []api.Record{
		api.Record(`{"id":"1","t":"A","_score":31.755306243896484}`), api.Record(`{"id":"2","t":"B","_score":-0.031377702951431274}`),
		api.Record(`{"id":"3","t":"C","_score":123456.789}`),
	}
	for name, tc := range map[string]struct {
		records []api.Record
		look    look
		want    string
		left    bool
	}{
		"the id, and the first plain members": {plain, look{}, `
ID   TITLE                                      N   VIEWS   A   B
1    T
2    ` + strings.Repeat("ä", 39) + `…       3       1   2
`, false},
		"what a terminal has room for": {plain, look{Width: 32}, `
ID   TITLE                  N
1    T
2    ` + strings.Repeat("ä", 22) + `…
`, true},
		"a score has four digits": {scored, look{Select: "t"}, `
ID   T   _SCORE
1    A   31.76
2    B   -0.03138
3    C   123457
`, false},
		"wide is its whole score": {scored, look{Select: "t", Wide: true}, `
ID   T   _SCORE
1    A   31.755306243896484
2    B   -0.031377702951431274
3    C   123456.789
`, false},
		"wide is whole": {plain, look{Wide: true, Width: 32}, `
ID   TITLE                                                TAGS   N   CREATEDAT   VIEWS   A   B   C   D
1    T                                                    x, y       d
2    ` + long + `   []                     3       1   2   3   4
`, false},
		"paths that are selected, in their order": {nested, look{Select: "lines.sku, title, speaker.home.city,id"}, `
ID   LINES.SKU   TITLE   SPEAKER.HOME.CITY
1    A, B        T       Ulm
2
`, false},
		"what comes beside the selection": {nested, look{Select: "title"}, `
ID   TITLE   SPEAKER                               LINES
1    T       {"name":"Ann","home":{"city":"Ulm"}}   [{"sku":"A","n":1},{"sku":"B"}]
2            {"name":{"first":"Bo"}}               [{"sku":null}]
`, false},
		"what is selected stays on a narrow terminal": {nested, look{Select: "speaker.name,title", Width: 10}, `
ID   SPEAKER.NAME   TITLE   LINES
1    Ann            T       [{"sk…
2    {"first":"B…           [{"sk…
`, false},
		"a selection that leaves out": {nested, look{Select: "-lines"}, `
ID   TITLE   SPEAKER                               LINES
1    T       {"name":"Ann","home":{"city":"Ulm"}}   [{"sku":"A","n":1},{"sku":"B"}]
2            {"name":{"first":"Bo"}}               [{"sku":null}]
`, false},
		"results of a pipeline": {[]api.Record{api.Record(`{"_id":{"s":"a","y":{"z":1}},"n":2,"of":[{"a":1}]}`), api.Record(`{"_id":null,"n":3}`)}, look{Whole: true}, `
_ID.S   _ID.Y.Z   N   OF          _ID
a       1         2   [{"a":1}]
                  3
`, false},
		"no records": {nil, look{}, "", false},
	} {
		table, left, err := recordTable(tc.records, tc.look)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		p := output.Printer{W: &b, Format: output.FormatTable}
		if err := p.Print(output.Result{Table: table}); err != nil {
			t.Fatal(err)
		}
		squeeze := func(s string) string {
			return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' }), " ")
		}
		if diff := cmp.Diff(squeeze(strings.TrimPrefix(tc.want, "\n")), squeeze(b.String())); diff != "" || left != tc.left {
			t.Errorf("%s: left out: %v\n%s", name, left, diff)
		}
	}
	if _, _, err := recordTable([]api.Record{api.Record(`[1]`)}, look{}); err == nil {
		t.Error("what is no object made a table")
	}
}

// A record is shown value by value, and long texts in lines that the terminal has room for.
func TestShow(t *testing.T) {
	t.Parallel()
	record := api.Record(`{"id":"1","text":"one two three four five six\nseven\u001b","to":{"city":"Ulm","none":{}},"tags":["a","b"],"lines":[{"n":1},{"n":2}],"_i18n":{"de":{"text":"eins"}}}`)
	for width, want := range map[int]string{
		0: `
FIELD           VALUE
id              1
text            one two three four five six\nseven\x1b
to.city         Ulm
to.none         {}
tags            a, b
lines.0         {"n":1}
lines.1         {"n":2}
_i18n.de.text   eins
`,
		32: `
FIELD           VALUE
id              1
text            one two three
                four five six
                seven\x1b
to.city         Ulm
to.none         {}
tags            a, b
lines.0         {"n":1}
lines.1         {"n":2}
_i18n.de.text   eins
`,
	} {
		var out bytes.Buffer
		st := commandtest.State(t)
		st.Out, st.OutWidth = &out, width
		if err := show(st, place{"blog", "articles"}, record); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), out.String()); diff != "" {
			t.Errorf("width %d: %s", width, diff)
		}
	}
}
