package access_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/schema"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

const (
	userID = "650102030405060708090a0b"
	orgID  = "760102030405060708090a0b"
)

// The rights of a plain true, and of everything.
var (
	single = schema.MethodRights{Allow: true, Count: true, Facet: true}
	all    = schema.MethodRights{Allow: true, Bulk: true, Aggregate: true, Lookup: true, Count: true, Facet: true}
)

func hash(token string) [32]byte { return sha256.Sum256([]byte(token)) }

func token(value string) *access.Principal {
	return &access.Principal{Kind: access.KindToken, TokenHash: hash(value)}
}

func user(change func(p *access.Principal)) *access.Principal {
	p := &access.Principal{Kind: access.KindUser, ID: userID, Name: "ann"}
	if change != nil {
		change(p)
	}
	return p
}

// tree is the fields that filters are cast by.
func tree(tb testing.TB) *fieldtype.Tree {
	tb.Helper()
	var fields []*fieldtype.Field
	for name, typeName := range map[string]string{"status": "string", "publishedAt": "date", "owner": "string", "org": "string"} {
		ft, ok := fieldtype.ByName(typeName)
		if !ok {
			tb.Fatal(typeName)
		}
		f := &fieldtype.Field{Name: name, Path: name, Type: ft}
		if name == "owner" {
			f.Foreign = &fieldtype.Foreign{Collection: "people"}
		}
		fields = append(fields, f)
	}
	return fieldtype.NewTree(fields, false)
}

// compile makes permissions that must be good.
func compile(tb testing.TB, spec schema.Permissions) *access.Permissions {
	tb.Helper()
	p, problems := access.Compile(&spec, []string{"secret"}, []string{"serial"}, nil, tree(tb).Cast)
	if len(problems) > 0 {
		tb.Fatal(problems)
	}
	return p
}

func object(doc bson.D) *schema.FilterSpec { return &schema.FilterSpec{Object: doc} }

func eq(path string, v any) *schema.FilterSpec { return object(bson.D{{Key: path, Value: v}}) }

func variable(name string) bson.D { return bson.D{{Key: "$var", Value: name}} }

// shop has a set of each kind, every one with other rights.
func shop() schema.Permissions {
	hashed := hash("hashed-token")
	return schema.Permissions{
		Public: schema.PermissionSet{Methods: schema.Methods{Get: single}, Filter: eq("status", "published"), ValidProjections: []string{"card"}},
		User:   schema.PermissionSet{Methods: schema.Methods{Get: all, Put: single}, HiddenFields: []string{"cost"}},
		Tokens: map[string]schema.PermissionSet{
			"plain-token": {Methods: schema.Methods{Post: single}},
			"sha256:" + hex.EncodeToString(hashed[:]): {Methods: schema.Methods{Delete: all}},
			"X-Admin-Token": {Methods: schema.Methods{Get: all}},
			"authorization": {Methods: schema.Methods{Get: all}},
		},
		Teams: map[string]schema.PermissionSet{
			"editors": {Methods: schema.Methods{Get: single, Post: single, Put: all}},
		},
	}
}

func env(tb testing.TB) access.Env {
	tb.Helper()
	past, future := noon.Add(-time.Second), noon.Add(time.Second)
	tokens, problems := access.CompileAdmin(&schema.Admin{Tokens: []schema.AdminToken{
		{Name: "deploy", Value: "admin-token", Rights: []string{"collections", "reload"}, ExpiresAt: &future},
		{Name: "old", Value: "expired-token", Rights: []string{"collections"}, ExpiresAt: &past},
		{Value: "reload-token", Rights: []string{"reload"}},
	}})
	if len(problems) > 0 {
		tb.Fatal(problems)
	}
	return access.Env{Now: noon, Namespace: "shop", Collection: "items", AdminTokens: tokens, OrgID: orgID}
}

// pat is a personal access token with scopes, of the user that change makes.
func pat(scopes []string, change func(*access.Principal)) *access.Principal {
	return user(func(p *access.Principal) {
		p.Kind, p.Cap = access.KindPAT, scopes
		if change != nil {
			change(p)
		}
	})
}

// A personal access token has what both its scopes and its owner's rights give, and nothing that no scope gives.
func TestRightsOfPersonalAccessTokens(t *testing.T) {
	admin := func(p *access.Principal) { p.IsAdmin = true }
	for _, tt := range []struct {
		name  string
		who   *access.Principal
		right string
		want  bool
	}{
		{"admin's", pat([]string{access.UserRead}, admin), access.UserRead, true},
		{"beyond its scopes", pat([]string{access.UserRead}, admin), access.UserUpdate, false},
		{"no scope's", pat([]string{access.ProjectCreate, access.ProjectRead}, admin), access.ProjectCreate, false},
		{"everything", pat(api.Scopes(), admin), access.OrgCreate, false},
		{"owner has it", pat([]string{access.UserRead}, func(p *access.Principal) { p.Scopes = []string{access.UserRead} }), access.UserRead, true},
		{"owner lacks it", pat([]string{access.UserRead}, nil), access.UserRead, false},
		{"wildcard of the owner", pat([]string{"namespace.a.b.read"}, func(p *access.Principal) { p.Scopes = []string{"namespace.a"} }), "namespace.a.b.read", true},
		{"wildcard beyond the owner", pat([]string{"namespace.a"}, func(p *access.Principal) { p.Scopes = []string{"namespace.a.b.read"} }), "namespace.a.c.read", false},
	} {
		if got := tt.who.Has(tt.right); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
		if tt.who.Full() {
			t.Errorf("%s: full", tt.name)
		}
	}
}

func TestDecideWhoMayDoWhat(t *testing.T) {
	p, e := compile(t, shop()), env(t)
	methods := []access.Method{access.Get, access.Post, access.Put, access.Delete}
	tests := []struct {
		name string
		who  *access.Principal
		want string // the methods allowed
	}{
		{"anonymous", access.Anonymous(), "get"},
		{"user", user(nil), "get put"},
		{"user of the org", user(func(p *access.Principal) { p.Limited, p.OrgIDs = true, []string{"x", orgID} }), "get put"},
		{"user of another org", user(func(p *access.Principal) { p.Limited, p.OrgIDs, p.Teams = true, []string{"x"}, []string{"editors"} }), ""},
		{"user with a team", user(func(p *access.Principal) { p.Teams = []string{"none", "editors"} }), "get post put"},
		{"user without an id", user(func(p *access.Principal) { p.ID = "" }), ""},
		{"user without an id, admin", user(func(p *access.Principal) { p.ID = ""; p.IsAdmin = true }), ""},
		{"user with every scope", user(func(p *access.Principal) { p.Scopes = api.Scopes() }), "get put"},
		{"admin user", user(func(p *access.Principal) { p.IsAdmin = true }), "get post put delete"},
		{"admin", &access.Principal{Kind: access.KindAdmin}, "get post put delete"},
		{"pat of an admin", pat([]string{"namespace.shop"}, func(p *access.Principal) { p.IsAdmin = true }), "get post put delete"},
		{"pat of an admin, to read", pat([]string{"namespace.shop.items.read"}, func(p *access.Principal) { p.IsAdmin = true }), "get"},
		{"pat of an admin, of another project", pat([]string{"namespace.sho", "namespace.shop.other.read"}, func(p *access.Principal) { p.IsAdmin = true }), ""},
		{"pat of an admin, without scopes", pat(nil, func(p *access.Principal) { p.IsAdmin = true }), ""},
		{"pat, owner with the scopes", pat([]string{"namespace.shop"}, func(p *access.Principal) { p.Scopes = []string{"namespace.shop"} }), "get put"},
		{"pat, owner with one of them", pat([]string{"namespace.shop"}, func(p *access.Principal) { p.Scopes = []string{"namespace.shop.items.update"} }), "put"},
		{"pat, owner without", pat([]string{"namespace.shop"}, nil), ""},
		{"pat, owner of another org", pat([]string{"namespace.shop"}, func(p *access.Principal) { p.Scopes, p.Limited, p.OrgIDs = p.Cap, true, []string{"x"} }), ""},
		{"pat without an owner", pat([]string{"namespace.shop"}, func(p *access.Principal) { p.ID, p.IsAdmin = "", true }), ""},
		{"collection token", token("plain-token"), "post"},
		{"hashed collection token", token("hashed-token"), "delete"},
		{"project admin token", token("admin-token"), "get post put delete"},
		{"expired admin token", token("expired-token"), ""},
		{"admin token without the right", token("reload-token"), ""},
		{"reserved name", token("X-Admin-Token"), ""},
		{"reserved name in lower case", token("authorization"), ""},
		{"unknown token", token("nothing"), ""},
		{"empty token", token(""), ""},
		{"no token", &access.Principal{Kind: access.KindToken}, ""},
		{"anonymous with a token's hash", &access.Principal{Kind: access.KindAnonymous, TokenHash: hash("admin-token")}, "get"},
		{"anonymous as admin", &access.Principal{Kind: access.KindAnonymous, IsAdmin: true, ID: userID}, "get"},
		{"token as admin", &access.Principal{Kind: access.KindToken, IsAdmin: true, ID: userID}, ""},
		{"zero", &access.Principal{}, ""},
		{"unknown kind", &access.Principal{Kind: "root", ID: userID, IsAdmin: true}, ""},
		{"nobody", nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, m := range methods {
				g, err := p.Decide(tt.who, m, e)
				switch {
				case err == nil:
					got = append(got, m.String())
				case !errors.Is(err, errs.ErrDenied):
					t.Errorf("%s: %v is no denial", m, err)
				case !cmp.Equal(g, access.Grant{}, cmp.AllowUnexported(document.PathSet{})):
					t.Errorf("%s: a denial with a grant: %+v", m, g)
				}
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecideZeroValuesDeny(t *testing.T) {
	var none *access.Permissions
	empty, _ := access.Compile(nil, nil, nil, nil, nil)
	for name, p := range map[string]*access.Permissions{"nil": none, "zero": {}, "without a spec": empty, "full": compile(t, shop())} {
		for _, m := range []access.Method{0, access.Delete + 1, 255} {
			if _, err := p.Decide(&access.Principal{Kind: access.KindAdmin}, m, env(t)); err == nil {
				t.Errorf("%s: method %d is allowed", name, m)
			}
		}
	}
	for name, p := range map[string]*access.Permissions{"nil": none, "zero": {}, "without a spec": empty} {
		for _, pr := range []*access.Principal{access.Anonymous(), user(nil), token("plain-token")} {
			if _, err := p.Decide(pr, access.Get, env(t)); err == nil {
				t.Errorf("%s: %s is allowed", name, pr.Kind)
			}
		}
	}
}

// plain is a Grant in values that can be compared.
type plain struct {
	Rights           string
	Filter           string
	Hidden, Readonly []string
	Projections      []string
	Admin            bool
}

func show(g access.Grant) plain {
	p := plain{Hidden: g.Hidden.Paths(), Readonly: g.Readonly.Paths(), Projections: g.Projections, Admin: g.Admin}
	for name, on := range map[string]bool{"b": g.Bulk, "c": g.Count, "f": g.Facet, "l": g.Lookup, "a": g.Aggregate, "P": g.AllProjections} {
		if on {
			p.Rights += name
		}
	}
	p.Rights = sortLetters(p.Rights)
	if g.Filter != nil {
		p.Filter = g.Filter.Raw().String()
	}
	return p
}

func sortLetters(s string) string {
	var out strings.Builder
	for _, r := range "bcflaP" {
		if strings.ContainsRune(s, r) {
			out.WriteRune(r)
		}
	}
	return out.String()
}

func TestDecideGrants(t *testing.T) {
	published := mql.MustCompile(bson.D{{Key: "status", Value: bson.D{{Key: "$eq", Value: "published"}}}}).Raw().String()
	tests := []struct {
		name   string
		who    *access.Principal
		method access.Method
		want   plain
	}{
		{"public", access.Anonymous(), access.Get, plain{Rights: "cf", Filter: published, Hidden: []string{"secret"}, Readonly: []string{"serial"}, Projections: []string{"card"}}},
		{"user", user(nil), access.Get, plain{Rights: "bcflaP", Hidden: []string{"cost", "secret"}, Readonly: []string{"serial"}}},
		{"user put", user(nil), access.Put, plain{Rights: "cfP", Hidden: []string{"cost", "secret"}, Readonly: []string{"serial"}}},
		{"token", token("plain-token"), access.Post, plain{Rights: "cfP", Hidden: []string{"secret"}, Readonly: []string{"serial"}}},
		{"project admin token", token("admin-token"), access.Delete, plain{Rights: "bcflaP", Readonly: []string{"serial"}}},
		{"admin", &access.Principal{Kind: access.KindAdmin}, access.Get, plain{Rights: "bcflaP", Admin: true}},
		{"admin user", user(func(p *access.Principal) { p.IsAdmin = true }), access.Get, plain{Rights: "bcflaP", Admin: true}},
	}
	p := compile(t, shop())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g, err := p.Decide(tt.who, tt.method, env(t))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, show(g)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecideUnion(t *testing.T) {
	set := func(change func(s *schema.PermissionSet)) schema.PermissionSet {
		s := schema.PermissionSet{Methods: schema.Methods{Get: single}}
		change(&s)
		return s
	}
	p := compile(t, schema.Permissions{
		User: set(func(s *schema.PermissionSet) {
			s.Filter = eq("status", "published")
			s.HiddenFields = []string{"cost", "notes.private"}
			s.ReadonlyFields = []string{"price"}
			s.ValidProjections = []string{"card", "list"}
		}),
		Teams: map[string]schema.PermissionSet{
			"sales": set(func(s *schema.PermissionSet) {
				s.Filter = eq("owner", variable("user.id"))
				s.HiddenFields = []string{"notes"}
				s.ValidProjections = []string{"list", "offer"}
				s.Methods.Get.Lookup = true
			}),
			"readers": set(func(s *schema.PermissionSet) { s.Methods.Get = all }),
			"writers": {Methods: schema.Methods{Post: single}, HiddenFields: []string{"title"}},
		},
	})
	tests := []struct {
		name                string
		teams               []string
		want                plain
		published, own, any bool // which records it holds for
	}{
		{"two filters", []string{"sales"}, plain{Rights: "cfl", Hidden: []string{"cost", "notes", "secret"}, Readonly: []string{"price", "serial"}, Projections: []string{"card", "list", "offer"}}, true, true, false},
		{"no filter in one", []string{"sales", "readers"}, plain{Rights: "bcflaP", Hidden: []string{"cost", "notes", "secret"}, Readonly: []string{"price", "serial"}}, true, true, true},
		{"set that does not allow", []string{"writers"}, plain{Rights: "cf", Hidden: []string{"cost", "notes.private", "secret"}, Readonly: []string{"price", "serial"}, Projections: []string{"card", "list"}}, true, false, false},
	}
	oid, err := bson.ObjectIDFromHex(userID)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g, err := p.Decide(user(func(p *access.Principal) { p.Teams = tt.teams }), access.Get, env(t))
			if err != nil {
				t.Fatal(err)
			}
			got := show(g)
			got.Filter = ""
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			for _, rec := range []struct {
				doc  bson.D
				want bool
			}{
				{bson.D{{Key: "status", Value: "published"}}, tt.published},
				{bson.D{{Key: "owner", Value: oid}}, tt.own},
				{bson.D{{Key: "owner", Value: userID}}, tt.any},
			} {
				if holds(t, g.Filter, rec.doc) != rec.want {
					t.Errorf("%v: want %v", rec.doc, rec.want)
				}
			}
		})
	}
}

func holds(tb testing.TB, f *mql.Filter, doc bson.D) bool {
	tb.Helper()
	raw, err := document.Marshal(doc)
	if err != nil {
		tb.Fatal(err)
	}
	return f == nil || f.Match(raw)
}

func TestFilterVariables(t *testing.T) {
	oid, err := bson.ObjectIDFromHex(userID)
	if err != nil {
		t.Fatal(err)
	}
	at := func(d time.Duration) any { return bson.NewDateTimeFromTime(noon.Add(d)) }
	lte := func(v any) bson.D { return bson.D{{Key: "$lte", Value: v}} }
	tests := []struct {
		name     string
		filter   bson.D
		yes, not bson.D
	}{
		{"now", bson.D{{Key: "publishedAt", Value: lte(variable("now"))}}, bson.D{{Key: "publishedAt", Value: at(0)}}, bson.D{{Key: "publishedAt", Value: at(time.Millisecond)}}},
		{"a date", bson.D{{Key: "publishedAt", Value: lte("2026-05-01T12:00:00Z")}}, bson.D{{Key: "publishedAt", Value: at(0)}}, bson.D{{Key: "publishedAt", Value: at(time.Millisecond)}}},
		{"extended date", bson.D{{Key: "publishedAt", Value: lte(bson.D{{Key: "$date", Value: "2026-05-01T12:00:00Z"}})}}, bson.D{{Key: "publishedAt", Value: at(0)}}, bson.D{{Key: "publishedAt", Value: at(time.Millisecond)}}},
		{"user.id as text", bson.D{{Key: "createdBy", Value: variable("user.id")}}, bson.D{{Key: "createdBy", Value: userID}}, bson.D{{Key: "createdBy", Value: oid}}},
		{"user.id as a foreign id", bson.D{{Key: "owner", Value: variable("user.id")}}, bson.D{{Key: "owner", Value: oid}}, bson.D{}},
		{"user.orgIds", bson.D{{Key: "org", Value: bson.D{{Key: "$in", Value: variable("user.orgIds")}}}}, bson.D{{Key: "org", Value: orgID}}, bson.D{}},
		{"id", bson.D{{Key: "$or", Value: bson.A{bson.D{{Key: "id", Value: variable("user.id")}}, bson.D{{Key: "status", Value: "x"}}}}}, bson.D{{Key: "_id", Value: oid}}, bson.D{{Key: "id", Value: userID}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := compile(t, schema.Permissions{User: schema.PermissionSet{Methods: schema.Methods{Get: single}, Filter: object(tt.filter)}})
			g, err := p.Decide(user(func(p *access.Principal) { p.OrgIDs = []string{orgID} }), access.Get, env(t))
			if err != nil {
				t.Fatal(err)
			}
			if !holds(t, g.Filter, tt.yes) {
				t.Errorf("%v must match", tt.yes)
			}
			if holds(t, g.Filter, tt.not) {
				t.Errorf("%v must not match", tt.not)
			}
		})
	}
}

func TestUserWithoutOrgsMatchesNone(t *testing.T) {
	p := compile(t, schema.Permissions{User: schema.PermissionSet{
		Methods: schema.Methods{Get: single},
		Filter:  eq("org", bson.D{{Key: "$in", Value: variable("user.orgIds")}}),
	}})
	g, err := p.Decide(user(nil), access.Get, env(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range []bson.D{{}, {{Key: "org", Value: nil}}, {{Key: "org", Value: orgID}}} {
		if holds(t, g.Filter, doc) {
			t.Errorf("%v must not match", doc)
		}
	}
}

func TestUnknownTimeDenies(t *testing.T) {
	p := compile(t, schema.Permissions{Public: schema.PermissionSet{
		Methods: schema.Methods{Get: single},
		Filter:  eq("publishedAt", bson.D{{Key: "$gt", Value: variable("now")}}),
	}})
	if _, err := p.Decide(access.Anonymous(), access.Get, access.Env{}); !errors.Is(err, errs.ErrDenied) {
		t.Errorf("a filter by the time without a time: %v", err)
	}
}

func TestCompileProblems(t *testing.T) {
	get := schema.Methods{Get: single}
	public := func(f *schema.FilterSpec) schema.Permissions {
		return schema.Permissions{Public: schema.PermissionSet{Methods: get, Filter: f}}
	}
	secret := hash("secret-value")
	tests := []struct {
		name string
		spec schema.Permissions
		want string
	}{
		{"unknown variable", public(eq("createdBy", variable("user.name"))), `public.filter: unknown variable "user.name"; use now, user.id or user.orgIds`},
		{"variable without a user", public(eq("createdBy", variable("user.id"))), `public.filter: the variable "user.id" has no value in this set, whose callers are no users; use it in user or a team's set`},
		{
			"variable of a token",
			schema.Permissions{Tokens: map[string]schema.PermissionSet{"secret-value": {Methods: get, Filter: eq("createdBy", variable("user.id"))}}},
			`token:sha256:` + hex.EncodeToString(secret[:4]) + `….filter: the variable "user.id" has no value in this set, whose callers are no users; use it in user or a team's set`,
		},
		{"variable with a neighbor", public(eq("createdBy", bson.D{{Key: "$var", Value: "now"}, {Key: "x", Value: 1}})), `public.filter: a variable is written {"$var": "now"}, with a name and nothing beside it`},
		{"variable of another type", public(eq("createdBy", bson.D{{Key: "$var", Value: int64(1)}})), `public.filter: a variable is written {"$var": "now"}, with a name and nothing beside it`},
		{"only a variable", public(object(variable("now"))), `public.filter: the whole filter can't be a variable`},
		{"unknown field", public(eq("bogus", "x")), `public.filter: unknown field: bogus`},
		{"bad hash", schema.Permissions{Tokens: map[string]schema.PermissionSet{"sha256:12": {Methods: get}}}, `token:sha256:…: sha256 must be 64 hex digits`},
		{
			"token twice",
			schema.Permissions{Tokens: map[string]schema.PermissionSet{"secret-value": {}, "sha256:" + hex.EncodeToString(secret[:]): {}}},
			`token:sha256:` + hex.EncodeToString(secret[:4]) + `…: the same token is declared twice, plain and by its hash; keep one of them`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, problems := access.Compile(&tt.spec, nil, nil, nil, tree(t).Cast)
			if len(problems) != 1 {
				t.Fatalf("problems: %v", problems)
			}
			if got := problems[0].Path + ": " + problems[0].Message; got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if _, err := p.Decide(access.Anonymous(), access.Get, env(t)); err == nil {
				t.Error("a set with a broken filter allows something")
			}
		})
	}
}

func TestCompileBadOperator(t *testing.T) {
	spec := schema.Permissions{User: schema.PermissionSet{Filter: eq("status", bson.D{{Key: "$where", Value: "1"}})}}
	_, problems := access.Compile(&spec, nil, nil, nil, tree(t).Cast)
	if len(problems) != 1 || problems[0].Path != "user.filter" || !strings.Contains(problems[0].Message, "$where") {
		t.Errorf("%v", problems)
	}
}

func TestCompileAdminProblems(t *testing.T) {
	tests := []struct {
		name  string
		token schema.AdminToken
		want  string
	}{
		{"nothing", schema.AdminToken{}, "tokens[0]: a token needs either its value or its sha256"},
		{"both", schema.AdminToken{Value: "x", SHA256: "y"}, "tokens[0]: a token needs either its value or its sha256"},
		{"bad hash", schema.AdminToken{SHA256: "y"}, "tokens[0]: sha256 must be 64 hex digits"},
		{"bad right", schema.AdminToken{Value: "x", Rights: []string{"all"}}, `tokens[0].rights: unknown right "all"; use collections, reload or snapshot`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, problems := access.CompileAdmin(&schema.Admin{Tokens: []schema.AdminToken{tt.token}})
			if len(problems) != 1 || problems[0].Path+": "+problems[0].Message != tt.want {
				t.Errorf("%v, want %s", problems, tt.want)
			}
		})
	}
	_, problems := access.CompileAdmin(&schema.Admin{Tokens: []schema.AdminToken{{Value: "x"}, {Value: "x"}}})
	if len(problems) != 1 || problems[0].Path != "tokens[1]" {
		t.Errorf("%v", problems)
	}
}

func TestAdminTokens(t *testing.T) {
	tokens := env(t).AdminTokens
	deploy, ok := tokens.Match(hash("admin-token"), noon)
	if !ok || deploy.Name != "deploy" {
		t.Fatalf("%+v %v", deploy, ok)
	}
	for right, want := range map[string]bool{
		access.AdminCollections: true, access.AdminReload: true, access.ProjectReload: true,
		access.AdminSnapshot: false, access.ProjectSnapshot: false, access.ProjectRead: false, "": false,
	} {
		if deploy.Has(right) != want {
			t.Errorf("right %q: want %v", right, want)
		}
	}
	if _, ok := tokens.Match(hash("admin-token"), noon.Add(time.Second)); ok {
		t.Error("the token must stop at expiresAt")
	}
	unnamed, ok := tokens.Match(hash("reload-token"), noon)
	if !ok || unnamed.Name != "admin token 3" {
		t.Errorf("%+v %v", unnamed, ok)
	}
	var none *access.AdminTokens
	if _, ok := none.Match(hash("admin-token"), noon); ok {
		t.Error("no tokens match nothing")
	}
	if _, ok := tokens.Match([32]byte{}, noon); ok {
		t.Error("the zero hash is no token")
	}
}

func TestHas(t *testing.T) {
	scoped := user(func(p *access.Principal) {
		p.Scopes = []string{"project.read", "namespace.blog", "namespace.shop.orders.read", "project.create", "bogus", "namespace."}
	})
	tests := []struct {
		right string
		who   *access.Principal
		want  bool
	}{
		{"project.read", scoped, true},
		{"project.reload", scoped, false},
		{"project.create", scoped, false},
		{"bogus", scoped, false},
		{"", scoped, false},
		{"namespace.blog", scoped, true},
		{"namespace.blog.articles.read", scoped, true},
		{"namespace.blog._actions.publish.create", scoped, true},
		{"namespace.blog.articles.drop", scoped, false},
		{"namespace.shop.orders.read", scoped, true},
		{"namespace.shop.orders.update", scoped, false},
		{"namespace.shop", scoped, false},
		{"namespace.blogger.articles.read", scoped, false},
		{"namespace..articles.read", scoped, false},
		{"project.read", user(nil), false},
		{"project.create", user(func(p *access.Principal) { p.IsAdmin = true }), true},
		{"server.shutdown", &access.Principal{Kind: access.KindAdmin}, true},
		{"bogus", &access.Principal{Kind: access.KindAdmin}, false},
		{"", &access.Principal{Kind: access.KindAdmin}, false},
		{"project.read", access.Anonymous(), false},
		{"project.read", &access.Principal{Kind: access.KindToken, Scopes: []string{"project.read"}}, false},
		{"project.read", &access.Principal{Scopes: []string{"project.read"}, ID: userID}, false},
		{"project.read", nil, false},
	}
	for _, tt := range tests {
		if got := tt.who.Has(tt.right); got != tt.want {
			t.Errorf("%+v has %q: %v", tt.who, tt.right, got)
		}
	}
}

func TestRequire(t *testing.T) {
	if err := user(func(p *access.Principal) { p.IsAdmin = true }).Require(access.ProjectCreate); err != nil {
		t.Error(err)
	}
	for want, pr := range map[string]*access.Principal{
		"permission denied": access.Anonymous(),
		"permission denied: admin token lacks permission project.read": token("plain-token"),
	} {
		err := pr.Require(access.ProjectRead)
		if !errors.Is(err, errs.ErrDenied) || errs.From(err).Message != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestValidScope(t *testing.T) {
	for _, scope := range append(api.Scopes(), "namespace.a", "namespace.a.b.read", "namespace.a._actions.x.create") {
		if !access.ValidScope(scope) {
			t.Errorf("%s is a scope", scope)
		}
	}
	for _, scope := range []string{
		"", "namespace", "namespace.", "namespace.a.b", "namespace.a.b.all", "namespace.a._actions.read",
		"namespace.a._actions.x.delete", "namespace.a.b.c.d.read", "project.create", "org.delete", "PROJECT.READ",
	} {
		if access.ValidScope(scope) {
			t.Errorf("%s is no scope", scope)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	spec := shop()
	spec.Tokens["now"] = schema.PermissionSet{Methods: schema.Methods{Get: single}, Filter: object(bson.D{
		{Key: "status", Value: "published"}, {Key: "publishedAt", Value: bson.D{{Key: "$lte", Value: variable("now")}}},
	})}
	p, e := compile(b, spec), env(b)
	for _, bb := range []struct {
		name   string
		who    *access.Principal
		method access.Method
	}{
		{"public", access.Anonymous(), access.Get},
		{"user", user(nil), access.Get},
		{"token", token("plain-token"), access.Post},
		{"admin", &access.Principal{Kind: access.KindAdmin}, access.Get},
		{"variable", token("now"), access.Get},
		{"team", user(func(p *access.Principal) { p.Teams = []string{"editors"} }), access.Get},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Decide(bb.who, bb.method, e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestFingerprint changes each member of a caller: the fingerprint tells all of them apart but those that no right depends on.
func TestFingerprint(t *testing.T) {
	full := func() *access.Principal {
		return &access.Principal{
			Kind: access.KindUser, ID: "1", Name: "ann", Scopes: []string{"a", "b"}, OrgIDs: []string{"o", "p"}, TeamIDs: []string{"t"}, Teams: []string{"x"},
			TokenID: "2", Cap: []string{"c"}, TokenVersion: 1, PATVersion: 1,
		}
	}
	same := map[string]bool{"TokenVersion": true, "PATVersion": true} // whether a credential is good, not what it is good for
	kind := reflect.TypeFor[access.Principal]()
	for i := range kind.NumField() {
		changed := full()
		switch f := reflect.ValueOf(changed).Elem().Field(i); f.Kind() {
		case reflect.String:
			f.SetString(f.String() + "z")
		case reflect.Bool:
			f.SetBool(!f.Bool())
		case reflect.Int64:
			f.SetInt(7)
		case reflect.Slice:
			f.Set(reflect.Append(f, reflect.ValueOf("z")))
		case reflect.Array:
			f.Index(0).SetUint(7)
		default:
			t.Fatalf("this test can't change %s", kind.Field(i).Name)
		}
		name := kind.Field(i).Name
		if bytes.Equal(full().Fingerprint(), changed.Fingerprint()) != same[name] {
			t.Errorf("%s changes, and the fingerprint does not fit that", name)
		}
	}
	turned := full()
	slices.Reverse(turned.Scopes)
	if !bytes.Equal(full().Fingerprint(), turned.Fingerprint()) {
		t.Error("the order of scopes counts")
	}
}
