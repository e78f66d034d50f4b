package system_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/system"
)

var errConfig = errors.New("config does not compile")

// resolve takes files named <namespace>.yaml for configs; bad.yaml does not compile.
func resolve(_ context.Context, file string) (string, error) {
	ns := strings.TrimSuffix(file, ".yaml")
	if ns == "bad" {
		return "", errConfig
	}
	return ns, nil
}

func TestProjectLifecycle(t *testing.T) {
	f := newSystem(t)
	ctx := t.Context()
	p, err := f.Projects.Create(ctx, body(t, `{"configFile": "blog.yaml", "description": "d"}`), resolve)
	if err != nil {
		t.Fatal(err)
	}
	created := time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	diff(t, "created", system.Project{
		ID: p.ID, Rev: 1, Namespace: "blog", Name: "blog", Description: "d", ConfigFile: "blog.yaml", Enabled: true, CreatedBy: system.Actor{Kind: "service"},
		CreatedAt: created, UpdatedAt: created,
	}, p)

	f.clock.Pass(time.Minute)
	got, err := f.Projects.Update(ctx, p.ID.Hex(), body(t, `{"name": "Blog", "enabled": false}`), nil) // the file is the same: no resolve
	if err != nil {
		t.Fatal(err)
	}
	want := p
	want.Rev, want.Name, want.Enabled, want.UpdatedAt = 2, "Blog", false, p.UpdatedAt.Add(time.Minute)
	diff(t, "updated", want, got)
	got, err = f.Projects.ByNamespace(ctx, "blog")
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "as stored", want, got)
	got, err = f.Projects.Update(ctx, p.ID.Hex(), body(t, `{"name": null, "enabled": null, "description": null}`), nil)
	if err != nil || got.Name != "blog" || !got.Enabled || got.Description != "" {
		t.Errorf("after a reset: %+v, %v", got, err)
	}

	if _, err := f.Projects.Create(ctx, body(t, `{"configFile": "shop.yaml", "name": "Shop", "enabled": false}`), resolve); err != nil {
		t.Fatal(err)
	}
	all, err := f.Projects.All(ctx)
	if err != nil || len(all) != 2 || all[0].Namespace != "blog" || all[1].Name != "Shop" || all[1].Enabled {
		t.Errorf("all = %+v, %v", all, err)
	}
	page, err := f.Projects.List(ctx, admin, query.Params{Limit: new(int64(1)), Offset: 1})
	if err != nil || len(page.Items) != 1 || page.Items[0].Namespace != "shop" || page.HasMore {
		t.Errorf("page = %+v, %v", page, err)
	}

	gone, err := f.Projects.Delete(ctx, p.ID.Hex())
	if err != nil || gone.Namespace != "blog" {
		t.Errorf("deleted %+v, %v", gone, err)
	}
	_, err = f.Projects.ByNamespace(ctx, "blog")
	wantError(t, err, errs.ErrNotFound)
}

func TestProjectBodiesAreRefused(t *testing.T) {
	f := newSystem(t)
	ctx := t.Context()
	p, err := f.Projects.Create(ctx, body(t, `{"configFile": "blog.yaml"}`), resolve)
	if err != nil {
		t.Fatal(err)
	}
	for json, want := range map[string][]string{
		`{}`: {"configFile:required"},
		`{"configFile": "", "name": 1, "enabled": "yes"}`:       {"name:type", "configFile:required", "enabled:type"},
		`{"configFile": "x.yaml", "namespace": "y", "zone": 1}`: {"namespace:readonly", "zone:unknown"},
	} {
		_, err := f.Projects.Create(ctx, body(t, json), resolve)
		wantProblems(t, err, want...)
	}
	_, err = f.Projects.Create(ctx, body(t, `{"configFile": "bad.yaml"}`), resolve)
	wantError(t, err, errConfig)
	_, err = f.Projects.Create(ctx, body(t, `{"configFile": "blog.yaml"}`), resolve)
	if e := errs.From(err); e == nil || e.Kind != errs.Conflict || e.Fields[0].Path != "namespace" {
		t.Errorf("a second blog: %v, want a conflict", err)
	}

	_, err = f.Projects.Update(ctx, p.ID.Hex(), body(t, `{"configFile": "bad.yaml"}`), resolve)
	wantError(t, err, errConfig)
	_, err = f.Projects.Update(ctx, p.ID.Hex(), body(t, `{"configFile": "shop.yaml"}`), resolve)
	wantProblems(t, err, "configFile:namespace")
	_, err = f.Projects.Update(ctx, p.ID.Hex(), body(t, `{"configFile": null}`), resolve)
	wantProblems(t, err, "configFile:required")
	got, err := f.Projects.ByID(ctx, p.ID.Hex())
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "after refused updates", p, got)
	same := func(context.Context, string) (string, error) { return "blog", nil }
	got, err = f.Projects.Update(ctx, p.ID.Hex(), body(t, `{"configFile": "moved/blog.yaml"}`), same)
	if err != nil || got.ConfigFile != "moved/blog.yaml" {
		t.Errorf("moved: %+v, %v", got, err)
	}
}

func TestSigningKeysAreMadeOnce(t *testing.T) {
	f := newSystem(t)
	other := f.another()
	var others []system.SigningKey
	f.store.once(func() { // another instance starts between our look and our write
		var err error
		if others, err = other.Secrets.SigningKeys(t.Context()); err != nil {
			t.Error(err)
		}
	})
	keys, err := f.Secrets.SigningKeys(t.Context())
	if err != nil || len(keys) != 1 || len(keys[0].Secret) != 32 || keys[0].ID == "" {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	diff(t, "keys of two instances", others, keys)
	again, err := f.another().Secrets.SigningKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "keys after a restart", keys, again)
}

func TestRotationKeepsWhatIsInUse(t *testing.T) {
	f := newSystem(t)
	ctx := t.Context()
	const keep = 12 * time.Hour
	ids := func(keys []system.SigningKey, err error) []string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, k := range keys {
			ids = append(ids, k.ID)
		}
		return ids
	}
	adopt := func(letter string) []string {
		t.Helper()
		return ids(f.Secrets.Adopt(ctx, []byte(strings.Repeat(letter, 32)), keep))
	}
	generated := ids(f.Secrets.SigningKeys(ctx))
	f.clock.Pass(time.Hour)
	first := adopt("1")
	diff(t, "the generated one stays", []string{
		system.NewSigningKey([]byte(strings.Repeat("1", 32)), time.Time{}).ID, generated[0],
	}, first)
	f.clock.Pass(11 * time.Hour)
	second := adopt("2")
	diff(t, "both stay", []string{second[0], first[0], generated[0]}, second)
	f.clock.Pass(2 * time.Hour)
	third := adopt("3")
	diff(t, "the generated one went", []string{third[0], second[0], first[0]}, third)
	diff(t, "adopted again", third, adopt("3"))
	diff(t, "as stored", third, ids(f.another().Secrets.SigningKeys(ctx)))
	f.clock.Pass(100 * time.Hour)
	last := adopt("4")
	diff(t, "the one that signed until now stays", []string{last[0], third[0]}, last)
}

func TestLoginFailures(t *testing.T) {
	f := newSystem(t)
	ctx := t.Context()
	const forget = time.Hour
	count := func(l *system.Logins, key string) int64 {
		t.Helper()
		got, err := l.Get(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		return got.Count
	}
	add := func(key string) int64 {
		t.Helper()
		got, err := f.Logins.Add(ctx, key, forget)
		if err != nil || !got.Last.Equal(f.clock.Now().Truncate(time.Millisecond)) {
			t.Fatalf("%+v, %v", got, err)
		}
		return got.Count
	}
	diff(t, "none", int64(0), count(f.Logins, "a"))
	diff(t, "first", int64(1), add("a"))
	f.clock.Pass(forget)
	diff(t, "second", int64(2), add("a"))
	diff(t, "on another instance", int64(2), count(f.another().Logins, "a"))
	f.store.once(func() { // another instance counts at the same moment
		if _, err := f.another().Logins.Add(ctx, "a", forget); err != nil {
			t.Error(err)
		}
	})
	diff(t, "none is lost", int64(4), add("a"))
	f.store.once(func() { // and a success clears it
		if err := f.another().Logins.Clear(ctx, "a"); err != nil {
			t.Error(err)
		}
	})
	diff(t, "after a clear", int64(1), add("a"))
	f.clock.Pass(forget + time.Millisecond)
	diff(t, "old ones are forgotten", int64(1), add("a"))
	for range 2 {
		if err := f.Logins.Clear(ctx, "a"); err != nil {
			t.Fatal(err)
		}
	}
	diff(t, "cleared", int64(0), count(f.Logins, "a"))

	add("old")
	f.clock.Pass(forget)
	add("new")
	f.clock.Pass(time.Minute)
	if err := f.Logins.Prune(ctx, forget, 10); err != nil {
		t.Fatal(err)
	}
	diff(t, "pruned", []int64{0, 1}, []int64{count(f.Logins, "old"), count(f.Logins, "new")})
}
