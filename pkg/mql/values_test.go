package mql_test

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
)

func TestEachValue(t *testing.T) {
	var d bson.D
	const text = `{"a":1,"l":[1,[2],{"x":3}],"d":{"e":[{"f":4},{"f":[5,6]},7,[{"f":8}]]},"z":[{"0":9,"01":10},11],"n":null,"empty":[]}`
	if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
		t.Fatal(err)
	}
	doc, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"a": "1", "a.b": "", "none": "", "n": "null", "empty": "", "empty.0": "",
		"l": `1 [2] {"x": 3}`, "l.x": "3", "l.0": "1", "l.1": "2", "l.2.x": "3", "l.3": "",
		"d.e.f": "4 5 6", "d.e.1.f": "5 6", "d.e.3.f": "8", "d.e.3.0.f": "8",
		"z.0": `{"0": 9,"01": 10}`, "z.0.0": "9", "z.01": "", "z.0.01": "10",
	} {
		var got []string
		err := mql.EachValue(doc, path, func(v bson.RawValue) error {
			got = append(got, strings.NewReplacer(`{"$numberInt":"`, "", `"}`, "").Replace(v.String()))
			return nil
		})
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s (%v)", path, strings.Join(got, " "), want, err)
		}
	}
}
