package outside_test

import (
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/wire"
)

const snapshotConfig = `
namespace: shop
snapshots: [{name: daily, mode: db}]
collections:
  - {name: things, fields: [{name: sku, type: string}], permissions: {public: {methods: {}}, user: {methods: {}}}}
  - {name: none, permissions: {public: {methods: {}}, user: {methods: {}}}}
`

// TestMongorestoreOfSnapshot: what is in the db folder of a snapshot, mongorestore brings into another database: every record to the bit, and
// the indexes.
func TestMongorestoreOfSnapshot(t *testing.T) {
	restore := installed(t, "bin/mongorestore", "mongorestore")
	st, dir := open(t), t.TempDir()
	uri := endpoint(t, st, false, wire.Testing{})
	if err := os.WriteFile(filepath.Join(dir, "project.yaml"), []byte(snapshotConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	p, problems := project.Load(dir, "project.yaml", func(string) (string, bool) { return "", false })
	if p == nil {
		t.Fatal(problems)
	}
	db := st.Database(project.DatabaseName("shop"))
	things := db.Collection("things")
	decimal, err := bson.ParseDecimal128("1.50")
	if err != nil {
		t.Fatal(err)
	}
	for n, value := range []any{
		int32(1), int64(1), 1.0, decimal, math.Inf(1), math.Copysign(0, -1), bson.DateTime(1700000000123), bson.ObjectID{1}, bson.Binary{Subtype: 4, Data: []byte{0, 1, 255}},
		nil, true, "ü\"\\", bson.A{int32(1), bson.D{}}, bson.Timestamp{T: 1, I: 2}, bson.Regex{Pattern: "a", Options: "i"},
	} {
		doc, err := bson.Marshal(bson.D{{Key: "_id", Value: bson.ObjectID{byte(n)}}, {Key: "sku", Value: string(rune('a' + n))}, {Key: "v", Value: value}})
		if err == nil {
			err = store.WriteAll(t.Context(), things, store.Op{Kind: store.Insert, Doc: doc})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := things.CreateIndex(t.Context(), store.Index{Name: "svc_sku", Keys: []store.IndexKey{{Path: "sku"}, {Path: "n", Desc: true}}, Unique: true, Sparse: true}); err != nil {
		t.Fatal(err)
	}
	snaps := snapshot.New(snapshot.Options{Store: st, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	profile, err := snapshot.ProfileOf(p, "daily")
	if err != nil {
		t.Fatal(err)
	}
	info, err := snaps.Create(t.Context(), p, profile, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := do(t, nil, restore, "--uri", uri, "--db", "restored", filepath.Join(dir, "snapshots", "daily", info.ID, "db"))
	back := st.Database("restored").Collection("things")
	if diff := cmp.Diff(documents(t, things), documents(t, back)); diff != "" {
		t.Errorf("%s\n%s", diff, out)
	}
	want, err := things.Indexes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := back.Indexes(t.Context())
	if diff := cmp.Diff(want, got); diff != "" || err != nil || len(want) == 0 {
		t.Errorf("indexes: %s, %v\n%s", diff, err, out)
	}
}

// documents are those of a collection, by id.
func documents(t *testing.T, c store.Collection) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := c.Find(t.Context(), store.Query{}, func(doc bson.Raw) error {
		out[doc.Lookup("_id").String()] = string(doc)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
