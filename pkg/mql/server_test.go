package mql_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
)

// readCases reads a file of answers that MongoDB 6.0.5 gave: documents, whose _id is their index, and cases.
func readCases[T any](t *testing.T, name string) (docs []bson.Raw, cases []T) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Docs  []json.RawMessage
		Cases []T
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for _, doc := range file.Docs {
		docs = append(docs, raw(t, parse(t, string(doc))))
	}
	return docs, file.Cases
}

func TestMatchAsServer(t *testing.T) {
	type answer struct {
		Filter  json.RawMessage
		Matches []int
	}
	docs, cases := readCases[answer](t, "filters.json")
	if len(docs) == 0 || len(cases) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range cases {
		f := compile(t, string(c.Filter))
		got := []int{}
		for i, doc := range docs {
			if f.Match(doc) {
				got = append(got, i)
			}
		}
		if diff := cmp.Diff(c.Matches, got); diff != "" {
			t.Errorf("%s: (-server +got)\n%s", c.Filter, diff)
		}
	}
}

func TestSortAsServer(t *testing.T) {
	type answer struct {
		Sort  [][2]any
		Order []int
	}
	docs, cases := readCases[answer](t, "sorts.json")
	if len(docs) == 0 || len(cases) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range cases {
		var s mql.Sort
		for _, f := range c.Sort {
			s = append(s, mql.SortField{Path: f[0].(string), Desc: f[1].(float64) < 0})
		}
		got := make([]int, len(docs))
		for i := range got {
			got[i] = i
		}
		slices.SortFunc(got, func(a, b int) int { return s.Compare(docs[a], docs[b]) })
		if diff := cmp.Diff(c.Order, got); diff != "" {
			t.Errorf("%v: (-server +got)\n%s", c.Sort, diff)
		}
	}
}
