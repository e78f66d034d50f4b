package mongo_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/mongo"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

// database gives a database of its own on the shared server. It is dropped when t ends.
func database(t *testing.T) (*mongo.Store, store.Database) {
	t.Helper()
	s := open(t, mongotest.URI(t))
	return s, databaseOn(t, s)
}

func databaseOn(t *testing.T, s *mongo.Store) store.Database {
	t.Helper()
	name := "test_" + bson.NewObjectID().Hex()
	t.Cleanup(func() {
		if err := s.DropDatabase(context.WithoutCancel(t.Context()), name); err != nil {
			t.Error(err)
		}
	})
	return s.Database(name)
}

func object(t *testing.T, json string) bson.D {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(json), false, &d); err != nil {
		t.Fatalf("%s: %v", json, err)
	}
	return d
}

func doc(t *testing.T, json string) bson.Raw {
	t.Helper()
	raw, err := bson.Marshal(object(t, json))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func value(t *testing.T, json string) bson.RawValue {
	t.Helper()
	return doc(t, `{"v":`+json+`}`).Lookup("v")
}

func filter(t *testing.T, json string) *mql.Filter {
	t.Helper()
	f, err := mql.Compile(object(t, json))
	if err != nil {
		t.Fatalf("%s: %v", json, err)
	}
	return f
}

func insertion(t *testing.T, json string) store.Op {
	t.Helper()
	return store.Op{Kind: store.Insert, Doc: doc(t, json)}
}

func replacement(t *testing.T, json string) store.Op {
	t.Helper()
	return store.Op{Kind: store.Replace, Doc: doc(t, json)}
}

func deletion(t *testing.T, id string) store.Op {
	t.Helper()
	return store.Op{Kind: store.Delete, ID: value(t, id)}
}

// mustWrite applies ops, each of which must succeed.
func mustWrite(t *testing.T, w store.Writer, ops ...store.Op) {
	t.Helper()
	results, err := w.Write(t.Context(), ops, false)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.Err != nil {
			t.Fatalf("op %d: %v", i, r.Err)
		}
	}
}

// ids gives the ids of all documents, in their order.
func ids(t *testing.T, r store.Reader) string {
	t.Helper()
	var all []string
	err := r.Find(t.Context(), store.Query{Sort: mql.Sort{{Path: "_id"}}}, func(doc bson.Raw) error {
		all = append(all, name(doc.Lookup("_id")))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// name prints an id: text plainly.
func name(id bson.RawValue) string {
	if s, ok := id.StringValueOK(); ok {
		return s
	}
	if n, ok := id.AsInt64OK(); ok {
		return strconv.FormatInt(n, 10)
	}
	return id.String()
}
