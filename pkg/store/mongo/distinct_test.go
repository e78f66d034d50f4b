package mongo_test

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
)

// TestDistinctReadsNoIndexKeys has values that an index has and documents don't.
func TestDistinctReadsNoIndexKeys(t *testing.T) {
	t.Parallel()
	_, db := database(t)
	c := db.Collection("c")
	mustWrite(t, c, insertion(t, `{"_id":1,"a":[]}`), insertion(t, `{"_id":2}`), insertion(t, `{"_id":3,"a":[[1],1]}`))
	for _, index := range []string{"", "a"} {
		if index != "" {
			if err := c.CreateIndex(t.Context(), store.Index{Name: index, Keys: []store.IndexKey{{Path: index}}}); err != nil {
				t.Fatal(err)
			}
		}
		got, err := c.Distinct(t.Context(), "a", nil)
		if err != nil || len(got) != 2 || got[0].Type != bson.TypeInt32 || got[1].Type != bson.TypeArray {
			t.Errorf("with index %q: %v, %v", index, got, err)
		}
	}
	big := insertion(t, `{"_id":4,"s":"`+strings.Repeat("x", 9<<20)+`"}`)
	other := insertion(t, `{"_id":5,"s":"`+strings.Repeat("y", 9<<20)+`"}`)
	mustWrite(t, c, big, other)
	if _, err := c.Distinct(t.Context(), "s", nil); outcome(err) != "distinct_too_large" {
		t.Errorf("of 18 MB: %v", err)
	}
}

// TestDistinctOfRouters finds what a server does, without its command.
func TestDistinctOfRouters(t *testing.T) {
	t.Parallel()
	s, db := database(t)
	mustWrite(t, db.Collection("c"),
		insertion(t, `{"_id":1,"a":1,"d":{"e":[1,[2],{"f":1}]}}`), insertion(t, `{"_id":2,"a":[1.0,2,[3],null,[]],"d":[{"e":5},[{"e":6}],7,{"e":[8,9]}]}`),
		insertion(t, `{"_id":3,"a":{"x":1},"d":[{"0":"zero"},"one"]}`), insertion(t, `{"_id":4,"a":"x","d":{"0":{"e":"under 0"}}}`), insertion(t, `{"_id":5,"a":[]}`),
	)
	for _, path := range []string{"_id", "a", "a.0", "a.2", "a.2.0", "a.00", "a.x", "d", "d.e", "d.0", "d.0.e", "d.1.0.e", "d.e.2.f", "d.e.f", "none"} {
		s.SetSharded(false)
		want, err := db.Collection("c").Distinct(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.SetSharded(true)
		got, err := db.Collection("c").Distinct(t.Context(), path, nil)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v; %v", path, got, want, err)
		}
	}
}
