package access

import (
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/schema"
)

// Method is an operation on records. The zero Method is none and never allowed.
type Method uint8

// The methods, as permission sets name them.
const (
	Get Method = iota + 1
	Post
	Put
	Delete
)

// String gives the method as a permission set names it.
func (m Method) String() string {
	switch m {
	case Get:
		return "get"
	case Post:
		return "post"
	case Put:
		return "put"
	case Delete:
		return "delete"
	default:
		return "none"
	}
}

// Env is what a decision needs to know besides the caller. Now must be set.
type Env struct {
	Now         time.Time
	Namespace   string       // of the project
	Collection  string       // whose permissions are asked
	AdminTokens *AdminTokens // the project's
	OrgID       string       // the org of the project in hex, "" for none
	// RunFilter runs the script that makes a set's filter, and gives the filter object. Without it, sets whose filter is a
	// script allow nothing.
	RunFilter func(*schema.Script) (bson.D, error)
	// BadFilter is told of an object that a script gave and that is no filter of the collection; nil: nobody is. The caller
	// is only refused.
	BadFilter func(*schema.Script, error)
}

// Grant is what a caller may do with one method on one collection. The single operation is always granted: a refusal
// is an error. It is shared between requests and must not be changed.
type Grant struct {
	Bulk      bool // many records at once
	Count     bool
	Facet     bool
	Lookup    bool
	Aggregate bool

	Filter         *mql.Filter       // the records it holds for; nil: all
	Hidden         *document.PathSet // paths that the caller never sees, not even in a query; nil: none
	Declared       *document.PathSet // those of Hidden that are declared fields
	Readonly       *document.PathSet // paths that the caller can't write
	Unsure         *document.PathSet // paths that are hidden on some records: no query may name them
	UnsureReadonly *document.PathSet // paths that can't be written on some records
	Projections    []string          // the named projections that may be used, unless AllProjections
	AllProjections bool
	SeesAll        bool // nothing is hidden, whatever the collection's fields say
	Admin          bool // the caller may do everything
}

// Permissions are the compiled permissions of one collection. They are immutable and safe for concurrent use.
type Permissions struct {
	public, user *set
	teams        map[string]*set
	tokens       map[[32]byte]*set // by SHA-256 of the token
	undeclared   *document.PathSet // what nobody sees
	readonly     *document.PathSet // the collection's own

	seen func(m Method, x Explanation) // is told of each decision; nil: nobody is
}

// set is one compiled permission set. nil and the zero set allow nothing.
type set struct {
	rights         [Delete + 1]schema.MethodRights
	filter         *mql.Filter       // of every request, unless bound
	bound          *template         // makes the filter of each request
	script         *scripted         // the same, by a script
	hidden         *document.PathSet // declared fields
	unseen         *document.PathSet // hidden, and what is not declared
	readonly       *document.PathSet
	projections    []string
	allProjections bool
}

// Compile makes the evaluator of a collection's permissions; without any, only admins may do something. hidden and
// readonly are the paths that the collection and its fields declare, which hold for every set. undeclared is what nobody
// sees, admins included: paths that are no fields where only fields may be. cast casts the
// constants of filters by the collection's fields, as fieldtype.Tree.Cast does. Problems have paths from the
// permissions down ("user.filter"); a token is named by the beginning of its hash.
func Compile(spec *schema.Permissions, hidden, readonly []string, undeclared *document.PathSet, cast Cast) (*Permissions, []errs.FieldError) {
	c := compiler{
		hidden: document.NewPathSet(hidden...), readonly: document.NewPathSet(readonly...), undeclared: undeclared, cast: cast,
	}
	p := &Permissions{
		teams:      map[string]*set{},
		tokens:     map[[32]byte]*set{},
		undeclared: undeclared,
		readonly:   c.readonly,
	}
	if spec == nil {
		return p, nil
	}
	p.public = c.compileSet("public", spec.Public, false)
	p.user = c.compileSet("user", spec.User, true)
	for _, slug := range slices.Sorted(maps.Keys(spec.Teams)) {
		p.teams[slug] = c.compileSet("team:"+slug, spec.Teams[slug], true)
	}
	for _, key := range slices.Sorted(maps.Keys(spec.Tokens)) {
		c.compileToken(p, key, spec.Tokens[key])
	}
	return p, c.problems
}

// Sets lists the names of the permission sets that allow something, as steps of explanations name them, with what each
// allows.
func (p *Permissions) Sets() map[string][]Method {
	out := map[string][]Method{}
	add := func(name string, s *set) {
		for m := Get; s != nil && m <= Delete; m++ {
			if s.rights[m].Allow {
				out[name] = append(out[name], m)
			}
		}
	}
	if p == nil {
		return out
	}
	add("public", p.public)
	add("user", p.user)
	for slug, s := range p.teams {
		add("team:"+slug, s)
	}
	for hash, s := range p.tokens {
		add(shortToken(hash), s)
	}
	return out
}

// HasToken says that a token has a set here.
func (p *Permissions) HasToken(hash [32]byte) bool { return p != nil && p.tokens[hash] != nil }

// Decide says what a caller may do with a method, or errs.ErrDenied. It is pure: the same arguments give the same
// answer. Of a user, all sets that fit and allow the method count together: the rights, projections and records of
// any of them, but without the fields that one of them hides or makes readonly. So no field is ever shown on a record
// that the caller sees only through a set that hides it. A personal access token may do what its owner may, where its
// scopes and its owner's rights name the collection, too.
func (p *Permissions) Decide(pr *Principal, m Method, env Env) (Grant, error) {
	if p != nil && p.seen != nil {
		x := p.Explain(pr, m, env)
		p.seen(m, x)
		return x.Grant, x.Err
	}
	return p.decide(pr, m, env, nil)
}

func (p *Permissions) decide(pr *Principal, m Method, env Env, t *trace) (Grant, error) {
	if p == nil || pr == nil || m < Get || m > Delete {
		t.refuse("credential", "there is nobody, nothing or no method to decide about")
		return Grant{}, errs.ErrDenied
	}
	if pr.Full() {
		t.allow("administrator", "administrators and the server admin token may do everything")
		return p.adminGrant(nil, true), nil
	}
	switch pr.Kind {
	case KindAnonymous:
		return p.public.grant(pr, m, env, t, "public")
	case KindUser:
		return p.decideUser(pr, m, env, t)
	case KindPAT:
		return p.decidePAT(pr, m, env, t)
	case KindToken:
		return p.decideToken(pr, m, env, t)
	default: // KindAdmin is full
		t.refuse("credential", "the credential is of no known kind")
		return Grant{}, errs.ErrDenied
	}
}

func (p *Permissions) decideToken(pr *Principal, m Method, env Env, t *trace) (Grant, error) {
	if pr.TokenHash == [32]byte{} {
		t.refuse("credential", "the token is empty")
		return Grant{}, errs.ErrDenied
	}
	if s := p.tokens[pr.TokenHash]; s != nil {
		return s.grant(pr, m, env, t, t.tokenName(pr.TokenHash))
	}
	token, ok := env.AdminTokens.Match(pr.TokenHash, env.Now)
	switch {
	case ok && token.Has(AdminCollections):
		t.allow("project admin token", "the project's admin token ", token.Name, " has the right collections")
		return p.adminGrant(p.readonly, false), nil
	case ok:
		t.refuse("project admin token", "the project's admin token ", token.Name, " lacks the right collections")
	default:
		t.refuse("credential", "neither the collection nor the project has this token, or it has expired")
	}
	return Grant{}, errs.ErrDenied
}

func (p *Permissions) decidePAT(pr *Principal, m Method, env Env, t *trace) (Grant, error) {
	right := RecordRight(env.Namespace, env.Collection, m)
	switch {
	case !pr.isUser():
		t.refuse("credential", "the token has no owner")
		return Grant{}, errs.ErrDenied
	case !pr.Has(right):
		t.refuse("scopes", lacking(pr, right), " ", right)
		return Grant{}, errs.ErrDenied
	}
	t.allow("scopes", "the token's scopes and its owner's rights give ", right)
	if pr.IsAdmin {
		t.allow("administrator", "the token's owner is an administrator")
		return p.adminGrant(nil, true), nil
	}
	return p.decideUser(pr, m, env, t)
}

// lacking says which half of a personal access token's rights does not give a right.
func lacking(pr *Principal, right string) string {
	token, owner := Covers(pr.Cap, right), pr.IsAdmin || Covers(pr.Scopes, right)
	switch {
	case owner:
		return "the token's scopes don't give"
	case token:
		return "the token's scopes give, but its owner has not,"
	}
	return "neither the token's scopes nor its owner's give"
}

// decideUser unites the set user, if the user belongs to the project's org or has no org limit, and those of the
// user's teams.
func (p *Permissions) decideUser(pr *Principal, m Method, env Env, t *trace) (Grant, error) {
	if !pr.isUser() || !pr.InOrg(env.OrgID) {
		t.refuse("org", "the user is limited to organizations, and the project belongs to none of them: it isn't there for them")
		return Grant{}, errs.ErrDenied
	}
	union, err := p.user.grant(pr, m, env, t, "user")
	if len(p.teams) == 0 {
		return union, err
	}
	for _, slug := range pr.Teams {
		s := p.teams[slug]
		if s == nil {
			continue
		}
		g, teamErr := s.grant(pr, m, env, t, t.setName("team:", slug))
		switch {
		case teamErr != nil:
		case err != nil:
			union, err = g, nil
		default:
			union = unite(union, g)
		}
	}
	return union, err
}

// adminGrant is everything, except for what is readonly or not declared.
func (p *Permissions) adminGrant(readonly *document.PathSet, admin bool) Grant {
	return Grant{
		Bulk: true, Count: true, Facet: true, Lookup: true, Aggregate: true,
		Hidden: p.undeclared, Readonly: readonly, AllProjections: true, SeesAll: true, Admin: admin,
	}
}

// grant is what the set alone gives. name is what a trace calls it.
func (s *set) grant(pr *Principal, m Method, env Env, t *trace, name string) (Grant, error) {
	if s == nil || !s.rights[m].Allow {
		t.refuse(name, "the set ", name, " does not allow ", m.String())
		return Grant{}, errs.ErrDenied
	}
	r, filter := s.rights[m], s.filter
	made := ""
	switch {
	case s.bound != nil:
		var err error
		if filter, err = s.bound.bind(pr, env); err != nil {
			t.refuse(name, "the filter of the set ", name, " has a variable without a value")
			return Grant{}, errs.ErrDenied.With(err)
		}
	case s.script != nil:
		var err error
		if filter, err = s.script.filter(pr, env); err != nil {
			t.refuse(name, "the script ", s.script.spec.File, ", which makes the filter of the set ", name, ", failed or gave no filter")
			return Grant{}, refusedByScript(err)
		}
		made = ", with the filter that " + s.script.spec.File + " made"
	}
	t.allow(name, "the set ", name, " allows ", m.String(), made)
	return Grant{
		Bulk: r.Bulk, Count: r.Count, Facet: r.Facet, Lookup: r.Lookup, Aggregate: r.Aggregate,
		Filter: filter, Hidden: s.unseen, Declared: s.hidden, Readonly: s.readonly,
		Projections: s.projections, AllProjections: s.allProjections,
	}, nil
}

// unite joins what two sets give to the same caller; see Decide.
func unite(a, b Grant) Grant {
	u := Grant{
		Bulk: a.Bulk || b.Bulk, Count: a.Count || b.Count, Facet: a.Facet || b.Facet,
		Lookup: a.Lookup || b.Lookup, Aggregate: a.Aggregate || b.Aggregate,
		Hidden: a.Hidden.Union(b.Hidden), Declared: a.Declared.Union(b.Declared), Readonly: a.Readonly.Union(b.Readonly),
		AllProjections: a.AllProjections || b.AllProjections,
	}
	if a.Filter != nil && b.Filter != nil { // nil is every record, and so is a union with it
		u.Filter = mql.Or(a.Filter, b.Filter)
	}
	if !u.AllProjections {
		u.Projections = append(slices.Clone(a.Projections), b.Projections...)
		slices.Sort(u.Projections)
		u.Projections = slices.Compact(u.Projections)
	}
	return u
}
