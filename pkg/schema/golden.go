package schema

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// Golden is one file of golden queries, search/<name>.golden.yaml; docs/testing.md says what its keys do.
type Golden struct {
	Collection string         `cfg:"collection,required" doc:"The collection that is searched."`
	Search     string         `cfg:"search" doc:"The search that is judged; the collection's first when absent."`
	By         string         `cfg:"by" doc:"The text field whose value names a record in relevant, such as slug; id when absent."`
	Given      *TestGiven     `cfg:"given" doc:"The records that are searched, as in the tests of the project. A record's id may be given, too. svcctl search eval searches those of the service in their place."`
	As         *TestCaller    `cfg:"as" doc:"Who searches; public when absent."`
	Gates      GoldenGates    `cfg:"gates,required" doc:"What the search has to reach, as the mean of all queries; one of them at least."`
	Queries    []*GoldenQuery `cfg:"queries,required" min:"1" doc:"The queries that are judged."`
}

// GoldenGates are what a search has to reach; 0 is none.
type GoldenGates struct {
	NDCG10    float64 `cfg:"ndcg10" min:"0" max:"1" doc:"The least nDCG@10: how near the order of the first ten is to the best one."`
	Recall100 float64 `cfg:"recall100" min:"0" max:"1" doc:"The least recall@100: how much of what is relevant is among the first hundred."`
}

// GoldenQuery is a query, and what answers it.
type GoldenQuery struct {
	Q        string         `cfg:"q,required" doc:"What is looked for."`
	Relevant GoldenRelevant `cfg:"relevant,required" doc:"The records that answer it: ids, or an object of id and grade. The higher the grade, the better the answer; an id alone has 1, and 0 is for what is not relevant."`
}

// GoldenRelevant is the grade of each record that is judged.
type GoldenRelevant map[string]int

// The bounds of golden files: each is run on the service when a plan is made.
const (
	MaxGoldenFiles   = 50
	MaxGoldenQueries = 500     // of a file
	MaxGoldenRecords = 2000    // that a file gives
	MaxGoldenText    = 4 << 20 // bytes of all texts in these, each counted where it stands for another
	maxGoldenGrade   = 10
	maxGoldenJudged  = 1000 // of a query
)

// goldenSuffix is how the names of golden files end, before their extension.
const goldenSuffix = ".golden"

// IsGolden says by its name that a file has golden queries: it is no part of a config, whatever pattern finds it.
func IsGolden(name string) bool {
	return isConfigFile(name) && strings.HasSuffix(strings.TrimSuffix(name, path.Ext(name)), goldenSuffix)
}

// LoadedGolden is a file of golden queries as read.
type LoadedGolden struct {
	Golden

	File   string
	loaded Loaded
}

// Name is what the file is called, without what all have in common.
func (l *LoadedGolden) Name() string {
	name := path.Base(l.File)
	return strings.TrimSuffix(strings.TrimSuffix(name, path.Ext(name)), goldenSuffix)
}

// Position tells where the value at a path stands; see Loaded.Position.
func (l *LoadedGolden) Position(at string) Position { return l.loaded.Position(at) }

// Problem makes a problem at a path.
func (l *LoadedGolden) Problem(at, code, format string, args ...any) Problem {
	return l.loaded.Problem(at, code, format, args...)
}

// Suite is a suite of tests that begins with the same.
func (l *LoadedGolden) Suite() *LoadedSuite {
	return &LoadedSuite{Suite: Suite{Given: l.Given, As: l.As}, loaded: l.loaded}
}

// LoadGolden reads a file of golden queries. Whether there is such a collection and search, and whether it gives the records that it
// judges, only the project can say. It is fit for use only when no problem is an error.
func LoadGolden(r Reader, file string) (*LoadedGolden, Problems) {
	l := newLiteralLoader(r)
	root := l.entry(file)
	if root == nil {
		return nil, l.problems.Sort()
	}
	d := newDecoder(l)
	out := &LoadedGolden{File: file, loaded: Loaded{root: root, refs: d.refs}}
	d.root(root, file, &out.Golden)
	out.check(d)
	l.more(file)
	if d.over {
		return nil, l.problems.Sort()
	}
	return out, l.problems.Sort()
}

// check is for what the types can't say.
func (l *LoadedGolden) check(d *decoder) {
	refuse := func(at, code, format string, args ...any) { d.problem(l.Position(at), at, code, format, args...) }
	if l.Gates == (GoldenGates{}) && !d.isBroken("gates") {
		refuse("gates", CodeRequired, "needs ndcg10 or recall100, above 0")
	}
	if len(l.Queries) > MaxGoldenQueries {
		refuse("queries", CodeRange, "must have at most %d elements", MaxGoldenQueries)
		return
	}
	seen := map[string]bool{}
	for i, q := range l.Queries {
		at := index("queries", i)
		if q.Q != "" && seen[q.Q] {
			refuse(at+".q", CodeDuplicate, "is there before: judge it once")
		}
		seen[q.Q] = true
		relevant := slices.ContainsFunc(q.Relevant.values(), func(grade int) bool { return grade > 0 })
		if !relevant && !d.isBroken(at) {
			refuse(at+".relevant", CodeRange, "must have a record that is relevant")
		}
	}
}

func (r GoldenRelevant) values() []int {
	out := make([]int, 0, len(r))
	for _, grade := range r {
		out = append(out, grade)
	}
	return out
}

func (r *GoldenRelevant) decodeConfig(d *decoder, n *node, at string, _ *member) {
	if n.kind != kindList {
		d.wrongType(n, at, aList)
		return
	}
	if len(n.items) > maxGoldenJudged {
		d.problem(n.pos, at, CodeRange, "must have at most %d elements", maxGoldenJudged)
		return
	}
	*r = GoldenRelevant{}
	put := func(id string, grade int, pos Position, at string) {
		if _, there := (*r)[id]; there {
			d.problem(pos, at, CodeDuplicate, "%q is there before", id)
			return
		}
		(*r)[id] = grade
	}
	for i, item := range n.items {
		here := at + "[" + strconv.Itoa(i) + "]"
		if !d.takes(item.size(), item.pos, here) {
			return
		}
		switch {
		case item.failed:
			d.broken[here] = true
		case item.kind == kindString && item.text != "":
			put(item.text, 1, item.pos, here)
		case item.kind == kindMap && len(item.entries) == 1:
			e := item.entries[0]
			if e.value.kind != kindInt || e.value.integer < 0 || e.value.integer > maxGoldenGrade {
				d.problem(e.value.pos, join(here, e.key), CodeRange, "must be a grade, a whole number from 0 to %d", maxGoldenGrade)
				continue
			}
			put(e.key, int(e.value.integer), item.pos, here)
		default:
			d.problem(item.pos, here, CodeType, "must be an id in quotes, or one such as {\"id\": 2} with its grade")
		}
	}
}

func (r *GoldenRelevant) configSchema(*generator, *member) map[string]any {
	grade := map[string]any{"type": "integer", "minimum": 0, "maximum": maxGoldenGrade}
	return map[string]any{"type": "array", "minItems": 1, "maxItems": maxGoldenJudged, "items": anyOf(
		map[string]any{"type": "string", "minLength": 1},
		map[string]any{"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": grade},
	)}
}
