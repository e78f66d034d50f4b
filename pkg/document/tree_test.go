package document_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// Map changes what it is told to, wherever it is, and leaves the tree that it is given as it was.
func TestMap(t *testing.T) {
	tree := func(x any) bson.D {
		return bson.D{{Key: "a", Value: x}, {Key: "b", Value: bson.A{x, int64(1), bson.D{{Key: "x", Value: x}}}}, {Key: "kept", Value: bson.D{{Key: "c", Value: "x"}}}}
	}
	given := tree("x")
	got := document.Map(given, func(v any) (any, bool) {
		switch v := v.(type) {
		case string:
			return v + "!", true
		case bson.D:
			return v, v[0].Key == "c"
		}
		return nil, false
	})
	if diff := cmp.Diff(tree("x!"), got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(tree("x"), given); diff != "" {
		t.Error(diff)
	}
}
