package schema

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// checker runs the checks that need more than one member: names that are taken or reserved, members that exclude each
// other. Checks that need the field tree (paths, rules, filters) are pkg/project's.
type checker struct {
	*Loaded

	d *decoder
}

func check(l *Loaded, d *decoder) {
	c := &checker{l, d}
	c.project(l.Project)
}

func (c *checker) fail(at, code, format string, args ...any) {
	if c.d.errors > MaxProblems { // to find where they stand takes the longer the larger the file
		return
	}
	c.d.add(c.Problem(at, code, format, args...))
}

func (c *checker) warn(at, format string, args ...any) {
	if c.d.warnings > MaxProblems {
		return
	}
	p := c.Problem(at, CodeIgnored, format, args...)
	p.Warning = true
	c.d.add(p)
}

func index(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

// unique reports names that are there before.
func (c *checker) unique(list, member, what string, n int, name func(i int) string) {
	seen := map[string]bool{}
	for i := range n {
		s := name(i)
		if s != "" && seen[s] {
			at := index(list, i)
			if member != "" {
				at = join(at, member)
			}
			c.fail(at, CodeDuplicate, "there is another %s named %q", what, s)
		}
		seen[s] = true
	}
}

func (c *checker) project(p *Project) {
	for i, col := range p.Collections {
		c.collection(p, col, index("collections", i))
	}
	c.unique("collections", "name", "collection", len(p.Collections), func(i int) string { return p.Collections[i].Name })
	c.unique("actions", "name", "action", len(p.Actions), func(i int) string { return p.Actions[i].Name })
	c.unique("assets", "name", "asset", len(p.Assets), func(i int) string { return p.Assets[i].Name })
	c.unique("snapshots", "name", "snapshot profile", len(p.Snapshots), func(i int) string { return p.Snapshots[i].Name })
	c.unique("jobs", "", "job", len(p.Jobs), func(i int) string { return p.Jobs[i].JobName() })
	c.cors("cors", p.CORS)
	for i, a := range p.Actions {
		c.cors(join(index("actions", i), "cors"), a.CORS)
	}
	for i, j := range p.Jobs {
		if form := patterns["name"]; j.Name == "" && j.File != "" && !form.expr.MatchString(j.JobName()) {
			c.fail(join(index("jobs", i), "file"), CodePattern, "the job has no name, and its file's stem %q can't be one: rename the file, or set name, to %s", j.JobName(), form.words)
		}
		if time.Duration(j.Timeout) < time.Second && j.Timeout > 0 {
			c.warn(join(index("jobs", i), "timeout"), "the timeout is %dms; an integer is milliseconds", j.Timeout.Std().Milliseconds())
		}
	}
	for i, s := range p.Snapshots {
		c.snapshot(p, s, index("snapshots", i))
	}
	if p.Legacy != nil {
		for _, e := range p.Legacy.Rest {
			c.warn(join("legacy", maskKey(e.Key)), "has no effect")
		}
	}
}

// JobName is a job's name: its own, else its file's stem.
func (j *Job) JobName() string {
	if j.Name != "" || j.File == "" {
		return j.Name
	}
	base := path.Base(j.File)
	return strings.TrimSuffix(base, path.Ext(base))
}

func (c *checker) cors(at string, cors *CORS) {
	if cors != nil && cors.Credentials && slices.Contains(cors.Origins, "*") {
		c.fail(join(at, "credentials"), CodeConflict, "credentials can't go with the origin *; list the origins")
	}
}

func (c *checker) snapshot(p *Project, s *Snapshot, at string) {
	if IsOwnSnapshots(strings.ToLower(s.Name)) {
		c.fail(join(at, "name"), CodeReserved, "%q is a profile of the service itself; choose another name", s.Name)
	}
	for member, given := range map[string]Schedule{"schedule": s.Schedule, "verify": s.Verify.schedule(), "drill": s.Drill.schedule()} {
		if given != "" && !s.Enabled && !c.d.isBroken(join(at, "enabled")) {
			c.warn(join(at, member), "has no effect as long as the profile is not enabled: set enabled to true")
		}
	}
	modes := map[string]bool{}
	for i, col := range s.Collections {
		modes[col.Mode] = true
		known := slices.ContainsFunc(p.Collections, func(x *Collection) bool { return x.Name == col.Name })
		if !known && col.Name != "" && !c.d.isBroken("collections") {
			c.fail(index(join(at, "collections"), i), CodeInvalid, "there is no collection %q", col.Name)
		}
	}
	if modes["include"] && modes["exclude"] {
		c.fail(join(at, "collections"), CodeConflict, "collections are either included or excluded; both can't be mixed")
	}
	if s.Retention != nil && *s.Retention == (Retention{}) && !c.d.isBroken(join(at, "retention")) {
		c.fail(join(at, "retention"), CodeInvalid, "keeps nothing, so every snapshot would be deleted; set one of its members, or leave it out to keep all")
	}
}

func (v *SnapshotVerify) schedule() Schedule {
	if v == nil {
		return ""
	}
	return v.Schedule
}

func (d *SnapshotDrill) schedule() Schedule {
	if d == nil {
		return ""
	}
	return d.Schedule
}

func (c *checker) collection(p *Project, col *Collection, at string) {
	if strings.HasPrefix(col.Name, "_") {
		c.fail(join(at, "name"), CodeReserved, "names that begin with _ are reserved")
	}
	c.fields(col.Fields, join(at, "fields"), true)
	c.unique(join(at, "indexes"), "name", "index", len(col.Indexes), func(i int) string { return col.Indexes[i].Name })
	c.unique(join(at, "search"), "name", "search config", len(col.Search), func(i int) string { return col.Search[i].Name })
	for i, x := range col.Indexes {
		if x.DropDups {
			c.fail(join(index(join(at, "indexes"), i), "dropDups"), CodeInvalid, "dropDups is refused because it deletes data; remove the duplicates, then build the unique index")
		}
		c.repeated(x.Key, join(index(join(at, "indexes"), i), "key"))
	}
	c.cors(join(at, "cors"), col.CORS)
	if q := col.QueryLimits; q != nil && q.DefaultLimit > q.MaxLimit && !c.d.isBroken(join(at, "queryLimits")) {
		c.fail(join(at, "queryLimits.defaultLimit"), CodeConflict, "defaultLimit %d is above maxLimit %d", q.DefaultLimit, q.MaxLimit)
	}
	if col.Meta != nil {
		c.meta(col.Meta, join(at, "meta"))
	}
	for i, f := range col.Fields {
		c.foreign(p, f, index(join(at, "fields"), i))
	}
	c.search(col, join(at, "search"))
	c.projectionNames(col, at)
}

// repeated reports a key that names one path twice.
func (c *checker) repeated(key []string, at string) {
	seen := map[string]bool{}
	for i, k := range key {
		k = strings.TrimPrefix(strings.TrimPrefix(k, "-"), "$text:")
		if seen[k] {
			c.fail(index(at, i), CodeDuplicate, "%q is in the key twice", k)
		}
		seen[k] = true
	}
}

// reservedFields are the names that every record has or that answers add.
var reservedFields = []string{"id", "_id", "createdAt", "updatedAt", "createdBy", "updatedBy", "_rev", "_i18n", "_score", "_highlights"}

func (c *checker) fields(fields []*Field, at string, top bool) {
	c.unique(at, "name", "field", len(fields), func(i int) string { return fields[i].Name })
	for i, f := range fields {
		here := index(at, i)
		switch {
		case top && slices.Contains(reservedFields, f.Name):
			c.fail(join(here, "name"), CodeReserved, "%q is set by the service and can't be declared", f.Name)
		case slices.Contains(refusedNames, f.Name):
			c.fail(join(here, "name"), CodeReserved, "%q is never allowed as a field name", f.Name)
		case top && slices.Contains(reservedFields, f.RenamedFrom), slices.Contains(refusedNames, f.RenamedFrom):
			c.fail(join(here, "renamedFrom"), CodeReserved, "%q was never the name of a field", f.RenamedFrom)
		}
		c.fields(f.SubFields, join(here, "subFields"), false)
	}
}

// foreign reports relations to collections that the project doesn't have.
func (c *checker) foreign(p *Project, f *Field, at string) {
	if f.Meta != nil && f.Meta.Foreign != nil {
		x := f.Meta.Foreign
		known := slices.ContainsFunc(p.Collections, func(col *Collection) bool { return col.Name == x.Collection })
		if !known && x.Collection != "" && (x.Namespace == "" || x.Namespace == p.Namespace) && !c.d.isBroken("collections") {
			c.fail(join(at, "meta.foreign.collection"), CodeInvalid, "there is no collection %q", x.Collection)
		}
	}
	for i, sub := range f.SubFields {
		c.foreign(p, sub, index(join(at, "subFields"), i))
	}
}

// coreParameters are the query parameters of the service itself.
var coreParameters = []string{
	"filter", "sort", "limit", "offset", "after", "select", "projection", "lookup", "aggregate", "q", "qName", "qLimit",
	"facet", "fields", "count", "lang", "pretty", "highlight", "explain", "replace", "bulk", "dryRun", "maxAffected", "download", "wait", "watch",
	"project", "all", "status", "expect", "result",
	"token", "x-auth-token", "x-admin-token", "authorization", "cookie", "password", "access_token", "apikey", "api_key", "secret",
}

func (c *checker) meta(m *CollectionMeta, at string) {
	for name := range m.Query {
		if slices.ContainsFunc(coreParameters, func(s string) bool { return strings.EqualFold(s, name) }) {
			c.fail(join(at, "query."+name), CodeReserved, "%q is a parameter of the service or names a credential; choose another name", name)
		}
	}
	if m.I18n != nil && m.I18n.Default != "" && !c.d.isBroken(join(at, "i18n")) && !slices.Contains(m.I18n.Languages, m.I18n.Default) {
		c.fail(join(at, "i18n.default"), CodeConflict, "the default language %q is not one of languages", m.I18n.Default)
	}
}

// maxNgramSpan is how far the longest n-gram is above the shortest.
const maxNgramSpan = 8

func (c *checker) search(col *Collection, at string) {
	named := map[string]int{}
	for _, s := range col.Search {
		named[s.Name]++
	}
	for i, s := range col.Search {
		here := index(at, i)
		if n := s.Ngram; n != nil && !c.d.isBroken(join(here, "ngram")) {
			switch {
			case n.Min > n.Max:
				c.fail(join(here, "ngram.min"), CodeConflict, "min %d is above max %d", n.Min, n.Max)
			case n.Max-n.Min > maxNgramSpan:
				c.fail(join(here, "ngram.max"), CodeConflict, "max %d is more than %d above min %d: each length is one more entry of the index for each character of the text", n.Max, maxNgramSpan, n.Min)
			}
		}
		if s.Mode == "rrf" && s.RRF == nil {
			c.fail(join(here, "rrf"), CodeRequired, "is required for mode rrf")
		}
		if s.Mode == "vector" && s.Vector == nil {
			c.fail(join(here, "vector"), CodeRequired, "is required for mode vector")
		}
		if s.RRF == nil {
			continue
		}
		for j, source := range s.RRF.Sources {
			known := named[source] > 1 || named[source] == 1 && source != s.Name
			if !known && !c.d.isBroken(at) {
				c.fail(index(join(here, "rrf.sources"), j), CodeInvalid, "there is no other search config %q", source)
			}
		}
	}
}

// projectionNames reports validProjections that the collection doesn't have.
func (c *checker) projectionNames(col *Collection, at string) {
	if col.Permissions == nil || c.d.isBroken(join(at, "projections")) {
		return
	}
	for key, set := range col.Permissions.Sets() {
		for i, name := range set.ValidProjections {
			if _, ok := col.Projections[name]; !ok {
				c.fail(index(join(at, "permissions."+key+".validProjections"), i), CodeInvalid, "there is no projection %q", name)
			}
		}
	}
}
