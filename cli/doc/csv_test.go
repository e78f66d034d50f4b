package doc

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/api"
)

// csvFields are those of the collection of these tests.
func csvFields() []api.FieldDescription {
	return []api.FieldDescription{
		{Name: "title", Type: "string"},
		{Name: "price", Type: "number"},
		{Name: "sale", Type: "boolean"},
		{Name: "at", Type: "date"},
		{Name: "tags", Type: "string[]"},
		{Name: "seo", Type: "object", SubFields: []api.FieldDescription{{Name: "title", Type: "string"}, {Name: "depth", Type: "number"}}},
		{Name: "free", Type: "object"},
		{Name: "more", Type: "any"},
		{Name: "picture", Type: "file"},
	}
}

// asCSV is what an export of records writes.
func asCSV(t *testing.T, selected string, records ...string) string {
	t.Helper()
	var b bytes.Buffer
	w, err := newCSVWriter(&b, csvFields(), selected != "", selectedPaths(selected))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	for _, r := range records {
		if err := w.Write(api.Record(r)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// fromCSV is what an import reads.
func fromCSV(text string) (records []string, err error) {
	for r, err := range readCSV(strings.NewReader(text), csvFields()) {
		if err != nil {
			return records, err
		}
		records = append(records, string(r))
	}
	return records, nil
}

// What is written is read again as it was, whatever it is.
func TestCSVRoundTrip(t *testing.T) {
	t.Parallel()
	records := []string{
		`{"id":"x","title":"plain, with \"quotes\"","price":9007199254740993,"sale":true,"at":"2026-01-02T03:04:05Z","_rev":1}`,
		`{"id":"x","title":"","tags":["a","b"],"seo":{"title":"S","depth":1.50},"free":{"a":{"b":1}},"more":12,"_rev":2}`,
		`{"id":"x","title":"null","tags":[],"seo":{},"free":{},"more":"12"}`,
		`{"id":"x","title":null,"seo":null,"more":null,"extra":"1"}`,
		`{"id":"x","title":"two\nlines\tand more","more":" spaced "}`,
		`{"id":"x","title":"\"quoted\"","more":"text","extra":{"deep":true}}`,
		`{"id":"x","title":"  ","more":"","extra":"\"x\""}`,
		`{"id":"x","title":"007","price":-0.5e10,"more":"true","extra":"a\r\nb\u001b[31m"}`,
		`{"id":"x","picture":{"src":"/api/v1/_/p/c/x/picture/a.png","path":"a.png","size":3}}`,
		`{"id":"x"}`,
	}
	got, err := fromCSV(asCSV(t, "", records...))
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		var want, have map[string]any
		if json.Unmarshal([]byte(records[i]), &want) != nil || json.Unmarshal([]byte(got[i]), &have) != nil {
			t.Fatalf("no JSON: %s", got[i])
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s: %s", records[i], diff)
		}
	}
	if !strings.Contains(got[0], "9007199254740993") || !strings.Contains(got[1], "1.50") {
		t.Errorf("digits are lost: %s", got)
	}
}

func TestCSVForm(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		selected string // - for a projection
		records  []string
		want     string
	}{
		{"-", nil, ""},
		{"", nil, "title,price,sale,at,tags,seo.title,seo.depth,free,more,picture\n"},
		{"seo,title,new", nil, "seo.title,seo.depth,title,new\n"},
		{"title,seo.title", []string{`{"id":"1","seo":{"title":"S"}}`, `{"id":"2","seo":{}}`, `{"id":"3","title":"T","seo":null}`}, "id,title,seo.title,seo\n1,,S,\n2,,,\n3,T,,null\n"},
		{"-", []string{`{"createdAt":"d","extra":1,"title":"T","id":"1"}`}, "id,title,extra,createdAt\n1,T,1,d\n"},
		{"-", []string{`{"seo":{"depth":2,"new":3}}`, `{"seo":[1]}`}, "seo,seo.depth,seo.new\n,2,3\n[1],,\n"},
		{"-", []string{`{"title":"a"}`, `{}`, `{"title":"b"}`}, "title\na\n\"\"\nb\n"},
		{"-", []string{`{"title":"=1+1","tags":["x,y"]}`}, "title,tags\n=1+1,\"[\"\"x,y\"\"]\"\n"},
		{"-", []string{`{"title":"\u001b[31m\u202e"}`}, "title\n\"\"\"\\u001b[31m\\u202e\"\"\"\n"},
	} {
		if diff := cmp.Diff(tc.want, asCSV(t, tc.selected, tc.records...)); diff != "" {
			t.Errorf("%v: %s", tc.records, diff)
		}
	}
}

func TestReadCSV(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want, err string }{
		{in: ""},
		{in: "title,price\n"},
		{in: "\ufefftitle,price\na,1\n", want: `{"title":"a","price":1}`},
		{in: "title;price\r\na, b;1\r\n", want: `{"title":"a, b","price":1}`},
		{in: "title\tprice\na\t1\n", want: `{"title":"a","price":1}`},
		{in: " title , price \n a , 1 \n", want: `{"title":" a ","price":1}`},
		{in: "title,seo.title,seo.depth\na,b,\n,,3\n", want: `{"title":"a","seo":{"title":"b"}} {"seo":{"depth":3}}`},
		{in: "sale\nTRUE\nno\n0\n", want: `{"sale":true} {"sale":false} {"sale":false}`},
		{in: "tags,free,more,other\n\"[\"\"a\"\"]\",{},x,007\n", want: `{"tags":["a"],"free":{},"more":"x","other":"007"}`},
		{in: "more,other\n1,true\n", want: `{"more":1,"other":true}`},
		{in: "title,price\n\"a\nb\",\n", want: `{"title":"a\nb"}`},
		{in: "price\n12a\n", err: `record 1 (line 2): price: "12a" is not a number`},
		{in: "price\n1\ntrue\n", want: `{"price":1}`, err: `record 2 (line 3): price: "true" is not a number`},
		{in: "sale\nmaybe\n", err: `"maybe" is not true or false`},
		{in: "tags\na\n", err: `"a" is not a JSON list, such as ["a", "b"]`},
		{in: "free\n[]\n", err: `"[]" is not a JSON object`},
		{in: "picture\na.png\n", err: `"a.png" is not a JSON object`},
		{in: "title,title\na,b\n", err: `two columns are named "title"`},
		{in: "title,\na,b\n", err: `column 2 is named ""`},
		{in: "a..b\n1\n", err: `column 1 is named "a..b"`},
		{in: "title,price\na\n", err: "record 1: record on line 2: wrong number of fields"},
		{in: "title\n\"a", err: "record 1: "},
		{in: "seo,seo.title\n{},x\n", err: "seo has a value, and so has its member title"},
	} {
		got, err := fromCSV(tc.in)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if strings.Join(got, " ") != tc.want || (text == "") != (tc.err == "") || !strings.Contains(text, tc.err) {
			t.Errorf("%q: got %q, %q", tc.in, got, text)
		}
	}
}

// Whatever the text, reading it ends, and what it gives is valid JSON; what is written of that is read again the same.
func FuzzCSV(f *testing.F) {
	for _, s := range []string{"title,price\na,1", "seo,seo.title\n{},", "more\n\"\"\"x\"\"\"", "a;b\n1;2", "title\n\"\"\n", "x.y,x\n1,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		first, err := fromCSV(strings.ToValidUTF8(s, "?"))
		if err != nil {
			return
		}
		for _, r := range first {
			if !json.Valid([]byte(r)) {
				t.Fatalf("%q gave %q", s, r)
			}
		}
		again, err := fromCSV(asCSV(t, "", first...))
		if err != nil {
			t.Fatalf("%q: %v", first, err)
		}
		if len(first) != len(again) {
			t.Fatalf("%d records became %d", len(first), len(again))
		}
		for i := range first {
			if !same(json.RawMessage(first[i]), json.RawMessage(again[i])) {
				t.Fatalf("%s became %s", first[i], again[i])
			}
		}
	})
}
