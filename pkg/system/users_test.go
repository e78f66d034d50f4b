package system_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/system"
)

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestUserLifecycle(t *testing.T) {
	f := newSystem(t)
	ctx := t.Context()
	f.user("root", isAdmin)
	u, err := f.Users.Create(ctx, admin, body(t, `{
		"username": "Ann.Lee@Example.org", "password": "correct horse", "email": "ann@example.org", "name": "Ann Lee",
		"language": "de-AT", "scopes": ["project.read", "namespace.blog", "project.read"]
	}`))
	if err != nil {
		t.Fatal(err)
	}
	created := time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	diff(t, "created", system.User{
		ID: u.ID, Rev: 1, Username: "ann.lee@example.org", Email: "ann@example.org", Name: "Ann Lee",
		PasswordHash: "hash of correct horse", Active: true, Language: "de-AT", Scopes: []string{"namespace.blog", "project.read"},
		OrgIDs: []string{}, TeamIDs: []string{},
		CreatedAt: created, UpdatedAt: created,
	}, u)

	byName, err := f.Users.ByUsername(ctx, "ANN.lee@example.ORG")
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "by name", u, byName)

	f.clock.Pass(time.Hour)
	u2, err := f.Users.Update(ctx, admin, u.ID.Hex(), body(t, `{"name": null, "email": "", "scopes": null, "language": "en"}`))
	if err != nil {
		t.Fatal(err)
	}
	wantUser := u
	wantUser.Rev, wantUser.Name, wantUser.Email, wantUser.Scopes, wantUser.Language = 2, "", "", []string{}, "en"
	wantUser.UpdatedAt = u.UpdatedAt.Add(time.Hour)
	diff(t, "updated", wantUser, u2)
	diff(t, "as stored", wantUser, f.reload(u))

	verified := u
	if u, err = f.Users.LoggedIn(ctx, verified, "new hash"); err != nil {
		t.Fatal(err)
	}
	if !u.LastLoginAt.Equal(f.clock.Now().Truncate(time.Millisecond)) || u.PasswordHash != "new hash" || u.TokenVersion != 0 {
		t.Errorf("after login: %+v", u)
	}
	if u, err = f.Users.LoggedIn(ctx, verified, "newer hash"); err != nil || u.PasswordHash != "new hash" {
		t.Errorf("of two logins at once that make a new hash, the second one: %v %+v", err, u)
	}

	if err := f.Users.Delete(ctx, admin, u.ID.Hex()); err != nil {
		t.Fatal(err)
	}
	_, err = f.Users.ByID(ctx, u.ID.Hex())
	wantError(t, err, errs.ErrNotFound)
	_, err = f.Users.ByUsername(ctx, "ann.lee@example.org")
	wantError(t, err, errs.ErrNotFound)
}

func TestUserBodiesAreValidated(t *testing.T) {
	f := newSystem(t)
	root := f.user("root", isAdmin)
	long := strings.Repeat("x", 1025)
	for name, tc := range map[string]struct {
		json string
		want []string
	}{
		"empty":            {`{}`, []string{"username:required", "password:required"}},
		"null":             {`{"username": null, "password": null}`, []string{"username:required", "password:type"}},
		"types":            {`{"username": 1, "password": {"$ne": 1}, "email": [], "isAdmin": "true", "active": 0, "scopes": "project.read"}`, []string{"username:type", "email:type", "isAdmin:type", "active:type", "scopes:type", "password:type"}},
		"username chars":   {`{"username": "a b", "password": "12345678"}`, []string{"username:pattern"}},
		"username script":  {`{"username": "аdmin", "password": "12345678"}`, []string{"username:pattern"}},
		"username start":   {`{"username": "-a", "password": "12345678"}`, []string{"username:pattern"}},
		"username long":    {`{"username": "` + long + `", "password": "12345678"}`, []string{"username:max"}},
		"password short":   {`{"username": "a", "password": "1234567"}`, []string{"password:len"}},
		"password long":    {`{"username": "a", "password": "` + long + `"}`, []string{"password:len"}},
		"email":            {`{"username": "a", "password": "12345678", "email": "Ann <ann@example.org>"}`, []string{"email:email"}},
		"control":          {`{"username": "a", "password": "12345678", "name": "a\u001b[31m"}`, []string{"name:pattern"}},
		"control, C1":      {`{"username": "a", "password": "12345678", "name": "a\u009b31m"}`, []string{"name:pattern"}},
		"bidi override":    {`{"username": "a", "password": "12345678", "name": "a\u202egpj"}`, []string{"name:pattern"}},
		"bidi isolate":     {`{"username": "a", "password": "12345678", "name": "a\u2066gpj"}`, []string{"name:pattern"}},
		"username, an id":  {`{"username": "0123456789ABCDEF01234567", "password": "12345678"}`, []string{"username:pattern"}},
		"language":         {`{"username": "a", "password": "12345678", "language": "german!"}`, []string{"language:pattern"}},
		"scopes":           {`{"username": "a", "password": "12345678", "scopes": ["project.read", "project.create", 7, "*"]}`, []string{"scopes.1:oneof", "scopes.2:oneof", "scopes.3:oneof"}},
		"unknown, service": {`{"username": "a", "password": "12345678", "passwordHash": "x", "tokenVersion": 9, "id": "x", "createdAt": null, "Username": "b"}`, []string{"passwordHash:unknown", "tokenVersion:unknown", "id:readonly", "createdAt:readonly", "Username:unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.Users.Create(t.Context(), admin, body(t, tc.json))
			wantProblems(t, err, tc.want...)
			if err != nil && strings.Contains(err.Error(), "12345678") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
	if p, err := f.Users.List(t.Context(), admin, query.Params{}); len(p.Items) != 1 || err != nil {
		t.Errorf("%d users, %v; want only the first", len(p.Items), err)
	}
	for json, want := range map[string]string{
		`{"username": ""}`:    "username:required",
		`{"username": null}`:  "username:required",
		`{"password": null}`:  "password:type",
		`{"lastLoginAt": ""}`: "lastLoginAt:readonly",
	} {
		_, err := f.Users.Update(t.Context(), admin, root.ID.Hex(), body(t, json))
		wantProblems(t, err, want)
	}
	diff(t, "after refused updates", root, f.reload(root))
}

func TestUsernamesAreUnique(t *testing.T) {
	f := newSystem(t)
	f.user("root", isAdmin)
	ann := f.user("ann")
	for name, err := range map[string]error{
		"create": func() error {
			_, err := f.Users.Create(t.Context(), admin, body(t, `{"username": "ANN", "password": "12345678"}`))
			return err
		}(),
		"update": func() error {
			_, err := f.Users.Update(t.Context(), admin, ann.ID.Hex(), body(t, `{"username": "Root"}`))
			return err
		}(),
	} {
		e := errs.From(err)
		if e == nil || e.Kind != errs.Conflict || len(e.Fields) != 1 || e.Fields[0].Path != "username" {
			t.Errorf("%s: %v, want a conflict on username", name, err)
		}
	}
	diff(t, "ann", ann, f.reload(ann))
}

func TestTheLastActiveAdminStays(t *testing.T) {
	f := newSystem(t)
	ctx := t.Context()
	root := f.user("root", isAdmin)
	f.user("retired", isAdmin, bson.E{Key: "active", Value: false})
	f.user("ann")
	id := root.ID.Hex()
	_, demote := f.Users.Update(ctx, admin, id, body(t, `{"isAdmin": false}`))
	_, reset := f.Users.Update(ctx, admin, id, body(t, `{"isAdmin": null}`))
	_, deactivate := f.Users.Update(ctx, admin, id, body(t, `{"active": false}`))
	for _, err := range []error{demote, reset, deactivate, f.Users.Delete(ctx, admin, id)} {
		wantError(t, err, system.ErrLastAdmin)
	}
	diff(t, "root", root, f.reload(root))

	second := f.user("second", isAdmin)
	if err := f.Users.Delete(ctx, admin, id); err != nil {
		t.Fatal(err)
	}
	wantError(t, f.Users.Delete(ctx, admin, second.ID.Hex()), system.ErrLastAdmin)
}

func TestTwoAdminsCannotTakeEachOtherAway(t *testing.T) {
	for name, other := range map[string]func(f *fixture, id string) error{
		"demoted": func(f *fixture, id string) error {
			_, err := f.another().Users.Update(f.Context(), admin, id, bson.D{{Key: "isAdmin", Value: false}})
			return err
		},
		"deleted": func(f *fixture, id string) error { return f.another().Users.Delete(f.Context(), admin, id) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newSystem(t)
			a, b := f.user("a", isAdmin), f.user("b", isAdmin)
			f.store.once(func() {
				if err := other(f, b.ID.Hex()); err != nil {
					t.Error(err)
				}
			})
			_, err := f.Users.Update(t.Context(), admin, a.ID.Hex(), body(t, `{"active": false}`))
			wantError(t, err, system.ErrLastAdmin)
			if a := f.reload(a); !a.IsAdmin || !a.Active {
				t.Errorf("nobody is left: %+v", a)
			}
		})
	}
}

func TestConcurrentUpdatesAllCount(t *testing.T) {
	f := newSystem(t)
	f.user("root", isAdmin)
	u := f.user("ann")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := f.Users.RevokeTokens(t.Context(), u.ID, true); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := f.reload(u); got.TokenVersion != 8 || got.PATVersion != 8 || got.Rev != 9 {
		t.Errorf("versions %d and %d, revision %d; want 8, 8 and 9", got.TokenVersion, got.PATVersion, got.Rev)
	}
}

func TestTokenVersions(t *testing.T) {
	f := newSystem(t)
	f.user("root", isAdmin)
	for name, tc := range map[string]struct {
		json string
		want int64
	}{
		"name":                {`{"name": "x"}`, 0},
		"password":            {`{"password": "another one"}`, 1},
		"deactivation":        {`{"active": false}`, 1},
		"still active":        {`{"active": true}`, 0},
		"password and active": {`{"password": "another one", "active": false}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			u := f.user("u" + bson.NewObjectID().Hex())
			got, err := f.Users.Update(t.Context(), admin, u.ID.Hex(), body(t, tc.json))
			if err != nil || got.TokenVersion != tc.want || got.PATVersion != tc.want {
				t.Errorf("versions %d and %d, %v; want %d", got.TokenVersion, got.PATVersion, err, tc.want)
			}
		})
	}
	u := f.user("ann")
	u, err := f.Users.SetPassword(t.Context(), u, "another one")
	if err != nil || u.TokenVersion != 1 || u.PATVersion != 1 || u.PasswordHash != "hash of another one" {
		t.Errorf("after SetPassword: %+v, %v", u, err)
	}
	for i, pats := range []bool{false, true} { // a logout leaves personal access tokens, unless it is of everything
		if err := f.Users.RevokeTokens(t.Context(), u.ID, pats); err != nil {
			t.Fatal(err)
		}
		if got := f.reload(u); got.TokenVersion != u.TokenVersion+int64(i)+1 || got.PATVersion != u.PATVersion+int64(i) {
			t.Errorf("after a logout, all %v: versions %d and %d", pats, got.TokenVersion, got.PATVersion)
		}
	}
}

func TestOnChange(t *testing.T) {
	f := newSystem(t)
	ctx := t.Context()
	f.user("root", isAdmin)
	u := f.user("ann")
	var got []string
	f.Users.OnChange(func(id string) { got = append(got, id) })
	if err := f.Users.RevokeTokens(ctx, u.ID, false); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Users.Update(ctx, admin, u.ID.Hex(), body(t, `{"name": "x"}`)); err != nil {
		t.Fatal(err)
	}
	if err := f.Users.Delete(ctx, admin, u.ID.Hex()); err != nil {
		t.Fatal(err)
	}
	id := u.ID.Hex()
	diff(t, "changes", []string{id, id, id}, got)
}

func TestNobodyRaisesTheirOwnRights(t *testing.T) {
	f := newSystem(t)
	ctx := t.Context()
	root := f.user("root", isAdmin)
	strong := f.user("strong", bson.E{Key: "scopes", Value: bson.A{"server.shutdown"}})
	weak := f.user("weak")
	me := f.user("me", bson.E{Key: "scopes", Value: bson.A{"user.create", "user.delete", "user.update"}})
	by := &access.Principal{Kind: access.KindUser, ID: me.ID.Hex(), Name: "me", Scopes: me.Scopes}

	update := func(by *access.Principal, u system.User, json string) error {
		_, err := f.Users.Update(ctx, by, u.ID.Hex(), body(t, json))
		return err
	}
	create := func(by *access.Principal, json string) error {
		_, err := f.Users.Create(ctx, by, body(t, json))
		return err
	}
	for name, err := range map[string]error{
		"make an admin":            create(by, `{"username": "x1", "password": "12345678", "isAdmin": true}`),
		"give scopes on create":    create(by, `{"username": "x2", "password": "12345678", "scopes": ["user.read"]}`),
		"become admin":             update(by, me, `{"isAdmin": true}`),
		"give oneself scopes":      update(by, me, `{"scopes": ["server.shutdown"]}`),
		"give others scopes":       update(by, weak, `{"scopes": ["user.read"]}`),
		"take an admin's password": update(by, root, `{"password": "12345678"}`),
		"rename an admin":          update(by, root, `{"name": "x"}`),
		"take a stronger one's":    update(by, strong, `{"password": "12345678"}`),
		"strip a stronger one":     update(by, strong, `{"scopes": []}`),
		"delete a stronger one":    f.Users.Delete(ctx, by, strong.ID.Hex()),
		"delete an admin":          f.Users.Delete(ctx, by, root.ID.Hex()),
		"anonymous gives an admin": create(access.Anonymous(), `{"username": "x3", "password": "12345678", "isAdmin": true}`),
	} {
		t.Run(name, func(t *testing.T) { wantError(t, err, errs.ErrDenied) })
	}
	for name, err := range map[string]error{ // whom they can't see at all
		"nobody":                    update(nil, weak, `{"name": "x"}`),
		"token takes stronger's":    update(&access.Principal{Kind: access.KindToken}, strong, `{"password": "12345678"}`),
		"user without id as itself": update(&access.Principal{Kind: access.KindUser}, strong, `{"name": "x"}`),
	} {
		t.Run(name, func(t *testing.T) { wantError(t, err, errs.ErrNotFound) })
	}
	wantProblems(t, update(by, me, `{"password": "12345678"}`), "password:readonly")
	_, err := f.Users.Update(ctx, by, strings.ToUpper(me.ID.Hex()), body(t, `{"password": "12345678"}`)) // the same id
	wantProblems(t, err, "password:readonly")
	for _, u := range []system.User{root, strong, weak, me} {
		diff(t, u.Username, u, f.reload(u))
	}

	for name, err := range map[string]error{
		"create":           create(by, `{"username": "y", "password": "12345678"}`),
		"set a password":   update(by, weak, `{"password": "12345678"}`),
		"rename oneself":   update(by, me, `{"name": "x"}`),
		"same scopes":      update(by, me, `{"scopes": ["user.update", "user.delete", "user.create"]}`),
		"an admin user":    update(&access.Principal{Kind: access.KindUser, ID: root.ID.Hex(), IsAdmin: true}, strong, `{"scopes": []}`),
		"delete":           f.Users.Delete(ctx, by, weak.ID.Hex()),
		"delete weaker":    f.Users.Delete(ctx, by, strong.ID.Hex()), // it has no scopes any more
		"by the admin key": update(admin, me, `{"password": "12345678", "scopes": []}`),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUserPages(t *testing.T) {
	f := newSystem(t)
	for _, name := range []string{"c", "a", "b"} {
		f.user(name)
	}
	page := func(limit int64, after string, offset int64) query.Params {
		return query.Params{Limit: &limit, After: after, Offset: offset}
	}
	next := func(n int64) string {
		p, err := f.Users.List(t.Context(), admin, page(n, "", 0))
		if err != nil {
			t.Fatal(err)
		}
		return p.Next
	}
	for name, tc := range map[string]struct {
		params query.Params
		want   []string
		more   bool
	}{
		"all":              {query.Params{}, []string{"c", "a", "b"}, false},
		"exact":            {page(3, "", 0), []string{"c", "a", "b"}, false},
		"first":            {page(2, "", 0), []string{"c", "a"}, true},
		"second":           {page(2, "", 2), []string{"b"}, false},
		"behind":           {page(2, "", 3), nil, false},
		"none":             {page(0, "", 0), nil, false},
		"after the first":  {page(1, next(1), 0), []string{"a"}, true},
		"after the second": {page(1, next(2), 0), []string{"b"}, false},
		"after, offset":    {page(1, next(1), 1), []string{"b"}, false},
		"sorted":           {query.Params{Sort: "-username"}, []string{"c", "b", "a"}, false},
		"filtered":         {query.Params{Where: query.Where{Filter: bson.D{{Key: "username", Value: bson.D{{Key: "$gt", Value: "a"}}}}}}, []string{"c", "b"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := f.Users.List(t.Context(), admin, tc.params)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, u := range p.Items {
				got = append(got, u.Username)
			}
			diff(t, "names", tc.want, got)
			if p.HasMore != tc.more || p.HasMore != (p.Next != "") || p.Items == nil {
				t.Errorf("has more %t, next %q, items %v", p.HasMore, p.Next, p.Items)
			}
		})
	}
	for _, hidden := range []string{"passwordHash", "tokenVersion", "password"} {
		if _, err := f.Users.List(t.Context(), admin, query.Params{Sort: hidden}); err == nil || err.Error() != "unknown field: "+hidden {
			t.Errorf("sorted by %s: %v", hidden, err)
		}
	}
	for _, bad := range []string{"x", "650102030405060708090a0", "{}"} {
		_, err := f.Users.List(t.Context(), admin, page(1, bad, 0))
		if e := errs.From(err); e == nil || e.Code != "bad_cursor" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestHashesStayInside(t *testing.T) {
	f := newSystem(t)
	u := f.user("ann")
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("login", slog.Any("user", u)) // what a careless caller would do
	asJSON, err := json.Marshal(u)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{log.String(), string(asJSON)} {
		if !strings.Contains(s, "ann") || strings.Contains(s, "hash of") || strings.Contains(s, "passwordHash") {
			t.Errorf("the hash gets out: %s", s)
		}
	}
}
