package interference_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/auth"
	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/embedding/hash"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/httpapi"
	"github.com/svcctl/svc/pkg/idempotency"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/script"
	"github.com/svcctl/svc/pkg/search/engine"
	"github.com/svcctl/svc/pkg/status"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/fieldnames"
	"github.com/svcctl/svc/pkg/system"
)

// projects are what is served: with a log of changes, or without it, which is quicker; and with fields that the store has other names for.
type projects [2]struct{ logged, plain *project.Project }

// load compiles the project, once for all pairs.
func load(t *testing.T, config string, renamed bool) *project.Project {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"project.yaml": config, "public.js": publicFilter} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, problems := project.Load(dir, "project.yaml", func(string) (string, bool) { return "", false })
	if problems.Err() {
		t.Fatal(problems)
	}
	p.ID, p.Generation, p.OrgID = id(0x99).Hex(), 1, homeOrg
	names := project.Names{}
	for _, c := range p.Collections {
		if renamed {
			nameApart(names, c.Name, c.Config.Fields)
		}
	}
	if _, err := names.Resolve(p, nil, nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Collections { // a loaded machine is slow
		for _, s := range c.Filters {
			s.Timeout = time.Minute
		}
		for _, e := range c.Evals {
			e.Script.Timeout = time.Minute
		}
	}
	return p
}

// nameApart has all fields stored by other names.
func nameApart(names project.Names, at string, fields []*schema.Field) {
	for _, f := range fields {
		names[at+"."+f.Name] = project.StoredName{In: f.Name + "Before", From: f.Name + "Before"}
		nameApart(names, at+"."+f.Name+"Before", f.SubFields)
	}
}

// apart gives databases of a store other names, so that one store has those of several services.
type apart struct {
	store.Store

	suffix string
}

func (s apart) Database(name string) store.Database { return s.Store.Database(name + s.suffix) }

func (s apart) DropDatabase(ctx context.Context, name string) error {
	return s.Store.DropDatabase(ctx, name+s.suffix)
}

// world is one of the two services of a pair: the door that callers come to, and all behind it.
type world struct {
	t       *testing.T
	project *project.Project
	served  *project.Registry
	store   store.Store
	logs    *audit.Logs
	uploads string // the folder of files
	door    *httpapi.Server
	search  *engine.Engine

	names map[string]string // of ids that were made on the way: what stands for them in transcripts
	fresh []string          // these ids, in the order in which the caller came to know them
	rnd   *rand.Rand        // for what the caller does not see
	ends  int               // how many ends of feeds there were
}

// pair are two services that look alike to a caller.
type pair struct {
	caller *caller
	worlds [2]*world
	clock  *atomic.Int64 // seconds that have passed: it stands still during a request
}

// began is in the future, so that nothing of a service is old by the clock of the store; and the ids of the next hour begin
// with the same five digits.
var began = time.Unix(0xf4865000, 0).UTC()

func newPair(t *testing.T, s store.Store, p *project.Project, c *caller, name string) *pair {
	t.Helper()
	out := &pair{caller: c, clock: &atomic.Int64{}}
	engine := script.NewEngine(script.Options{})
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	for i := range out.worlds {
		now := func() time.Time { return began.Add(time.Duration(out.clock.Load()) * time.Second) }
		out.worlds[i] = newWorld(t, apart{s, fmt.Sprintf("-%s-%d", name, i)}, p, engine, now)
	}
	return out
}

type callerKey struct{}

func newWorld(t *testing.T, s store.Store, p *project.Project, scripts *script.Engine, now func() time.Time) *world {
	t.Helper()
	w := &world{t: t, project: p, store: s, uploads: t.TempDir()}
	log, registerer := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError})), prometheus.NewRegistry()
	runner, err := hooks.New(hooks.Options{Engine: scripts, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	w.logs = audit.New(audit.Options{Store: s, Now: now, SystemDatabase: system.DatabaseName})
	hasher := auth.NewHasher(auth.Params{Memory: 64, Time: 1, Threads: 1}, 1)
	models := system.New(s, system.Options{Now: now, Audit: w.logs, HashPassword: hasher.Hash})
	authn, err := auth.New(t.Context(), auth.Options{System: models, Hasher: hasher, Logger: log, Now: now, AdminToken: "an-admin-token-that-nobody-sends"})
	if err != nil {
		t.Fatal(err)
	}
	w.served = project.NewRegistry()
	groups, err := embedding.Open(t.Context(), embedding.Config{
		Providers: []embedding.ProviderConfig{{Name: "demo", Type: "hash", Dimensions: 16}},
		Groups:    []embedding.GroupConfig{{Name: "texts", Members: []string{"demo"}}},
	}, embedding.Types{"hash": hash.New}, embedding.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := groups.Close(); err != nil {
			t.Error(err)
		}
	})
	w.search, err = engine.Open(t.Context(), engine.Options{Store: s, Dir: t.TempDir(), Logger: log, Now: now, Groups: groups})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.search.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	service := records.New(s, now, w.logs, runner, w.files(log, now))
	service.Searching(w.search)
	w.search.Scripted(runner)
	w.door, err = httpapi.New(httpapi.Config{
		Records: service, System: models, Audit: w.logs, Registry: w.served, Auth: authn, Keys: idempotency.New(idempotency.Options{Store: s, Now: now, Alone: true}),
		Control: control{}, Status: status.NewBoard(now), Ready: func(context.Context, bool) []api.HealthCheck { return nil }, Shutdown: func() {}, Now: now,
		Logger: log, Registerer: registerer, Gatherer: registerer, MaxBodySize: 1 << 20, MCP: httpapi.MCP{Enabled: true, MaxResultItems: 5},
		Authenticate: func(ctx context.Context, _ auth.Credentials) (*access.Principal, error) {
			who, _ := ctx.Value(callerKey{}).(*access.Principal)
			return who, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.drop)
	return w
}

// control is the control plane: there is none.
type control struct{ httpapi.Control }

func (control) Indexes(context.Context, *project.Project, string) ([]api.IndexDescription, error) {
	return nil, nil
}

func (control) SyncIndexes(context.Context, *project.Project, api.Risk) (*api.Drift, error) {
	return &api.Drift{}, nil
}

func (control) Drift(context.Context, *project.Project) (*api.Drift, error) {
	return &api.Drift{}, nil
}

func (control) Stats(context.Context, *project.Project, string) (api.CollectionStats, error) {
	return api.CollectionStats{}, nil
}

func (w *world) drop() {
	ctx := context.WithoutCancel(w.t.Context())
	for _, name := range []string{project.DatabaseName(w.project.Namespace), system.DatabaseName} {
		if err := w.store.DropDatabase(ctx, name); err != nil {
			w.t.Error(err)
		}
	}
}

// empty takes away all that there is in a service, has it serve a project, and makes the indexes.
func (w *world) empty(p *project.Project, rnd *rand.Rand) {
	if err := w.search.Forget(w.project.Namespace); err != nil {
		w.t.Fatal(err)
	}
	w.drop()
	w.dropFiles()
	w.project = p
	w.served.Set(p)
	w.names, w.fresh, w.rnd, w.ends = map[string]string{}, nil, rnd, 0
	for _, c := range w.project.Collections {
		for _, ix := range c.Indexes {
			index := store.Index{Name: ix.Name, Unique: ix.Unique, Sparse: ix.Sparse}
			for _, k := range ix.Keys {
				index.Keys = append(index.Keys, store.IndexKey(k))
			}
			if err := w.collection(c.Name).CreateIndex(w.t.Context(), index); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

func (w *world) collection(name string) store.Collection {
	return fieldnames.Wrap(w.store.Database(project.DatabaseName(w.project.Namespace)), w.project.FieldNames).Collection(name)
}

// put stores a record as it is, past all rules.
func (w *world) put(collection string, d bson.D) { w.write(w.collection(collection), d) }

func (w *world) putSystem(model string, v any) {
	w.write(w.store.Database(system.DatabaseName).Collection(model), v)
}

func (w *world) write(c store.Collection, v any) {
	w.t.Helper()
	raw, err := bson.Marshal(v)
	if err != nil {
		w.t.Fatal(err)
	}
	res, err := c.Write(w.t.Context(), []store.Op{{Kind: store.Insert, Doc: raw}}, false)
	if err != nil || res[0].Err != nil {
		w.t.Fatal(err, res)
	}
}

// request is what goes to a door. NEW<n> stands for the id of what the caller made as the n-th.
type request struct {
	method, path string // below /api/v1
	query        url.Values
	headers      map[string]string
	body         string
}

func (r request) String() string {
	var out strings.Builder
	fmt.Fprint(&out, r.method, " ", r.path)
	for _, name := range slices.Sorted(maps.Keys(r.query)) {
		fmt.Fprintf(&out, " %s=%s", name, strings.Join(r.query[name], " and "))
	}
	if len(r.headers) > 0 {
		fmt.Fprint(&out, " ", r.headers)
	}
	return out.String() + " " + r.body
}

// as makes a request of a caller.
func (w *world) as(ctx context.Context, who *access.Principal, r request) *http.Request {
	address := "/api/v1" + w.own(r.path)
	if len(r.query) > 0 {
		address += "?" + w.own(r.query.Encode())
	}
	req := httptest.NewRequestWithContext(context.WithValue(ctx, callerKey{}, who), r.method, address, strings.NewReader(w.own(r.body)))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Request-Id", "r")
	for name, value := range r.headers {
		req.Header.Set(name, w.own(value))
	}
	return req
}

// do sends a request, and gives the answer as it is.
func (w *world) do(who *access.Principal, r request) *httptest.ResponseRecorder {
	if r.query.Has("q") { // no write waits for vectors
		if err := w.search.Settle(w.t.Context(), w.project); err != nil {
			w.t.Fatal(err)
		}
	}
	out := httptest.NewRecorder()
	w.door.ServeHTTP(out, w.as(w.t.Context(), who, r))
	return out
}

// must sends a request of the administrator.
func (w *world) must(r request) {
	w.t.Helper()
	if res := w.do(&access.Principal{Kind: access.KindAdmin, Name: "admin token"}, r); res.Code >= 300 && res.Code != http.StatusNotFound {
		w.t.Fatal(r, res.Code, res.Body)
	}
}

// told is all that an answer tells: status, headers, body.
func told(res *httptest.ResponseRecorder) string {
	var out strings.Builder
	fmt.Fprintln(&out, res.Code)
	for _, name := range slices.Sorted(maps.Keys(res.Header())) {
		fmt.Fprintln(&out, name, res.Header()[name])
	}
	out.WriteString("\n" + res.Body.String() + "\n")
	return out.String()
}

// fresh stands in requests for the id of what the caller has made.
func fresh(n int) string { return fmt.Sprintf("%s%0*d", freshMark, 24-len(freshMark), n) }

const freshMark = "NEW"

// madeBegin begins the ids that a service makes: with the time.
var madeBegin = fmt.Sprintf("%05x", began.Unix()>>12)

var (
	freshIDs = regexp.MustCompile(freshMark + "[0-9]{21}")
	madeIDs  = regexp.MustCompile(madeBegin + "[0-9a-f]{19}")
	asTexts  = regexp.MustCompile(hex.EncodeToString([]byte(madeBegin)) + "(3[0-9]|6[1-6]){19}") // in cursors
	cursors  = regexp.MustCompile(`("next": ?"|[?&]after=)([A-Za-z0-9_-]+)`)
)

// own puts the ids of this service into a request.
func (w *world) own(text string) string {
	return freshIDs.ReplaceAllStringFunc(text, func(mark string) string {
		n, err := strconv.Atoi(mark[len(freshMark):])
		if err != nil || n >= len(w.fresh) {
			return bson.ObjectID{}.Hex()
		}
		return w.fresh[n]
	})
}

// common is a transcript without the ids that the service made itself, which are others in the other service: by their order.
// Cursors are shown as what they hold, for they hold ids.
func (w *world) common(text string) string {
	if !strings.Contains(text, madeBegin) && !strings.Contains(text, `"next"`) {
		return text
	}
	text = cursors.ReplaceAllStringFunc(text, func(cursor string) string {
		at := strings.LastIndexAny(cursor, `"=`) + 1
		raw, err := base64.RawURLEncoding.DecodeString(cursor[at:])
		if err != nil {
			return cursor
		}
		return cursor[:at] + asTexts.ReplaceAllStringFunc(hex.EncodeToString(raw), func(text string) string {
			id, _ := hex.DecodeString(text) // it is hex
			return w.name(string(id))
		})
	})
	return madeIDs.ReplaceAllStringFunc(text, w.name)
}

// name is what stands for an id.
func (w *world) name(id string) string {
	if w.names[id] == "" {
		w.names[id] = fresh(len(w.fresh))
		w.fresh = append(w.fresh, id)
	}
	return w.names[id]
}

// follow opens a stream. next gives its events, as kind and data, and "" at the end.
func (w *world) follow(ctx context.Context, who *access.Principal, r request) *stream {
	from, to := io.Pipe()
	s := &stream{header: http.Header{}, to: to, from: from, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		w.door.ServeHTTP(s, w.as(ctx, who, r))
		_ = to.Close() // never fails
	}()
	return s
}

// stream is an answer that goes on.
type stream struct {
	header http.Header
	status int
	from   *io.PipeReader
	to     *io.PipeWriter
	done   chan struct{}
}

func (s *stream) Header() http.Header              { return s.header }
func (s *stream) WriteHeader(status int)           { s.status = status }
func (s *stream) Write(p []byte) (int, error)      { return s.to.Write(p) }
func (s *stream) Flush()                           {}
func (s *stream) SetWriteDeadline(time.Time) error { return nil }
func (s *stream) end() {
	_ = s.from.CloseWithError(errors.New("the reader has gone"))
	<-s.done
}
