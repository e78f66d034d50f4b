package schema_test

import (
	"bytes"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/schema"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"a.yaml", "\n\n# first  \r\nb: 1\t\n\n\n\na: 2 # second\n\n", "# first\nb: 1\n\na: 2 # second\n"},
		{"a.yaml", "\xef\xbb\xbfa: 1", "a: 1\n"},
		{"a.yaml", "a: |\n  x  \n\n\n  y\nb: 1\r\n\n", "a: |\n  x  \n\n\n  y\nb: 1\n"}, // spaces in a text are meant
		{"a.yaml", "a: ${env:X}   \n", "a: ${env:X}\n"},
		{"a.json", "{\"a\":1, // one\n\"b\":[1,\n2]}", "{\n\t\"a\": 1, // one\n\t\"b\": [\n\t\t1,\n\t\t2,\n\t],\n}\n"},
		{"a.yaml", "a: [", ""},
		{"a.json", "{", ""},
		{"a.yaml", "", ""},
		{"a.yaml", "a: 1\na: 2\n", ""},
	} {
		got, err := schema.Format(tt.name, []byte(tt.in))
		if tt.want == "" && errs.KindOf(err) != errs.Invalid || tt.want != "" && (err != nil || string(got) != tt.want) {
			t.Errorf("%q: %q, %v", tt.in, got, err)
		}
	}
}

// FuzzFormat looks for texts that say something else afterwards, or have another form the second time.
func FuzzFormat(f *testing.F) {
	a, err := txtar.ParseFile("testdata/good/split.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range a.Files {
		f.Add(file.Name, file.Data)
	}
	for _, text := range []string{"a: |+\n  x \n\n\n", "a: 'x \n\n\n  y'\n", "? a \n: b\r\n", "a: \"x\\\n  y \"", "0\r", "a: >-\n  x\n\n\n  y  \n\n"} {
		f.Add("a.yaml", []byte(text))
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		out, err := schema.Format(name, data)
		if err != nil {
			return
		}
		again, err := schema.Format(name, out)
		if err != nil || !bytes.Equal(out, again) {
			t.Errorf("%q: %q, then %q: %v", data, out, again, err)
		}
	})
}
