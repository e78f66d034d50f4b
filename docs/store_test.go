package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store/storetest/differ"
)

// TestStoreDoc compiles the examples of store.md, and looks for the tests that it names.
func TestStoreDoc(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("store.md")
	if err != nil {
		t.Fatal(err)
	}
	compile := map[string]func(d bson.D) error{
		"filter":     func(d bson.D) error { _, err := mql.Compile(d); return err },
		"projection": func(d bson.D) error { _, err := mql.CompileProjection(d); return err },
		"update":     func(d bson.D) error { _, err := mql.CompileUpdate(d, nil); return err },
	}
	blocks := regexp.MustCompile("(?ms)^```json (refused )?(\\w+)$\n(.*?)\n```$").FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 6 {
		t.Fatalf("%d blocks of examples", len(blocks))
	}
	for _, block := range blocks {
		for line := range strings.Lines(block[3]) {
			var d bson.D
			if err := bson.UnmarshalExtJSON([]byte(line), false, &d); err != nil {
				t.Errorf("%s: %v", line, err)
				continue
			}
			if err := compile[block[2]](d); (err != nil) != (block[1] != "") {
				t.Errorf("%s %s%v: %v", block[2], block[1], line, err)
			}
		}
	}
	operators(t, string(text))
	named(t, string(text))
	for _, d := range differ.Deliberate() {
		if id := "`" + d.ID + "`"; !strings.Contains(string(text), id) {
			t.Errorf("the difference %s is not there", id)
		}
	}
}

// operators checks that what the table lists is taken: anything else is refused by name.
func operators(t *testing.T, text string) {
	t.Helper()
	for _, c := range []struct {
		row     string
		unknown func(op string) error
	}{
		{"| Filters |", func(op string) error {
			_, err := mql.Compile(bson.D{{Key: "a", Value: bson.D{{Key: op, Value: 1}}}})
			if _, logical := mql.Compile(bson.D{{Key: op, Value: bson.A{bson.D{{Key: "a", Value: 1}}}}}); logical == nil {
				return nil
			}
			return err
		}},
		{"| Updates |", func(op string) error {
			_, err := mql.CompileUpdate(bson.D{{Key: op, Value: bson.D{}}}, nil)
			return err
		}},
	} {
		_, row, ok := strings.Cut(text, c.row)
		row, _, _ = strings.Cut(row, "\n")
		row = regexp.MustCompile(`\([^)]*\)`).ReplaceAllString(row, "") // what is within others
		row, _, _ = strings.Cut(row, "with the positions")
		ops := regexp.MustCompile(`\$\w+`).FindAllString(row, -1)
		if !ok || len(ops) < 10 {
			t.Errorf("the table lists %v for %s", ops, c.row)
		}
		for _, op := range ops {
			if err := c.unknown(op); err != nil && strings.Contains(err.Error(), "not supported") {
				t.Errorf("%s %s: %v", c.row, op, err)
			}
		}
	}
}

// named checks that the tests which the document tells to run are there.
func named(t *testing.T, text string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`go test \./(\S+) -run (\w+)`).FindAllStringSubmatch(text, -1) {
		files, err := os.ReadDir("../" + m[1])
		if err != nil {
			t.Error(err)
		}
		found := false
		for _, f := range files {
			if strings.HasSuffix(f.Name(), "_test.go") {
				source, err := os.ReadFile("../" + m[1] + "/" + f.Name())
				found = found || err == nil && strings.Contains(string(source), "func "+m[2]+"(")
			}
		}
		if !found {
			t.Errorf("%s has no test %s", m[1], m[2])
		}
	}
}
