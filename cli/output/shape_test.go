package output_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/cli/output"
)

// shaped writes JSON text through a shape, in pieces of so many bytes.
func shaped(t *testing.T, shape output.Shape, text string, piece int) (string, error) {
	t.Helper()
	var b bytes.Buffer
	w := output.NewShapeWriter(&b, shape, context.Background)
	for rest := []byte(text); len(rest) > 0; {
		n := min(piece, len(rest))
		if _, err := w.Write(rest[:n]); err != nil {
			return b.String(), err
		}
		rest = rest[n:]
	}
	err := w.Close()
	return b.String(), err
}

func shapeOf(t *testing.T, format string) output.Shape {
	t.Helper()
	parse := func() (output.Shape, error) { return output.ParseShape(format, false) }
	if name, expr, _ := strings.Cut(format, "="); name == "jq" {
		parse = func() (output.Shape, error) { return output.NewJQ(expr, false) }
	} else if name == "template" {
		parse = func() (output.Shape, error) { return output.NewTemplate(expr) }
	}
	shape, err := parse()
	if err != nil {
		t.Fatalf("%s: %v", format, err)
	}
	return shape
}

func TestShapes(t *testing.T) {
	t.Parallel()
	const list = `{"items":[{"name":"a","n":2,"big":9223372036854775807,"tags":["x","y"]},{"name":"b \"}","n":10,"f":1.5,"o":{"k":"<v>"}}],"hasMore":false}`
	for _, tc := range []struct{ format, in, want string }{
		{"jsonpath={.items[*].name}", list, "a b \"}\n"},
		{"jsonpath=.items[0].n", list, "2\n"},
		{"jsonpath=hasMore", list, "false\n"},
		{"jsonpath={.items[0].big}", list, "9223372036854775807\n"},
		{"jsonpath={.items[1].o}", list, "{\"k\":\"<v>\"}\n"},
		{`jsonpath={range .items[*]}{.name}{"\t"}{.n}{"\n"}{end}`, list, "a\t2\nb \"}\t10\n"},
		{`jsonpath={.items[?(@.n>2)].name}`, list, "b \"}\n"},
		{"jsonpath={.nothing.at.all}", list, ""},
		{"custom-columns=NAME:.name,N:.n,TAGS:.tags[*],O:.o.k", list, "NAME   N    TAGS     O\na      2    x,y      <none>\nb \"}   10   <none>   <v>\n"},
		{"custom-columns=NAME:{.name}", `{"name":"one"}`, "NAME\none\n"},
		{"custom-columns=A:.a[0,1],B:.b", `{"a":[1,2,3],"b":"x"}`, "A     B\n1,2   x\n"},
		{"custom-columns=NAME:.name", `{"items":[]}`, ""},
		{"custom-columns=NAME:.name", "{\"name\":\"one\"}\n{\"name\":\"two\"}\n", "NAME\none\ntwo\n"},
		{`go-template={{range .items}}{{.name}}:{{.n}} {{end}}`, list, "a:2 b \"}:10 \n"},
		{`template={{range .items}}{{if .tags}}{{join .tags "+"}}{{end}}{{if eq .n 10}}{{json .o}}{{end}}{{end}}`, list, "x+y{\"k\":\"<v>\"}\n"},
		{"jq=.items[] | .name", list, "a\nb \"}\n"},
		{"jq=[.items[].n] | add", list, "12\n"},
		{"jq=.items[0].big", list, "9223372036854775807\n"},
		{"jq=.items[1].o", list, "{\"k\":\"<v>\"}\n"},
		{"jq=empty", list, ""},
		{"jq=env | length", list, "0\n"},
		{"jq=.", "1 true \"a\\\"b\" null[2]{}3", "1\ntrue\na\"b\nnull\n[2]\n{}\n3\n"},
		{"jq=. + 1", "41", "42\n"},
		{"jq=.", "", ""},
	} {
		for _, piece := range []int{1, 7, 1 << 20} {
			got, err := shaped(t, shapeOf(t, tc.format), tc.in, piece)
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%s, %d bytes at once: %v %s", tc.format, piece, err, diff)
			}
		}
	}
}

// Null where a path goes on is nothing, and no end of the program.
func TestShapesOfNull(t *testing.T) {
	t.Parallel()
	for _, in := range []string{`null`, `{"items":null}`, `{"items":[null,{"a":null}]}`, `[null]`, `{"items":[{"a":{"b":null}}]}`} {
		for _, format := range []string{"jsonpath={.items[*].a.b}", "jsonpath={range .items[*]}{.a.b}{end}", "custom-columns=A:.a.b", "go-template={{.}}"} {
			if _, err := shaped(t, shapeOf(t, format), in, 100); err != nil {
				t.Errorf("%s of %s: %v", format, in, err)
			}
		}
	}
}

func TestShapesRefused(t *testing.T) {
	t.Parallel()
	for _, format := range []string{
		"jsonpath", "jsonpath=", "jsonpath={.a", "jsonpath={.a[}", "custom-columns", "custom-columns=A", "custom-columns=:.a", "custom-columns=A:", "custom-columns=A:.a[", "go-template={{.a",
	} {
		if shape, err := output.ParseShape(format, false); err == nil || shape != nil {
			t.Errorf("%s was accepted", format)
		}
	}
	for _, expr := range []string{".[", "nothing(1)", "import \"a\" as a; 1", "input", "$ENV.HOME | explode | implode | ltrimstr(1) | error"} {
		shape, err := output.NewJQ(expr, false)
		if err == nil {
			_, err = shaped(t, shape, "{}", 100)
		}
		if err == nil {
			t.Errorf("--jq %s was accepted", expr)
		}
	}
	for _, in := range []string{"a,b,c\n1,2,3\n", `{"a":`, "}", "# text"} {
		if _, err := shaped(t, shapeOf(t, "jq=."), in, 100); err == nil {
			t.Errorf("%q was taken for JSON", in)
		}
	}
}

func TestSortBy(t *testing.T) {
	t.Parallel()
	result := func() output.Result {
		table := output.NewTable("NAME")
		var names []string
		for _, n := range []string{"b", "a", "c", "d"} {
			table.Row(n)
			names = append(names, "x/"+n)
		}
		return output.Result{
			Value: json.RawMessage(`{"next":"<n>","items":[{"n":10,"s":"b"},{"n":9,"s":"a"},{"s":"c"},{"n":10,"s":"d"}],"z":1}`), Table: table, Names: names,
		}
	}
	for by, want := range map[string]string{".n": "c a b d", "-.n": "b d a c", "{.s}": "a b c d", "-s": "d c b a", ".none": "b a c d"} {
		var use output.OrderUse
		order, err := output.ParseOrder(by, &use)
		if err != nil {
			t.Fatal(err)
		}
		p := output.Printer{Format: "table", NoHeaders: true, Order: order}
		if got := strings.Join(strings.Fields(printed(t, p, result())), " "); got != want || !use.List || use.Found != (by != ".none") {
			t.Errorf("%s: got %s, want %s", by, got, want)
		}
		p.Format = "name"
		if got := strings.ReplaceAll(strings.Join(strings.Fields(printed(t, p, result())), " "), "x/", ""); got != want {
			t.Errorf("%s -o name: got %s, want %s", by, got, want)
		}
		p.Format = "json"
		var value struct {
			Next  string
			Items []struct{ S string }
		}
		raw := printed(t, p, result())
		if err := json.Unmarshal([]byte(raw), &value); err != nil || value.Next != "<n>" || strings.Index(raw, "next") > strings.Index(raw, "items") {
			t.Errorf("%s -o json: %v in %s", by, err, raw)
		}
		var got []string
		for _, item := range value.Items {
			got = append(got, item.S)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s -o json: got %v, want %s", by, got, want)
		}
	}
	var use output.OrderUse
	order, _ := output.ParseOrder(".n", &use)
	printed(t, output.Printer{Format: "json", Order: order}, output.Result{Value: map[string]int{"n": 1}})
	if _, err := output.ParseOrder("{.n", nil); use.List || err == nil {
		t.Errorf("what is no list was sorted, or half a path taken: %v", err)
	}
}
