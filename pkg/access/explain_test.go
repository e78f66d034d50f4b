package access_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/schema"
)

// What an explanation says of a few decisions, in full.
func TestExplain(t *testing.T) {
	spec := shop()
	spec.Teams["authors"] = schema.PermissionSet{Methods: schema.Methods{Get: single}, Filter: eq("owner", variable("user.id"))}
	p, e := compile(t, spec), env(t)
	editor := user(func(p *access.Principal) { p.Teams = []string{"editors", "strangers", "authors"} })
	foreign := user(func(p *access.Principal) { p.Limited = true })
	for _, tt := range []struct {
		name         string
		who          *access.Principal
		method       access.Method
		rule, reason string
	}{
		{"nobody", nil, access.Get, "credential", "there is nobody, nothing or no method to decide about"},
		{"no method", access.Anonymous(), 0, "credential", "there is nobody, nothing or no method to decide about"},
		{"no kind", &access.Principal{}, access.Get, "credential", "the credential is of no known kind"},
		{"server admin token", &access.Principal{Kind: access.KindAdmin}, access.Delete, "administrator", "administrators and the server admin token may do everything"},
		{"anyone", access.Anonymous(), access.Get, "public", "the set public allows get"},
		{"anyone who writes", access.Anonymous(), access.Put, "public", "the set public does not allow put"},
		{"user", user(nil), access.Put, "user", "the set user allows put"},
		{"all sets that allow", editor, access.Get, "user + team:editors + team:authors", "the set user allows get; the set team:editors allows get; the set team:authors allows get"},
		{"one of the sets", editor, access.Post, "team:editors", "the set team:editors allows post"},
		{"none of the sets", editor, access.Delete, "user + team:editors + team:authors", "the set user does not allow delete; the set team:editors does not allow delete; the set team:authors does not allow delete"},
		{"foreign user", foreign, access.Get, "org", "the user is limited to organizations, and the project belongs to none of them: it isn't there for them"},
		{"token", token("plain-token"), access.Post, "token:sha256:23fb79e2…", "the set token:sha256:23fb79e2… allows post"},
		{"unknown token", token("nope"), access.Get, "credential", "neither the collection nor the project has this token, or it has expired"},
		{"expired token", token("expired-token"), access.Get, "credential", "neither the collection nor the project has this token, or it has expired"},
		{"no token", &access.Principal{Kind: access.KindToken}, access.Get, "credential", "the token is empty"},
		{"project admin token", token("admin-token"), access.Delete, "project admin token", "the project's admin token deploy has the right collections"},
		{"token for reloads", token("reload-token"), access.Get, "project admin token", "the project's admin token admin token 3 lacks the right collections"},
		{"pat without scope", pat([]string{"namespace.shop.items.read"}, nil), access.Put, "scopes", "neither the token's scopes nor its owner's give namespace.shop.items.update"},
		{"pat whose owner has the scope", pat([]string{"namespace.shop.items.read"}, func(p *access.Principal) { p.Scopes = []string{"namespace.shop"} }), access.Put, "scopes", "the token's scopes don't give namespace.shop.items.update"},
		{"pat whose owner lacks the scope", pat([]string{"namespace.shop"}, nil), access.Put, "scopes", "the token's scopes give, but its owner has not, namespace.shop.items.update"},
		{"pat of an administrator", pat([]string{"namespace.shop"}, func(p *access.Principal) { p.IsAdmin = true }), access.Put, "scopes + administrator", "the token's scopes and its owner's rights give namespace.shop.items.update; the token's owner is an administrator"},
		{"pat whose owner may not", pat([]string{"namespace.shop"}, func(p *access.Principal) { p.Scopes = []string{"namespace.shop"} }), access.Post, "user", "the set user does not allow post"},
	} {
		got := p.Explain(tt.who, tt.method, e)
		if got.Rule() != tt.rule || got.Reason() != tt.reason {
			t.Errorf("%s: %s: %s\nwant %s: %s", tt.name, got.Rule(), got.Reason(), tt.rule, tt.reason)
		}
	}
}

// Whoever asks for whatever: an explanation is that of the decision, and says of every one what decided it.
func TestExplainIsWhatDecides(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	some := func(from ...string) (out []string) {
		for _, s := range from {
			if rnd.IntN(2) == 0 {
				out = append(out, s)
			}
		}
		return out
	}
	set := func(hasUser bool) schema.PermissionSet {
		right := func() schema.MethodRights {
			yes := func() bool { return rnd.IntN(3) > 0 }
			return schema.MethodRights{Allow: yes(), Bulk: yes(), Aggregate: yes(), Lookup: yes(), Count: yes(), Facet: yes()}
		}
		s := schema.PermissionSet{
			Methods:      schema.Methods{Get: right(), Post: right(), Put: right(), Delete: right()},
			HiddenFields: some("a", "b"), ReadonlyFields: some("c"), ValidProjections: some("p", "q"),
		}
		switch filters := []*schema.FilterSpec{nil, eq("status", "x"), eq("publishedAt", variable("now")), eq("owner", variable("user.id"))}; {
		case hasUser:
			s.Filter = filters[rnd.IntN(4)]
		default:
			s.Filter = filters[rnd.IntN(3)]
		}
		return s
	}
	e := env(t)
	allowed, denied := 0, 0
	for range 300 {
		p := compile(t, schema.Permissions{
			Public: set(false), User: set(true),
			Tokens: map[string]schema.PermissionSet{"plain-token": set(false)},
			Teams:  map[string]schema.PermissionSet{"one": set(true), "two": set(true)},
		})
		for range 30 {
			who := &access.Principal{
				Kind:    []access.Kind{"", access.KindAnonymous, access.KindUser, access.KindPAT, access.KindToken, access.KindAdmin}[rnd.IntN(6)],
				IsAdmin: rnd.IntN(8) == 0, Limited: rnd.IntN(3) == 0, OrgIDs: some(orgID), Teams: some("one", "two", "three"),
				Scopes: some("namespace.shop", "namespace.shop.items.read"), Cap: some("namespace.shop", "namespace.shop.items.update"),
				TokenHash: hash([]string{"plain-token", "admin-token", "expired-token", "reload-token", "none"}[rnd.IntN(5)]),
			}
			if who.Kind == access.KindUser || who.Kind == access.KindPAT || rnd.IntN(9) == 0 {
				who.ID = userID
			}
			if rnd.IntN(9) == 0 {
				who.ID = ""
			}
			at := e
			if rnd.IntN(9) == 0 {
				at.Now = at.Now.AddDate(-9999, 0, 0)
			}
			m := access.Method(rnd.IntN(6))
			grant, err := p.Decide(who, m, at)
			x := p.Explain(who, m, at)
			what := fmt.Sprintf("%+v %v", who, m)
			if diff := cmp.Diff(show(grant), show(x.Grant)); diff != "" || (err == nil) != (x.Err == nil) {
				t.Fatalf("%s: decided %v, explained %v\n%s", what, err, x.Err, diff)
			}
			if x.Rule() == "" || x.Reason() == "" {
				t.Fatalf("%s: %+v says nothing", what, x)
			}
			if err == nil {
				allowed++
			} else {
				denied++
			}
		}
	}
	if allowed < 1000 || denied < 1000 {
		t.Errorf("%d allowed and %d denied: too few of one", allowed, denied)
	}
}

// A decision that nobody asks to explain costs no more for it.
func TestDecideTracesNothing(t *testing.T) {
	p, e := compile(t, shop()), env(t)
	for name, who := range map[string]*access.Principal{"user": user(nil), "token": token("plain-token"), "anyone": access.Anonymous()} {
		for m := access.Get; m <= access.Delete; m++ {
			if n := testing.AllocsPerRun(100, func() { _, _ = p.Decide(who, m, e) }); n > 0 {
				t.Errorf("%s %v: %v allocations", name, m, n)
			}
		}
	}
}

// Who observes permissions is told of each decision, which is the same as without.
func TestObserved(t *testing.T) {
	p, e := compile(t, shop()), env(t)
	var seen []string
	o := p.Observed(func(m access.Method, x access.Explanation) { seen = append(seen, m.String()+" "+x.Rule()) })
	for _, m := range []access.Method{access.Get, access.Post, access.Put} {
		g, err := o.Decide(user(nil), m, e)
		want, wantErr := p.Decide(user(nil), m, e)
		if diff := cmp.Diff(show(want), show(g)); diff != "" || (err == nil) != (wantErr == nil) {
			t.Errorf("%v: %v, want %v\n%s", m, err, wantErr, diff)
		}
	}
	if diff := cmp.Diff([]string{"get user", "post user", "put user"}, seen); diff != "" {
		t.Error(diff)
	}
	sets := p.Sets()
	if diff := cmp.Diff([]access.Method{access.Get, access.Post, access.Put}, sets["team:editors"]); diff != "" || len(sets) != 5 {
		t.Errorf("%s %v", diff, sets)
	}
}
