package project

import (
	"fmt"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/search"
)

// GoldenDirectory is where golden queries are, in a project's directory.
const GoldenDirectory = "search"

// Golden is a file of golden queries, compiled against its project. It is no part of the project: what is wrong with it keeps nothing
// from being served.
type Golden struct {
	*schema.LoadedGolden

	Of     *Collection
	Config *search.Config // the search that is judged
}

// Path names the search: <collection>/<search>.
func (g *Golden) Path() string { return g.Of.Name + "/" + g.Config.Name }

// ByMeaning says whether vectors have a say in what the search finds.
func (g *Golden) ByMeaning() bool {
	return slices.ContainsFunc(g.Of.Searches, func(s *search.Config) bool {
		return s.Mode == search.Vector &&
			(s.Name == g.Config.Name || slices.ContainsFunc(g.Config.Sources, func(of search.Source) bool { return of.Name == s.Name }))
	})
}

// Goldens reads the golden queries that are beside a project, in its directory now. Those with problems are not among them.
func Goldens(p *Project) ([]*Golden, schema.Problems) {
	root, err := openRoot(p.Dir)
	if err != nil {
		return nil, nil // the project was made without a directory, or it is gone
	}
	defer root.Close() //nolint:errcheck // opened for reading
	return goldens(Files(root), p)
}

// Goldens reads the golden queries that are among the files of the bundle that a project was loaded from.
func (b Bundle) Goldens(p *Project) ([]*Golden, schema.Problems) {
	return goldens(bundleReader(b.Files), p)
}

func goldens(r schema.Reader, p *Project) (out []*Golden, problems schema.Problems) {
	files, problems := GoldenFiles(r)
	for _, file := range files {
		loaded, bad := schema.LoadGolden(r, file)
		problems = append(problems, bad...)
		if bad.Err() {
			continue
		}
		g, bad := CompileGolden(p, loaded)
		if problems = append(problems, bad...); !bad.Err() {
			out = append(out, g)
		}
	}
	return out, problems.Bounded()
}

// GoldenFiles lists the files of golden queries, by name.
func GoldenFiles(r schema.Reader) ([]string, schema.Problems) {
	g, ok := r.(schema.Globber)
	if !ok {
		return nil, nil
	}
	names, err := g.Glob(GoldenDirectory + "/*")
	if err != nil {
		return nil, schema.Problems{{
			Position: schema.Position{File: GoldenDirectory, Line: 1, Column: 1}, Code: schema.CodeReference, Message: "can't be read: " + schema.ReadProblem(err),
		}}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !schema.IsGolden(name) })
	slices.Sort(names)
	if len(names) > schema.MaxGoldenFiles {
		return nil, schema.Problems{{
			Position: schema.Position{File: names[schema.MaxGoldenFiles], Line: 1, Column: 1}, Code: schema.CodeRange,
			Message: fmt.Sprintf("is one too many: a project has at most %d files of golden queries", schema.MaxGoldenFiles),
		}}
	}
	return names, nil
}

// CompileGolden checks a file of golden queries against its project.
func CompileGolden(p *Project, l *schema.LoadedGolden) (*Golden, schema.Problems) {
	c := &goldenCompiler{l: l}
	out := &Golden{LoadedGolden: l}
	if out.Of = p.Collections[l.Collection]; out.Of == nil {
		c.fail("collection", schema.CodeInvalid, "there is no collection %q%s", l.Collection, near(l.Collection, slices.Collect(maps.Keys(p.Collections))))
		return nil, c.problems
	}
	if out.Config = c.search(out.Of); out.Config == nil {
		return nil, c.problems
	}
	c.by(out.Of)
	for i, q := range l.Queries {
		if _, err := search.Parse(q.Q); err != nil {
			c.fail(fmt.Sprintf("queries[%d].q", i), schema.CodeInvalid, "%s", errs.From(err).Message)
		}
	}
	if names := c.fixtures(p); len(c.problems) == 0 {
		c.judged(names)
	}
	return out, c.problems.Sort()
}

// goldenCompiler checks one file.
type goldenCompiler struct {
	l        *schema.LoadedGolden
	problems schema.Problems
}

func (c *goldenCompiler) fail(at, code, format string, args ...any) {
	if len(c.problems) < schema.MaxProblems {
		c.problems = append(c.problems, c.l.Problem(at, code, format, args...))
	}
}

// near names what a name may mean, as the end of a message.
func near(name string, known []string) string {
	if n := schema.Nearest(name, known); n != "" {
		return fmt.Sprintf("; did you mean %q?", n)
	}
	return ""
}

func (c *goldenCompiler) search(of *Collection) *search.Config {
	at, config := "search", of.Search(c.l.Search)
	if c.l.Search == "" {
		at = "collection"
	}
	switch {
	case config == nil && c.l.Search == "":
		c.fail(at, schema.CodeConflict, "%s has no search", of.Name)
	case config == nil:
		var names []string
		for _, s := range of.Searches {
			names = append(names, s.Name)
		}
		c.fail(at, schema.CodeInvalid, "there is no search %q of %s%s", c.l.Search, of.Name, near(c.l.Search, names))
	case config.Mode == search.Regex:
		c.fail(at, schema.CodeConflict, "a search of mode regex has no order to judge: its records come in that of sort")
		return nil
	}
	return config
}

// by checks that a field can name records.
func (c *goldenCompiler) by(of *Collection) {
	if c.l.By == "" || c.l.By == "id" {
		return
	}
	switch f, ok := of.Tree.Resolve(c.l.By); {
	case !ok:
		c.fail("by", schema.CodeUnknownField, "there is no field %q%s", c.l.By, nearestField(c.l.By, of.Tree))
	case f.Type == nil || f.Type.Name() != "string":
		c.fail("by", schema.CodeType, "must be a field of type string, whose value is in one record alone")
	}
}

// fixtures gives what the collection's records are named, by their number; "" for those without.
func (c *goldenCompiler) fixtures(p *Project) []string {
	var names []string
	total, seen := 0, map[string]bool{}
	if c.l.Given == nil {
		return nil
	}
	if weigh(c.l.Given.Records, schema.MaxGoldenText) > schema.MaxGoldenText {
		c.fail("given.records", schema.CodeRange, "is too much: a file of golden queries gives texts of %d MiB at most", schema.MaxGoldenText>>20)
		return nil
	}
	by := c.l.By
	if by == "" {
		by = "id"
	}
	for _, e := range c.l.Given.Records {
		at := "given.records." + e.Key
		if p.Collections[e.Key] == nil {
			c.fail(at, schema.CodeInvalid, "there is no collection %q%s", e.Key, near(e.Key, slices.Collect(maps.Keys(p.Collections))))
			continue
		}
		list, ok := e.Value.(bson.A)
		if !ok {
			c.fail(at, schema.CodeType, "must be a list of records")
			continue
		}
		if total += len(list); total > schema.MaxGoldenRecords {
			c.fail(at, schema.CodeRange, "is too much: a file of golden queries gives %d records at most", schema.MaxGoldenRecords)
			return nil
		}
		if e.Key != c.l.Collection {
			continue
		}
		for i, item := range list {
			doc, _ := item.(bson.D)
			value, _ := document.Get(doc, by)
			name, _ := value.(string)
			if name != "" && seen[name] {
				c.fail(fmt.Sprintf("%s[%d].%s", at, i, by), schema.CodeDuplicate, "there is another record with %s %q", by, name)
			}
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

// weigh gives the bytes of all texts in a value, up to a little more than most.
func weigh(v any, most int) (n int) {
	switch v := v.(type) {
	case string:
		n = len(v)
	case bson.D:
		for i := 0; i < len(v) && n <= most; i++ {
			n += len(v[i].Key) + weigh(v[i].Value, most-n)
		}
	case bson.A:
		for i := 0; i < len(v) && n <= most; i++ {
			n += weigh(v[i], most-n)
		}
	}
	return n
}

// judged checks that what is judged can be found at all.
func (c *goldenCompiler) judged(names []string) {
	if len(names) == 0 {
		at := "given.records"
		if c.l.Given == nil {
			at = "collection"
		}
		c.fail(at, schema.CodeRequired, "given.records must have the records of %s that are searched", c.l.Collection)
		return
	}
	known := map[string]bool{}
	for _, n := range names {
		known[n] = n != ""
	}
	for i, q := range c.l.Queries {
		for _, id := range slices.Sorted(maps.Keys(q.Relevant)) {
			if !known[id] {
				c.fail(fmt.Sprintf("queries[%d].relevant", i), schema.CodeReference, "%q is not among the given records of %s%s", id, c.l.Collection, near(id, names))
			}
		}
	}
}
