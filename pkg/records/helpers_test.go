package records_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/media"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/script"
	"github.com/svcctl/svc/pkg/store"
)

// world is a project with its records on a store.
type world struct {
	t       *testing.T
	store   store.Store
	logs    *audit.Logs
	service *records.Service
	files   *media.Library
	project *project.Project
	now     func() time.Time // a second later each time, unless a test has another one

	ran *coverage
	log *logBuffer
}

// logBuffer keeps what was logged.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// coverage notes which scripts ran, by stage.
type coverage struct {
	mu  sync.Mutex
	ran []string
}

var (
	namespaces atomic.Int64 // names on a shared server
	start      = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	alice      = bson.ObjectID{0: 0xa1, 11: 0x1}
	bob        = bson.ObjectID{0: 0xb0, 11: 0x2}
	run        = fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixMicro()%1e9) // as namespaces
)

// newWorld compiles a config, whose namespace is filled in, and makes its indexes.
func newWorld(t *testing.T, s store.Store, config string) *world {
	t.Helper()
	return newScripted(t, s, config, nil)
}

// newScripted is newWorld with the project's other files.
func newScripted(t *testing.T, s store.Store, config string, files map[string]string) *world {
	t.Helper()
	var ticks atomic.Int64
	return makeWorld(t, s, config, files, func() time.Time { return start.Add(time.Duration(ticks.Add(1)) * time.Second) })
}

// newWorldAt makes a world with a clock.
func newWorldAt(t *testing.T, s store.Store, config string, now func() time.Time) *world {
	t.Helper()
	return makeWorld(t, s, config, nil, now)
}

func makeWorld(t *testing.T, s store.Store, config string, files map[string]string, now func() time.Time) *world {
	t.Helper()
	namespace := fmt.Sprintf("records-%s-%d", run, namespaces.Add(1))
	w := &world{t: t, store: s, project: load(t, "namespace: "+namespace+"\n"+config, files), now: now, ran: &coverage{}, log: &logBuffer{}}
	patient(w.project)
	w.logs = audit.New(audit.Options{Store: s, Now: w.now, SystemDatabase: w.database()})
	images, err := media.OpenImages(t.Context(), t.TempDir(), media.ImagesOptions{Logger: slog.New(slog.DiscardHandler), Now: time.Now, MaxBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	w.files = media.NewLibrary(t.TempDir(), media.Options{Logger: slog.New(slog.DiscardHandler), Now: time.Now, Images: images})
	w.service = records.New(s, w.now, w.logs, scripts(t, w.ran, w.log), w.files)
	t.Cleanup(func() {
		if err := errors.Join(w.files.Close(), images.Close()); err != nil {
			t.Error(err)
		}
		if err := s.DropDatabase(context.WithoutCancel(t.Context()), w.database()); err != nil {
			t.Error(err)
		}
	})
	for _, c := range w.project.Collections {
		for _, ix := range c.Indexes {
			index := store.Index{Name: ix.Name, Unique: ix.Unique, Sparse: ix.Sparse}
			for _, k := range ix.Keys {
				index.Keys = append(index.Keys, store.IndexKey(k))
			}
			if err := w.collection(c.Name).CreateIndex(t.Context(), index); err != nil {
				t.Fatal(err)
			}
		}
	}
	return w
}

// patient gives the scripts that don't ask for a short time a long one, for tests on a machine that has other things to do,
// and more memory: the heap is that of all the tests that run meanwhile, and what these take is taken for the script's.
func patient(p *project.Project) {
	hook := *p.Hook
	hook.Memory = 8 << 30
	p.Hook = &hook
	wait := func(s *project.Script) {
		if s.Timeout >= 250*time.Millisecond {
			s.Timeout = time.Minute
		}
	}
	for _, c := range p.Collections {
		for _, s := range slices.Concat(slices.Concat(slices.Collect(maps.Values(c.Hooks))...), slices.Collect(maps.Values(c.Filters)), slices.Collect(maps.Values(c.Validators))) {
			wait(s)
		}
		for _, e := range c.Evals {
			wait(e.Script)
		}
	}
}

// scripts runs the scripts of tests.
func scripts(t testing.TB, recorder hooks.Recorder, log io.Writer) *hooks.Runner {
	t.Helper()
	engine := script.NewEngine(script.Options{})
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	r, err := hooks.New(hooks.Options{Engine: engine, Recorder: recorder, Log: testLog(t, log)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// testLog keeps what scripts log and why they fail, and shows it of a test that fails.
func testLog(t testing.TB, log io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), log), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// HookRan notes what ran: "stage" or "stage of another collection".
func (w *coverage) HookRan(_, collection, stage, _ string, _ error) {
	if collection != "items" {
		stage += " of " + collection
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ran = append(w.ran, stage)
}

// stages gives what has run since it was asked last.
func (w *world) stages() string {
	w.ran.mu.Lock()
	defer w.ran.mu.Unlock()
	ran := w.ran.ran
	w.ran.ran = nil
	return strings.Join(ran, ", ")
}

func load(t *testing.T, config string, files map[string]string) *project.Project {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "project.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p, problems := project.Load(dir, "project.yaml", func(string) (string, bool) { return "", false })
	if problems.Err() {
		t.Fatal(problems)
	}
	return p
}

func (w *world) database() string { return project.DatabaseName(w.project.Namespace) }

func (w *world) collection(name string) store.Collection {
	return w.store.Database(w.database()).Collection(name)
}

// as gives a caller by name: public, alice, bob, admin, or token:….
func as(name string) *access.Principal {
	switch name {
	case "public":
		return access.Anonymous()
	case "alice":
		return &access.Principal{Kind: access.KindUser, ID: alice.Hex(), Name: name}
	case "bob":
		return &access.Principal{Kind: access.KindUser, ID: bob.Hex(), Name: name}
	case "admin":
		return &access.Principal{Kind: access.KindAdmin}
	}
	token, ok := strings.CutPrefix(name, "token:")
	if !ok {
		panic(name)
	}
	return &access.Principal{Kind: access.KindToken, TokenHash: sha256.Sum256([]byte(token))}
}

// call is a call on collection items.
func (w *world) call(who string) *records.Call {
	return &records.Call{Project: w.project, Collection: w.project.Collections["items"], Principal: as(who)}
}

func doc(t testing.TB, text string) bson.D {
	t.Helper()
	d, err := document.ParseJSON([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d
}

func where(t testing.TB, text string) query.Where {
	t.Helper()
	if text == "" {
		return query.Where{}
	}
	return query.Where{Filter: doc(t, text), Bytes: len(text)}
}

// put stores a document as it is, past all rules, and gives its id.
func (w *world) put(text string) string {
	w.t.Helper()
	raw, err := document.Marshal(append(bson.D{{Key: "_id", Value: bson.NewObjectID()}}, doc(w.t, text)...))
	if err != nil {
		w.t.Fatal(err)
	}
	return w.putRaw(raw)
}

func (w *world) putRaw(raw bson.Raw) string {
	w.t.Helper()
	res, err := w.collection("items").Write(w.t.Context(), []store.Op{{Kind: store.Insert, Doc: raw}}, false)
	if err != nil || res[0].Err != nil {
		w.t.Fatal(err, res)
	}
	return raw.Lookup("_id").ObjectID().Hex()
}

// create stores a record that must be good.
func (w *world) create(who, body string) string {
	w.t.Helper()
	res, err := w.service.Create(w.t.Context(), w.call(who), doc(w.t, body))
	if err != nil {
		w.t.Fatalf("create %s: %s", body, show(err))
	}
	return res.ID
}

// stored is what the store holds of a record, without its system fields.
func (w *world) stored(id string) string {
	w.t.Helper()
	oid, err := bson.ObjectIDFromHex(id)
	if err != nil {
		w.t.Fatal(err)
	}
	raw, err := w.collection("items").Get(w.t.Context(), bson.RawValue{Type: bson.TypeObjectID, Value: oid[:]})
	if err != nil {
		return show(err)
	}
	return bare(w.t, document.AppendJSON(nil, raw, nil))
}

// everything is all that the store holds of items, for comparing before and after.
func (w *world) everything() string {
	w.t.Helper()
	var out []byte
	err := w.collection("items").Find(w.t.Context(), store.Query{}, func(d bson.Raw) error {
		out = append(document.AppendJSON(out, d, nil), '\n')
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return string(out)
}

// bare is a record's JSON without the system fields, in the order of their names.
func bare(t testing.TB, text []byte) string {
	t.Helper()
	var m map[string]any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&m); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	for _, name := range []string{"id", "createdAt", "createdBy", "updatedAt", "updatedBy", "_rev"} {
		delete(m, name)
	}
	out, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func seen(t testing.TB, rec *records.Record) string {
	t.Helper()
	if rec == nil {
		return "not readable"
	}
	return bare(t, rec.AppendJSON(nil))
}

// show is an error as a caller is told it: code, message, and the problems beyond the first.
func show(err error) string {
	if err == nil {
		return "ok"
	}
	e := errs.From(err)
	var out strings.Builder
	out.WriteString(e.Code + ": " + e.Message)
	if e.Kind == errs.Internal {
		out.WriteString(" " + e.Error())
	}
	if len(e.Fields) > 1 {
		for _, f := range e.Fields {
			fmt.Fprintf(&out, " [%s %s]", f.Path, f.Rule)
		}
	}
	return out.String()
}

// deleted is the error of a delete.
func deleted(_ records.Written, err error) error { return err }
