package system_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/system"
)

func userPrincipal(u system.User) *access.Principal {
	return &access.Principal{
		Kind: access.KindUser, ID: u.ID.Hex(), IsAdmin: u.IsAdmin, Scopes: u.Scopes, PATVersion: u.PATVersion,
	}
}

var grantable = []string{"project.read", "user.read"}

func (f *fixture) token(u system.User, name string) (system.Token, string) {
	f.Helper()
	doc := bson.D{{Key: "name", Value: name}, {Key: "scopes", Value: bson.A{"project.read"}}}
	tok, value, err := f.Tokens.Create(f.Context(), userPrincipal(u), doc, grantable)
	if err != nil {
		f.Fatal(err)
	}
	return tok, value
}

func TestTokenLifecycle(t *testing.T) {
	f := newSystem(t)
	ctx := t.Context()
	ann, bob, root := f.user("ann"), f.user("bob"), f.user("root", isAdmin)
	tok, value := f.token(ann, "ci")
	diff(t, "created", system.Token{
		ID: tok.ID, Rev: 1, UserID: ann.ID.Hex(), Name: "ci", Scopes: []string{"project.read"}, Hash: tok.Hash,
		CreatedAt: tok.CreatedAt, UpdatedAt: tok.CreatedAt,
	}, tok)
	if len(tok.Hash) != 32 || strings.Contains(string(tok.Hash), value) {
		t.Errorf("hash %x", tok.Hash)
	}
	for name, by := range map[string]*access.Principal{"owner": userPrincipal(ann), "administrator": userPrincipal(root)} {
		if _, err := f.Tokens.Get(ctx, by, tok.ID.Hex()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	id, change := tok.ID.Hex(), body(t, `{"name": "x"}`)
	for name, err := range map[string]error{
		"foreign get":    second(f.Tokens.Get(ctx, userPrincipal(bob), id)),
		"foreign update": second(f.Tokens.Update(ctx, userPrincipal(bob), id, change, grantable)),
		"foreign delete": f.Tokens.Delete(ctx, userPrincipal(bob), id),
		"nobody":         second(f.Tokens.Get(ctx, nil, id)),
	} {
		if !errors.Is(err, errs.ErrNotFound) {
			t.Errorf("%s: %v, want not found", name, err)
		}
	}
	wantError(t, second(f.Tokens.Update(ctx, userPrincipal(root), id, change, grantable)), errs.ErrDenied)

	f.clock.Pass(time.Hour)
	changed, err := f.Tokens.Update(ctx, userPrincipal(ann), id, body(t, `{"name": "ci 2", "scopes": ["user.read"], "expiresAt": "2026-02-01T00:00:00Z"}`), grantable)
	if err != nil {
		t.Fatal(err)
	}
	want := tok
	want.Rev, want.Name, want.Scopes, want.UpdatedAt = 2, "ci 2", []string{"user.read"}, tok.UpdatedAt.Add(time.Hour)
	want.ExpiresAt = time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	diff(t, "updated", want, changed)

	if err := f.Tokens.Delete(ctx, userPrincipal(root), id); err != nil {
		t.Error(err)
	}
	wantError(t, second(f.Tokens.Get(ctx, userPrincipal(ann), id)), errs.ErrNotFound)
}

func second[T any](_ T, err error) error { return err }

func TestTokenBodies(t *testing.T) {
	f := newSystem(t)
	bounded := system.New(f.store, system.Options{Now: f.clock.Now, PATDefaultTTL: 90 * 24 * time.Hour, PATMaxTTL: 100 * 24 * time.Hour})
	ann := f.user("ann")
	for _, tc := range []struct {
		body    string
		bounded bool
		want    string // problems, or when it expires
	}{
		{`{"name": "n", "scopes": []}`, false, "never"},
		{`{"name": "n", "scopes": []}`, true, "2026-04-02T03:04:05Z"},
		{`{"name": "n", "scopes": [], "expiresAt": null}`, false, "never"},
		{`{"name": "n", "scopes": [], "expiresAt": null}`, true, "expiresAt:expiry"},
		{`{"name": "n", "scopes": [], "expiresAt": "2026-04-12T00:00:00+02:00"}`, true, "2026-04-11T22:00:00Z"},
		{`{"name": "n", "scopes": [], "expiresAt": "2026-04-13T00:00:00Z"}`, true, "expiresAt:expiry"},
		{`{"name": "n", "scopes": [], "expiresAt": "2126-04-13T00:00:00Z"}`, false, "2126-04-13T00:00:00Z"},
		{`{"name": "n", "scopes": [], "expiresAt": "2026-01-02T03:04:05Z"}`, false, "expiresAt:expiry"},
		{`{"name": "n", "scopes": [], "expiresAt": 5}`, false, "expiresAt:type"},
		{`{"name": "n", "scopes": [], "expiresAt": {"$gt": ""}}`, false, "expiresAt:type"},
		{`{}`, false, "name:required scopes:required"},
		{`{"name": "", "scopes": ["project.reload", "project.create", "nope", "project.read", 5]}`, false, "name:required scopes.0:oneof scopes.1:oneof scopes.2:oneof scopes.4:oneof"},
		{`{"name": "` + strings.Repeat("é", 100) + `", "scopes": ["project.read"]}`, false, "never"},
		{`{"name": "` + strings.Repeat("é", 101) + `", "scopes": "project.read"}`, false, "name:max scopes:type"},
		{
			`{"name": "n", "scopes": [], "userId": "x", "lastUsedAt": null, "hash": "", "patVersion": 9, "Name": "x", "token": "x"}`, false,
			"userId:readonly lastUsedAt:readonly hash:unknown patVersion:unknown Name:unknown token:unknown",
		},
	} {
		models := f.System
		if tc.bounded {
			models = bounded
		}
		tok, _, err := models.Tokens.Create(t.Context(), userPrincipal(ann), body(t, tc.body), grantable)
		var got []string
		if e := errs.From(err); e != nil {
			for _, p := range e.Fields {
				got = append(got, p.Path+":"+p.Rule)
			}
		} else if got = []string{"never"}; !tok.ExpiresAt.IsZero() {
			got = []string{tok.ExpiresAt.Truncate(time.Second).Format(time.RFC3339)}
		}
		diff(t, tc.body, tc.want, strings.Join(got, " "))
	}
	// Only a session makes tokens.
	for _, kind := range []access.Kind{access.KindPAT, access.KindAdmin, access.KindToken, access.KindAnonymous} {
		by := userPrincipal(ann)
		by.Kind = kind
		_, _, err := f.Tokens.Create(t.Context(), by, body(t, `{"name": "n", "scopes": []}`), grantable)
		wantError(t, err, errs.ErrDenied)
	}
}

func TestTokenLists(t *testing.T) {
	f := newSystem(t)
	ann, bob, root := f.user("ann"), f.user("bob"), f.user("root", isAdmin)
	f.token(ann, "a1")
	f.token(bob, "b1")
	f.token(ann, "a2")
	names := func(by *access.Principal, filter string) string {
		t.Helper()
		page, err := f.Tokens.List(t.Context(), by, query.Params{Where: query.Where{Filter: body(t, filter)}, Sort: "-name"})
		if err != nil {
			return errs.From(err).Message
		}
		var out []string
		for _, tok := range page.Items {
			out = append(out, tok.Name)
		}
		return strings.Join(out, " ")
	}
	for _, tc := range []struct {
		by           *access.Principal
		filter, want string
	}{
		{userPrincipal(ann), `{}`, "a2 a1"},
		{userPrincipal(bob), `{}`, "b1"},
		{userPrincipal(bob), `{"userId": "` + ann.ID.Hex() + `"}`, ""},
		{userPrincipal(root), `{}`, "b1 a2 a1"},
		{userPrincipal(root), `{"userId": "` + ann.ID.Hex() + `", "scopes": "project.read"}`, "a2 a1"},
		{userPrincipal(root), `{"lastUsedAt": {"$exists": true}}`, ""},
		{nil, `{}`, ""},
		{access.Anonymous(), `{}`, ""},
		{userPrincipal(root), `{"hash": {"$exists": true}}`, "unknown field: hash"},
		{userPrincipal(root), `{"token": "x"}`, "unknown field: token"},
		{userPrincipal(root), `{"patVersion": 0}`, "unknown field: patVersion"},
	} {
		diff(t, tc.filter, tc.want, names(tc.by, tc.filter))
	}
}

// The end of a token can be moved as long as it lasts, and not beyond what one lasts at most from when it was made.
func TestATokenIsNotKeptAliveForEver(t *testing.T) {
	f := newSystem(t)
	ann := f.user("ann")
	tokens := system.New(f.store, system.Options{Now: f.clock.Now, PATDefaultTTL: time.Hour, PATMaxTTL: 10 * time.Hour}).Tokens
	made, _, err := tokens.Create(t.Context(), userPrincipal(ann), body(t, `{"name": "n", "scopes": []}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	move := func(after time.Duration) string {
		doc := bson.D{{Key: "expiresAt", Value: made.CreatedAt.Add(after).Format(time.RFC3339)}}
		_, err := tokens.Update(t.Context(), userPrincipal(ann), made.ID.Hex(), doc, nil)
		if err == nil {
			return ""
		}
		if fields := errs.From(err).Fields; len(fields) == 1 {
			return fields[0].Rule
		}
		return err.Error()
	}
	for _, step := range []struct {
		passes, ends time.Duration
		want         string
	}{{0, 2 * time.Hour, ""}, {time.Hour, 11 * time.Hour, "expiry"}, {0, 9 * time.Hour, ""}, {7 * time.Hour, 9*time.Hour + time.Minute, ""}, {2 * time.Hour, 9*time.Hour + 30*time.Minute, "expiry"}} {
		f.clock.Pass(step.passes)
		if got := move(step.ends); got != step.want {
			t.Errorf("an end at %s, %s later: %q, want %q", step.ends, step.passes, got, step.want)
		}
	}
}

// How long a token lasts at most is told as the setting is given.
func TestLongestToken(t *testing.T) {
	f := newSystem(t)
	ann := f.user("ann")
	for most, want := range map[time.Duration]string{366 * 24 * time.Hour: "a token lasts at most 366d ", 36 * time.Hour: "a token lasts at most 36h0m0s "} {
		tokens := system.New(f.store, system.Options{Now: f.clock.Now, PATDefaultTTL: time.Hour, PATMaxTTL: most}).Tokens
		_, _, err := tokens.Create(t.Context(), userPrincipal(ann), body(t, `{"name": "n", "scopes": [], "expiresAt": "2999-01-01T00:00:00Z"}`), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// What ends a user's tokens: the versions differ from then on, and the records go.
func TestTokensEndWithTheirOwner(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(f *fixture, u system.User) error
		void bool
	}{
		"login":           {func(f *fixture, u system.User) error { return second(f.Users.LoggedIn(f.Context(), u, "")) }, false},
		"logout":          {func(f *fixture, u system.User) error { return f.Users.RevokeTokens(f.Context(), u.ID, false) }, false},
		"logout with all": {func(f *fixture, u system.User) error { return f.Users.RevokeTokens(f.Context(), u.ID, true) }, true},
		"own password": {func(f *fixture, u system.User) error {
			return second(f.Users.SetPassword(f.Context(), u, "new password"))
		}, true},
		"another password": {func(f *fixture, u system.User) error { return f.change(u, `{"password": "new password"}`) }, true},
		"deactivation":     {func(f *fixture, u system.User) error { return f.change(u, `{"active": false}`) }, true},
		"other changes":    {func(f *fixture, u system.User) error { return f.change(u, `{"name": "x", "active": true}`) }, false},
		"deletion":         {func(f *fixture, u system.User) error { return f.Users.Delete(f.Context(), admin, u.ID.Hex()) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newSystem(t)
			f.user("root", isAdmin)
			ann, bob := f.user("ann"), f.user("bob")
			tok, _ := f.token(ann, "a")
			other, _ := f.token(bob, "b")
			if err := tc.end(f, ann); err != nil {
				t.Fatal(err)
			}
			_, err := f.Tokens.ByID(t.Context(), tok.ID.Hex())
			if gone := err != nil; gone != tc.void {
				t.Errorf("the token is gone: %t, want %t", gone, tc.void)
			}
			if u, err := f.Users.ByID(t.Context(), ann.ID.Hex()); err == nil && (u.PATVersion != tok.PATVersion) != tc.void {
				t.Errorf("version %d, the token's is %d", u.PATVersion, tok.PATVersion)
			}
			if _, err := f.Tokens.ByID(t.Context(), other.ID.Hex()); err != nil {
				t.Errorf("another user's token: %v", err)
			}
		})
	}
}

func (f *fixture) change(u system.User, doc string) error {
	f.Helper()
	_, err := f.Users.Update(f.Context(), admin, u.ID.Hex(), body(f.T, doc))
	return err
}

func TestTokenValues(t *testing.T) {
	f := newSystem(t)
	ann := f.user("ann")
	tok, value := f.token(ann, "a")
	if id, ok := system.ParseToken(value); !ok || id != tok.ID {
		t.Fatalf("%s: %s, %t", value, id, ok)
	}
	for i := range value {
		for _, c := range []byte{value[i] ^ 1, value[i] ^ 0x20, 0, '_', '.'} {
			other := value[:i] + string(rune(c)) + value[i+1:]
			if _, ok := system.ParseToken(other); ok && other != value {
				t.Errorf("%q passes for a value", other)
			}
		}
	}
	for _, bad := range []string{"", "svc_pat_", value[:len(value)-1], value + "0", " " + value, strings.ToUpper(value), strings.Repeat("svc_pat_", 1<<17)} {
		if _, ok := system.ParseToken(bad); ok {
			t.Errorf("%.100q passes for a value", bad)
		}
	}
	// All instances hash alike, whoever was first.
	var wg sync.WaitGroup
	hashes := make([]string, 8)
	g := newSystem(t)
	for i := range hashes {
		wg.Go(func() {
			h, err := g.another().Tokens.HashOf(t.Context(), value)
			if err != nil {
				t.Error(err)
			}
			hashes[i] = string(h)
		})
	}
	wg.Wait()
	for _, h := range hashes {
		if h != hashes[0] || h == string(tok.Hash) {
			t.Errorf("hash %x, the first is %x, that of another service %x", h, hashes[0], tok.Hash)
		}
	}
	if data, err := json.Marshal(tok); err != nil || strings.Contains(string(data), "ash") {
		t.Errorf("%s, %v", data, err)
	}
}

func TestTokenUseIsNotedOnceAMinute(t *testing.T) {
	f := newSystem(t)
	tok, _ := f.token(f.user("ann"), "a")
	for _, tc := range []struct {
		pass time.Duration
		rev  int64
	}{{0, 2}, {59 * time.Second, 2}, {time.Second, 3}, {time.Hour, 4}} {
		f.clock.Pass(tc.pass)
		if err := f.another().Tokens.Used(t.Context(), tok.ID, time.Minute); err != nil {
			t.Fatal(err)
		}
		got, err := f.Tokens.ByID(t.Context(), tok.ID.Hex())
		if err != nil {
			t.Fatal(err)
		}
		if got.Rev != tc.rev {
			t.Errorf("after %s: revision %d, want %d (%s)", tc.pass, got.Rev, tc.rev, got.LastUsedAt)
		}
	}
	if err := f.Tokens.Used(t.Context(), bson.NewObjectID(), time.Minute); err != nil {
		t.Errorf("a token that is gone: %v", err)
	}
}
