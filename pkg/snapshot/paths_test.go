package snapshot_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/snapshot"
)

func TestChangedPaths(t *testing.T) {
	t.Parallel()
	many, other := bson.D{}, bson.D{}
	for n := range 25 {
		many = append(many, bson.E{Key: fmt.Sprint("f", n), Value: 1})
		other = append(other, bson.E{Key: fmt.Sprint("f", n), Value: 2})
	}
	for name, tt := range map[string]struct {
		a, b bson.D
		want []string
		more bool
	}{
		"same":         {bson.D{{Key: "a", Value: 1}}, bson.D{{Key: "a", Value: 1}}, nil, false},
		"types":        {bson.D{{Key: "a", Value: int32(1)}}, bson.D{{Key: "a", Value: int64(1)}}, []string{"a"}, false},
		"inside":       {bson.D{{Key: "a", Value: bson.D{{Key: "b", Value: bson.A{1, 2}}, {Key: "c", Value: 1}}}}, bson.D{{Key: "a", Value: bson.D{{Key: "b", Value: bson.A{1, 3, 4}}, {Key: "c", Value: 1}}}}, []string{"a.b.1", "a.b.2"}, false},
		"gone and new": {bson.D{{Key: "a", Value: 1}, {Key: "b", Value: bson.D{}}}, bson.D{{Key: "b", Value: bson.D{}}, {Key: "c", Value: 1}}, []string{"a", "c"}, false},
		"order":        {bson.D{{Key: "a", Value: 1}, {Key: "b", Value: 1}}, bson.D{{Key: "b", Value: 1}, {Key: "a", Value: 1}}, []string{""}, false},
		"names":        {bson.D{{Key: "a.b", Value: 1}, {Key: "", Value: 1}}, bson.D{}, []string{`"a.b"`, `""`}, false},
		"many":         {many, other, []string{"f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10", "f11", "f12", "f13", "f14", "f15", "f16", "f17", "f18", "f19"}, true},
	} {
		a, err := bson.Marshal(tt.a)
		if err != nil {
			t.Fatal(err)
		}
		b, err := bson.Marshal(tt.b)
		if err != nil {
			t.Fatal(err)
		}
		got, more := snapshot.ChangedPaths(a, b)
		if diff := cmp.Diff(tt.want, got); diff != "" || more != tt.more {
			t.Errorf("%s: %s, more %v", name, diff, more)
		}
	}
}
