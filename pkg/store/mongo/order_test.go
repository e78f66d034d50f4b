package mongo_test

import (
	"context"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

// A page in the order of an index is read from the index, whichever way it goes, though the id makes its order total.
func TestAnIndexGivesTheOrderThatTheIDMakesTotal(t *testing.T) {
	t.Parallel()
	s := open(t, mongotest.URI(t))
	db := "order_" + bson.NewObjectID().Hex()
	t.Cleanup(func() {
		if err := s.DropDatabase(context.WithoutCancel(t.Context()), db); err != nil {
			t.Error(err)
		}
	})
	c := s.Database(db).Collection("c")
	want := store.Index{Name: "n", Keys: []store.IndexKey{{Path: "n"}}}
	if err := c.CreateIndex(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	var ops []store.Op
	for i := range 300 {
		doc, err := document.Marshal(bson.D{{Key: "_id", Value: bson.NewObjectID()}, {Key: "n", Value: int64(i % 10)}})
		if err != nil {
			t.Fatal(err)
		}
		ops = append(ops, store.Op{Kind: store.Insert, Doc: doc})
	}
	if _, err := c.Write(t.Context(), ops, true); err != nil {
		t.Fatal(err)
	}
	for _, desc := range []bool{false, true} {
		q := store.Query{Sort: mql.Sort{{Path: "n", Desc: desc}, {Path: "_id", Desc: desc}}, Limit: 20}
		e, err := c.Explain(t.Context(), q)
		if err != nil || e.SortInMemory || e.DocsExamined > 21 || strings.Join(e.Indexes, " ") != "n" {
			t.Errorf("descending %v: %+v, %v", desc, e, err)
		}
	}
	own := store.Index{Name: "own", Keys: []store.IndexKey{{Path: "_id"}, {Path: "n"}}} // it has the id already
	if err := c.CreateIndex(t.Context(), own); err != nil {
		t.Error(err)
	}
	if err := c.DropIndex(t.Context(), own.Name); err != nil {
		t.Error(err)
	}
	got, err := c.Indexes(t.Context())
	if err != nil || len(got) != 1 || len(got[0].Keys) != 1 {
		t.Errorf("listed as %+v, %v", got, err)
	}
}
