package mql_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/mqltest"
)

func TestSortKey(t *testing.T) {
	tests := []struct {
		doc       string
		path      string
		asc, desc string
	}{
		{`{"a":1}`, "a", `1`, `1`},
		{`{}`, "a", `null`, `null`},
		{`{"a":[3,1,2]}`, "a", `1`, `3`},
		{`{"a":[3,null,"x"]}`, "a", `null`, `"x"`},
		{`{"a":[]}`, "a", `{"$undefined":true}`, `{"$undefined":true}`},
		{`{"a":[[2,1],5]}`, "a", `5`, `[2,1]`},
		{`{"a":[[]]}`, "a", `[]`, `[]`},
		{`{"a":{"b":1}}`, "a.b", `1`, `1`},
		{`{"a":1}`, "a.b", `null`, `null`},
		{`{"a":[{"b":2},{"b":1}]}`, "a.b", `1`, `2`},
		{`{"a":[{"b":2},{}]}`, "a.b", `null`, `2`},
		{`{"a":[{"b":2},7]}`, "a.b", `null`, `2`},
		{`{"a":[{"b":[4,2]},{"b":3}]}`, "a.b", `2`, `4`},
		{`{"a":[{"b":[]},{"b":3}]}`, "a.b", `{"$undefined":true}`, `3`},
		{`{"a":[]}`, "a.b", `null`, `null`},
		{`{"a":[[{"b":1}]]}`, "a.b", `null`, `null`},
		{`{"a":[7,8]}`, "a.1", `8`, `8`},
		{`{"a":[[7,8]]}`, "a.0", `[7,8]`, `[7,8]`},
		{`{"a":[[]]}`, "a.0", `{"$undefined":true}`, `{"$undefined":true}`},
		{`{"a":[{"b":7},{"b":8}]}`, "a.1.b", `8`, `8`},
	}
	for _, test := range tests {
		doc := raw(t, parse(t, test.doc))
		for _, desc := range []bool{false, true} {
			key := mql.Sort{{Path: test.path, Desc: desc}}.Key(doc)
			want := test.asc
			if desc {
				want = test.desc
			}
			w := raw(t, parse(t, `{"v":`+want+`}`)).Lookup("v")
			if len(key) != 1 || key[0].Type != w.Type || document.Compare(key[0], w) != 0 {
				t.Errorf("%s by %s desc=%v: got %v, want %v", test.doc, test.path, desc, key, w)
			}
		}
	}
}

func TestSortKeyInOneList(t *testing.T) {
	doc := raw(t, parse(t, `{"a":[{"b":2,"c":1},{"b":1,"c":5},{"b":1,"c":4}],"d":[9,8]}`))
	key := mql.Sort{{Path: "a.b"}, {Path: "d", Desc: true}, {Path: "a.c"}}.Key(doc)
	if got := fmt.Sprint(key[0].Int32(), key[1].Int32(), key[2].Int32()); got != "1 9 4" {
		t.Errorf("got %s", got)
	}
}

func TestSortKeyOfManyListsIsCheap(t *testing.T) {
	list := bson.A{}
	for i := range 1000 {
		list = append(list, int32(i))
	}
	var doc bson.D
	var s mql.Sort
	for i := range 8 { // all combinations would be 1000^8
		name := fmt.Sprint("f", i)
		doc = append(doc, bson.E{Key: name, Value: list})
		s = append(s, mql.SortField{Path: name, Desc: i%2 == 0})
	}
	for i, v := range s.Key(raw(t, doc)) {
		if want := int32(999 * ((i + 1) % 2)); v.Int32() != want {
			t.Errorf("field %d: %d, want %d", i, v.Int32(), want)
		}
	}
}

func TestSortAfter(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		s := mqltest.Sort(r)
		if r.IntN(5) == 0 {
			s = append(mql.Sort{s[0]}, s...) // a field twice
		}
		docs := make([]bson.Raw, 30)
		for i := range docs {
			docs[i] = raw(t, mqltest.Doc(r, int32(i)))
		}
		for _, at := range docs[:10] {
			key := s.Key(at)
			f := s.After(key)
			for _, doc := range docs {
				if want := s.Compare(doc, at) > 0; f.Match(doc) != want {
					t.Fatalf("sort %v after %v: %v is behind: %v, want %v", s, key, doc, f.Match(doc), want)
				}
			}
		}
	}
}

func TestSortAfterWithoutFields(t *testing.T) {
	if (mql.Sort{}).After(nil).Match(raw(t, bson.D{})) {
		t.Error("there is something behind the end")
	}
}
