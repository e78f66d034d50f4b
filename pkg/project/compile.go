package project

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/schema"
)

// compiler makes a Project of a config. It goes on behind every problem, also on a config that was only half decoded.
type compiler struct {
	*schema.Loaded

	before   schema.Problems // what loading found
	problems schema.Problems

	errors, warnings int // of these

	patterns, translations int // see their bounds

	reader   schema.Reader
	dir      string // of the project
	programs *Scripts
	scripts  map[string]string // the hashes of the files of scripts, by name
	took     time.Duration     // to compile them
}

func newCompiler(l *schema.Loaded, before schema.Problems, r schema.Reader, dir string, programs *Scripts) *compiler {
	if programs == nil {
		programs = NewScripts(nil)
	}
	return &compiler{Loaded: l, before: before, reader: r, dir: dir, programs: programs, scripts: map[string]string{}}
}

func (c *compiler) fail(at, code, format string, args ...any) {
	if c.errors++; c.errors > schema.MaxProblems {
		return
	}
	c.problems = append(c.problems, c.Problem(at, code, format, args...))
}

func (c *compiler) warn(at, message string) {
	if c.warnings++; c.warnings > schema.MaxProblems {
		return
	}
	p := c.Problem(at, schema.CodeIgnored, "%s", message)
	p.Warning = true
	c.problems = append(c.problems, p)
}

// all joins the problems. What this version does not support is said once, not also by what stumbled over it.
func (c *compiler) all() schema.Problems {
	refused := refuse(c.Loaded)
	out := append(slices.Clone(c.before), refused...)
	for _, p := range c.problems {
		if !slices.ContainsFunc(refused, func(r schema.Problem) bool { return r.Path == p.Path && r.Position == p.Position }) {
			out = append(out, p)
		}
	}
	return out.Bounded()
}

// isBroken says that loading found an error at or below a path.
func (c *compiler) isBroken(at string) bool {
	return slices.ContainsFunc(c.before, func(p schema.Problem) bool {
		rest, ok := strings.CutPrefix(p.Path, at)
		return !p.Warning && ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

func (c *compiler) project() *Project {
	config := c.Loaded.Project
	p := &Project{
		Namespace: config.Namespace, Config: config, Hook: hookSettings(config),
		Collections: map[string]*Collection{},
		Observe:     config.Mode == "observe",
		LooseQuery:  config.Legacy != nil && config.Legacy.LooseQuery,
	}
	var problems []errs.FieldError
	p.AdminTokens, problems = access.CompileAdmin(config.Admin)
	if !c.isBroken("admin") {
		for _, x := range problems {
			c.fail("admin."+x.Path, schema.CodeInvalid, "%s", x.Message)
		}
	}
	for i, col := range config.Collections {
		p.Collections[col.Name] = c.collection(config, col, "collections["+strconv.Itoa(i)+"]")
	}
	c.renames(p)
	c.ownUploads(p, config)
	c.mistakenTypes(config.Upload, "upload")
	p.Jobs = c.jobs(config)
	p.Snapshots = c.snapshots(config)
	p.Actions = c.actions(config)
	for i, col := range config.Collections {
		c.foreignKeys(p, col, "collections["+strconv.Itoa(i)+"]")
	}
	scripts := c.scriptFiles()
	p.Revision = c.Revised(scripts)
	p.Files = append(slices.Clone(c.Files), scripts...)
	p.Assets = c.assets(config, p.Files)
	p.SnapshotDir = c.snapshotDir(config, p.Files)
	slices.SortFunc(p.Files, func(a, b schema.File) int { return strings.Compare(a.Name, b.Name) })
	return p
}

func (c *compiler) collection(config *schema.Project, col *schema.Collection, at string) *Collection {
	strict := deref(col.StrictFields, deref(config.StrictFields, false))
	out := &Collection{
		Name: col.Name, Config: col,
		Tree:        c.tree(col, strict, at),
		Limits:      limits(config, col),
		Bulk:        bulk(col.Bulk),
		Projections: map[string]Projection{},
	}
	hidden, readonly := out.Tree.WithTranslations(col.HiddenFields), out.Tree.WithTranslations(col.ReadonlyFields)
	hidden, readonly = slices.Clone(hidden), slices.Clone(readonly)
	out.Tree.Walk(func(f *fieldtype.Field) {
		if f.Hidden {
			hidden = append(hidden, f.Path)
		}
		if f.Readonly {
			readonly = append(readonly, f.Path)
		}
	})
	out.Hooks = c.hooks(col, at+".hooks")
	out.Filters = c.filters(col, at+".permissions")
	out.Evals, out.HiddenByEval = c.evals(col, out.Tree, at+".fields")
	out.Validators = c.validators(col, out.Tree, at+".fields")
	c.renamedFields(col.Fields, at+".fields", 0)
	out.Undeclared = out.Tree.Undeclared()
	out.Uploads = c.uploads(config, col, out.Tree, at)
	out.ImageFilters = c.imageFilters(col, at+".imageFilter")
	out.Hidden, out.Readonly = document.NewPathSet(hidden...), document.NewPathSet(readonly...)
	if meta := col.Meta; meta != nil {
		out.Singleton, out.QueryParams = meta.Singleton, meta.Query
	}
	if c.isBroken(at + ".fields") { // the tree is not what was meant: what it resolves would mislead
		return out
	}
	paths := &paths{c: c, tree: out.Tree}
	paths.visibility(col, at)
	out.Indexes = c.indexes(col, paths, at)
	out.Searches = paths.searches(col, out, at)
	out.Projections = paths.projections(col, at+".projections")
	if col.Meta != nil {
		out.DefaultSort = paths.sort(col.Meta.DefaultSort, at+".meta.defaultSort")
		if err := (query.Resolver{Tree: out.Tree, Limits: out.Limits.List}).CheckSort(out.DefaultSort); err != nil {
			c.fail(at+".meta.defaultSort", schema.CodeInvalid, "%s", errs.From(err).Message)
		}
	}
	out.Permissions = c.permissions(col, hidden, readonly, out, at+".permissions")
	out.Audit = paths.audit(config, col, out.Hidden.Union(out.Undeclared), at)
	if out.Audit == nil && len(out.Hooks["audit.return"]) > 0 {
		c.warn(at+".hooks.audit.return", "has no effect: the collection's writes are not in the audit log (audit.enabled)")
	}
	return out
}

// audit compiles a collection's audit, or else the project's, which holds for every collection without its own.
func (p *paths) audit(config *schema.Project, col *schema.Collection, unseen *document.PathSet, at string) *Audit {
	a := col.Audit
	if a != nil {
		p.list(a.ExcludeFields, at+".audit.excludeFields")
	} else {
		a = config.Audit // its paths may be those of other collections
	}
	if a == nil || !a.Enabled {
		return nil
	}
	out := &Audit{Secret: unseen.Union(document.NewPathSet(p.tree.WithTranslations(a.ExcludeFields)...)), Retention: a.Retention.Std()}
	for _, m := range []access.Method{access.Post, access.Put, access.Delete} {
		if slices.Contains(a.Methods, m.String()) {
			out.Methods = append(out.Methods, m)
		}
	}
	return out
}

func deref(value *bool, otherwise bool) bool {
	if value == nil {
		return otherwise
	}
	return *value
}

func (c *compiler) permissions(col *schema.Collection, hidden, readonly []string, out *Collection, at string) *access.Permissions {
	cast := func(path, op string, v any) (any, error) {
		got, err := out.Tree.Cast(path, op, v)
		if err != nil && errs.From(err).Code == "unknown_field" {
			err = errs.New(errs.Invalid, "unknown_field", "there is no field %q%s", path, nearestField(path, out.Tree))
		}
		return got, err
	}
	permissions, problems := access.Compile(translated(col.Permissions, out.Tree), hidden, readonly, out.Undeclared, cast)
	for _, x := range problems {
		c.fail(at+"."+tokenPath(col.Permissions, x.Path), schema.CodeInvalid, "%s", x.Message)
	}
	return permissions
}

// tokenPath puts the token itself, as the config's path has it, where access names a token by the beginning of its
// hash. Loaded.Problem masks it again.
func tokenPath(spec *schema.Permissions, at string) string {
	short, rest, ok := strings.Cut(strings.TrimPrefix(at, "token:sha256:"), "…")
	if !ok || spec == nil {
		return at
	}
	for value := range spec.Tokens {
		hash, hashed := strings.CutPrefix(value, "sha256:")
		if !hashed {
			sum := sha256.Sum256([]byte(value))
			hash = hex.EncodeToString(sum[:])
		}
		if strings.HasPrefix(hash, short) {
			return "token:" + value + rest
		}
	}
	return at
}

func limits(config *schema.Project, col *schema.Collection) Limits {
	q := col.QueryLimits
	if q == nil {
		q = schema.DefaultQueryLimits()
	}
	out := Limits{
		List: query.Limits{
			DefaultLimit: q.DefaultLimit, MaxLimit: q.MaxLimit, MaxOffset: q.MaxOffset,
			MaxFilterBytes: q.MaxFilterBytes, MaxFilterDepth: q.MaxFilterDepth,
			MaxFilterClauses: q.MaxFilterClauses, MaxInValues: q.MaxInValues, MaxSortFields: q.MaxSortFields,
			MaxLookups: q.MaxLookups, MaxLookupDepth: q.MaxLookupDepth, Regex: q.Regex,
		},
		MaxTime:           q.MaxTime.Std(),
		MaxPipelineStages: q.MaxPipelineStages,
		AllowAggregate:    q.AllowAggregate,
	}
	for i, upload := range []*schema.Upload{col.Upload, config.Upload} { // the most specific wins
		if upload != nil && upload.MaxBodySize > 0 && out.MaxBodySize == 0 {
			out.MaxBodySize, out.MaxBodyOf = int64(upload.MaxBodySize), []string{"the collection " + col.Name, "the project"}[i]+" (upload.maxBodySize)"
		}
	}
	return out
}

func bulk(b *schema.Bulk) Bulk {
	if b == nil {
		b = schema.DefaultBulk()
	}
	return Bulk{MaxItems: b.MaxItems, MaxAffected: b.MaxAffected, Atomic: b.Mode == "atomic", EachHooks: b.Hooks == "each"}
}

// paths resolves field paths of a config against the collection's fields.
type paths struct {
	c    *compiler
	tree *fieldtype.Tree
}

// resolve gives the path as it is stored, or reports that there is no such field.
func (p *paths) resolve(path, at string) (string, bool) {
	if path == "" { // was not decoded, which has been said
		return "", false
	}
	f, ok := p.tree.Resolve(path)
	if !ok {
		p.c.fail(at, schema.CodeUnknownField, "there is no field %q%s", path, nearestField(path, p.tree))
		return "", false
	}
	if f.Path == "_id" {
		return "_id", true
	}
	return path, true
}

// nearestField names the field that a path may mean, as the end of a message.
func nearestField(path string, tree *fieldtype.Tree) string {
	var known []string
	tree.Walk(func(f *fieldtype.Field) { known = append(known, f.Path) })
	if near := schema.Nearest(path, known); near != "" {
		return "; did you mean " + strconv.Quote(near) + "?"
	}
	return ""
}

func (p *paths) list(list []string, at string) {
	for i, path := range list {
		p.resolve(path, at+"["+strconv.Itoa(i)+"]")
	}
}

// visibility checks the readonly and hidden fields of a collection and of its permission sets.
func (p *paths) visibility(col *schema.Collection, at string) {
	p.hidden(col.HiddenFields, at+".hiddenFields")
	p.list(col.ReadonlyFields, at+".readonlyFields")
	if col.Permissions == nil {
		return
	}
	for key, set := range col.Permissions.Sets() {
		p.hidden(set.HiddenFields, at+".permissions."+key+".hiddenFields")
		p.list(set.ReadonlyFields, at+".permissions."+key+".readonlyFields")
	}
}

func (p *paths) hidden(list []string, at string) {
	for i, path := range list {
		here := at + "[" + strconv.Itoa(i) + "]"
		if stored, ok := p.resolve(path, here); ok && stored == "_id" {
			p.c.fail(here, schema.CodeReserved, "the id can't be hidden")
		}
	}
}

// sort reads meta.defaultSort: "-a,b", ["-a", "b"] or {"a": -1, "b": 1}.
func (p *paths) sort(v any, at string) mql.Sort {
	var out mql.Sort
	add := func(path string, desc bool, here string) {
		if stored, ok := p.resolve(path, here); ok {
			out = append(out, mql.SortField{Path: stored, Desc: desc})
		}
	}
	word := func(s, here string) {
		path, desc := strings.CutPrefix(strings.TrimSpace(s), "-")
		add(path, desc, here)
	}
	switch v := v.(type) {
	case string:
		for s := range strings.SplitSeq(v, ",") {
			word(s, at)
		}
	case bson.A:
		for i, s := range v {
			here := at + "[" + strconv.Itoa(i) + "]"
			if s, ok := s.(string); ok {
				word(s, here)
			} else {
				p.c.fail(here, schema.CodeType, "must be a field path, -path for descending")
			}
		}
	case bson.D:
		for _, e := range v {
			if e.Value != int64(1) && e.Value != int64(-1) {
				p.c.fail(at+"."+e.Key, schema.CodeType, "must be 1 or -1")
				continue
			}
			add(e.Key, e.Value == int64(-1), at+"."+e.Key)
		}
	}
	return out
}

func (p *paths) projections(col *schema.Collection, at string) map[string]Projection {
	out := map[string]Projection{}
	for _, name := range slices.Sorted(maps.Keys(col.Projections)) {
		var one Projection
		here := at + "." + name + ".select"
		p.selection(col.Projections[name].Select, "", here, &one)
		if len(one.Include) > 0 && len(one.Exclude) > 0 {
			p.c.fail(here, schema.CodeConflict, "a selection either takes fields (1) or leaves fields out (0); both can't be mixed")
		}
		out[name] = one
	}
	return out
}

// selection reads {"title": 1, "seo": {"title": 1}} or {"body": 0}.
func (p *paths) selection(doc bson.D, prefix, at string, out *Projection) {
	for _, e := range doc {
		path, here := prefix+e.Key, at+"."+e.Key
		if inner, ok := e.Value.(bson.D); ok {
			p.selection(inner, path+".", here, out)
			continue
		}
		take := e.Value == true || e.Value == int64(1)
		if !take && e.Value != false && e.Value != int64(0) {
			p.c.fail(here, schema.CodeType, "must be 1 or 0, true or false, or an object of such")
			continue
		}
		stored, ok := p.resolve(path, here)
		switch {
		case !ok:
		case take:
			out.Include = append(out.Include, stored)
		case stored == "_id":
			p.c.fail(here, schema.CodeReserved, "the id always comes and can't be left out")
		default:
			out.Exclude = append(out.Exclude, stored)
		}
	}
}
