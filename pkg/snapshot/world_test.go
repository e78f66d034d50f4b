package snapshot_test

import (
	"context"
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/folder"
	"github.com/svcctl/svc/pkg/media"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/randtest"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/fieldnames"
	"github.com/svcctl/svc/pkg/store/gate"
	"github.com/svcctl/svc/pkg/store/teststore"
)

const config = `
namespace: NAMESPACE
snapshots:
  - {name: daily, collectionDedup: true}
  - {name: both, mode: both}
  - {name: db, mode: db, includeMedia: false}
  - {name: posts, collections: [posts]}
  - {name: rest, collections: [{name: posts, mode: exclude}]}
collections:
  - name: posts
    fields:
      - {name: title, type: string}
      - {name: cover, type: file}
      - {name: gallery, type: "file[]"}
    permissions: {public: {methods: {}}, user: {methods: {}}}
  - name: items
    fields: [{name: sku, type: string}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
  - name: empty
    fields: [{name: a, type: string}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
`

// world is a project with its store, its files and its snapshots.
type world struct {
	testing.TB

	store   store.Store
	gate    *gate.Gate
	library *media.Library
	p       *project.Project
	db      store.Database
	clock   *teststore.Clock
	snaps   *snapshot.Snapshots
	media   string // folder of all files

	faults  folder.Fault // of what is done to snapshots and to files
	changed int          // how often it was told that something is known of snapshots
}

func newWorld(tb testing.TB, s store.Store) *world {
	tb.Helper()
	return newWorldOf(tb, s, config)
}

func newWorldOf(tb testing.TB, s store.Store, text string) *world {
	tb.Helper()
	return newWorldIn(tb, s, text, newNamespace())
}

// newNamespace is one of no other test: some share a server.
func newNamespace() string { return "shop" + strings.ToLower(crand.Text()[:8]) }

func newWorldIn(tb testing.TB, s store.Store, text, namespace string) *world {
	tb.Helper()
	w := &world{
		TB: tb, store: s, gate: gate.New(s), p: load(tb, text, namespace), media: tb.TempDir(),
		clock: teststore.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
	}
	fault := func(op, name string) error {
		if w.faults == nil {
			return nil
		}
		return w.faults(op, name)
	}
	logger := slog.New(slog.DiscardHandler)
	w.library = media.NewLibrary(w.media, media.Options{Logger: logger, Now: w.clock.Now, Fault: fault})
	tb.Cleanup(func() {
		if err := w.library.Close(); err != nil {
			tb.Error(err)
		}
	})
	w.snaps = snapshot.New(snapshot.Options{
		Store: s, Media: w.library, Version: "1.2.3", Now: w.clock.Now, Logger: logger, Fault: fault, Changed: func(*project.Project) { w.changed++ },
	})
	name := project.DatabaseName(w.p.Namespace)
	w.db = s.Database(name)
	tb.Cleanup(func() {
		if err := s.DropDatabase(context.Background(), name); err != nil {
			tb.Error(err)
		}
	})
	return w
}

// useGate has restores keep those from the records who reach them as requests do.
func (w *world) useGate() {
	w.snaps = snapshot.New(snapshot.Options{
		Store: w.store, Media: w.library, Version: "1.2.3", Now: w.clock.Now, Logger: slog.New(slog.DiscardHandler), Gate: w.gate,
	})
}

// load compiles a project in a folder of its own.
func load(tb testing.TB, text, namespace string) *project.Project {
	tb.Helper()
	dir := tb.TempDir()
	text = strings.Replace(text, "NAMESPACE", namespace, 1)
	if err := os.WriteFile(filepath.Join(dir, "project.yaml"), []byte(strings.TrimPrefix(text, "\n")), 0o600); err != nil {
		tb.Fatal(err)
	}
	p, problems := project.Load(dir, "project.yaml", func(string) (string, bool) { return "", false })
	if p == nil {
		tb.Fatal(problems)
	}
	return p
}

func (w *world) profile(name string) snapshot.Profile {
	w.Helper()
	profile, err := snapshot.ProfileOf(w.p, name)
	if err != nil {
		w.Fatal(err)
	}
	return profile
}

// create takes a snapshot, a second after the last one.
func (w *world) create(profile string) snapshot.Info {
	w.Helper()
	w.clock.Pass(time.Second)
	info, err := w.snaps.Create(w.Context(), w.p, w.profile(profile), nil)
	if err != nil {
		w.Fatalf("create %s: %v", profile, err)
	}
	return info
}

// path is the folder of a snapshot.
func (w *world) path(info snapshot.Info) string {
	return filepath.Join(w.p.Dir, "snapshots", info.Profile, info.ID)
}

// verify wants a snapshot to be whole.
func (w *world) verify(info snapshot.Info) *snapshot.Verification {
	w.Helper()
	v, err := w.snaps.Verify(w.Context(), w.p, info.ID, snapshot.VerifyOptions{})
	if err != nil {
		w.Fatalf("verify %s: %v", info.ID, err)
	}
	if !v.Whole() {
		w.Fatalf("%s is not whole: %+v", info.ID, v.Found)
	}
	return v
}

// records are those of a collection as requests reach them.
func (w *world) records(collection string) store.Collection {
	return w.recordsOf(w.p, collection)
}

func (w *world) recordsOf(p *project.Project, collection string) store.Collection {
	stored := collection
	if c := p.Collections[collection]; c != nil {
		stored = c.StoredName()
	}
	return fieldnames.Wrap(w.gate.Database(project.DatabaseName(p.Namespace)), p.FieldNames).Collection(stored)
}

func (w *world) insert(collection string, docs ...bson.D) {
	w.Helper()
	ops := make([]store.Op, 0, len(docs))
	for _, d := range docs {
		ops = append(ops, store.Op{Kind: store.Insert, Doc: encode(w, d)})
	}
	if err := store.WriteAll(w.Context(), w.records(collection), ops...); err != nil {
		w.Fatal(err)
	}
}

func encode(tb testing.TB, d bson.D) bson.Raw {
	tb.Helper()
	raw, err := bson.Marshal(d)
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}

// upload stores a file as a write of a record does, and gives what the record says of it.
func (w *world) upload(collection string, id bson.ObjectID, field, name, content string) bson.D {
	w.Helper()
	d, keep := w.stage(collection, id, field, name, content)
	keep()
	return d
}

func (w *world) stage(collection string, id bson.ObjectID, field, name, content string) (file bson.D, keep func()) {
	w.Helper()
	files, err := w.library.Store(w.p.Namespace)
	if err != nil {
		w.Fatal(err)
	}
	st, err := files.Stage(w.Context(), name, strings.NewReader(content), media.Limits{})
	if err != nil {
		w.Fatal(err)
	}
	c := w.p.Collections[collection]
	info, err := st.Put(w.Context(), media.Place{Dir: c.Uploads.Dir, Record: id.Hex(), Field: c.StoredField(field)})
	if err != nil {
		st.Discard()
		w.Fatal(err)
	}
	return bson.D{
		{Key: "src", Value: project.FileRoot(w.p.Namespace, collection, id) + field + "/" + info.Name},
		{Key: "path", Value: info.Name}, {Key: "size", Value: info.Size}, {Key: "type", Value: info.Type}, {Key: "hash", Value: info.Hash},
	}, st.Keep
}

func idOf(n int) bson.ObjectID {
	return bson.ObjectID{0x65, 0, 0, 0, 0, 0, 0, 0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
}

// fill gives the project some of everything.
func (w *world) fill() {
	w.Helper()
	w.fillWith(40, 300)
}

func (w *world) fillWith(posts, items int) {
	w.Helper()
	if err := w.records("items").CreateIndex(w.Context(), store.Index{Name: "svc_sku", Keys: []store.IndexKey{{Path: "sku"}, {Path: "n", Desc: true}}, Unique: true}); err != nil {
		w.Fatal(err)
	}
	for n := range posts {
		id := idOf(n)
		d := bson.D{{Key: "_id", Value: id}, {Key: "_rev", Value: int64(n)}, {Key: "title", Value: fmt.Sprint("post ", n)}}
		if n%2 == 0 {
			d = append(d, bson.E{Key: "cover", Value: w.upload("posts", id, "cover", fmt.Sprintf("cover %d.txt", n), fmt.Sprint("cover of ", n))})
		}
		if n%5 == 0 {
			d = append(d, bson.E{Key: "gallery", Value: bson.A{
				w.upload("posts", id, "gallery", "same.txt", "the same everywhere"), w.upload("posts", id, "gallery", "own.txt", fmt.Sprint("own of ", n)),
			}})
		}
		w.insert("posts", d)
	}
	for n := range items {
		w.insert("items", bson.D{{Key: "_id", Value: idOf(n)}, {Key: "sku", Value: fmt.Sprint("sku ", n)}, {Key: "n", Value: n}})
	}
	w.insert("items", everything(w)...)
	w.insert("legacy", bson.D{{Key: "_id", Value: "a"}, {Key: "of", Value: "no config"}})
}

// everything has a value of each type, and ids of several.
func everything(tb testing.TB) []bson.D {
	tb.Helper()
	decimal, err := bson.ParseDecimal128("1.50")
	if err != nil {
		tb.Fatal(err)
	}
	values := bson.D{
		{Key: "sku", Value: "everything"},
		{Key: "int", Value: int32(1)}, {Key: "long", Value: int64(1)}, {Key: "double", Value: 1.0}, {Key: "decimal", Value: decimal},
		{Key: "nan", Value: math.NaN()}, {Key: "inf", Value: math.Inf(1)}, {Key: "zero", Value: math.Copysign(0, -1)},
		{Key: "at", Value: bson.DateTime(1700000000123)}, {Key: "id", Value: bson.ObjectID{1}}, {Key: "data", Value: bson.Binary{Subtype: 4, Data: []byte{0, 1, 255}}},
		{Key: "null", Value: nil}, {Key: "yes", Value: true}, {Key: "list", Value: bson.A{int32(1), bson.A{}, bson.D{}, "a"}}, {Key: "", Value: bson.D{{Key: "ü\n", Value: "\"\\\x00"}}},
		{Key: "stamp", Value: bson.Timestamp{T: 1, I: 2}}, {Key: "re", Value: bson.Regex{Pattern: "a", Options: "i"}},
		{Key: "op", Value: bson.D{{Key: "$oid", Value: "like a type"}}},
	}
	var out []bson.D
	for i, id := range []any{"text", int32(7), 7.5, bson.DateTime(1), bson.D{{Key: "a", Value: 1}}, bson.Binary{Data: []byte("b")}, true} {
		d := slices.Clone(values)
		d[0].Value = fmt.Sprint("everything ", i)
		out = append(out, append(bson.D{{Key: "_id", Value: id}}, d...))
	}
	return out
}

func hashOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// contents are the files of a folder, by path.
func contents(tb testing.TB, dir string) map[string]string {
	tb.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		out[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// dump is everything that a namespace has in collections that show.
func (w *world) dump(p *project.Project) map[string][]string {
	w.Helper()
	db := w.store.Database(project.DatabaseName(p.Namespace))
	names, err := db.CollectionNames(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	out := map[string][]string{}
	for _, name := range names {
		c := db.Collection(name)
		err := c.Find(w.Context(), store.Query{}, func(doc bson.Raw) error {
			out[name] = append(out[name], string(doc))
			return nil
		})
		if err != nil {
			w.Fatal(err)
		}
		slices.Sort(out[name])
		list, err := c.Indexes(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		for _, x := range list {
			out[name] = append(out[name], fmt.Sprintf("%+v", x))
		}
	}
	return out
}

func shuffled(t testing.TB, n int) []int {
	t.Helper()
	return randtest.Of(t).Perm(n)
}
