package plan_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/plan"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// load compiles a config with its scripts.
func load(t *testing.T, config string) *project.Project {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"project.yaml": config, "a.js": "export default (ctx) => {}", "b.js": "export default (ctx) => 1", "public/x.txt": "x", "other/x.txt": "x"}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, problems := project.Load(dir, "project.yaml", func(name string) (string, bool) { return "secret-of-" + name, true })
	if problems.Err() {
		t.Fatalf("%s\n%v", config, problems)
	}
	return p
}

// collection is a config with the collection c, whose members are given.
func collection(members string) string {
	return "namespace: p\ncollections:\n  - name: c\n    " + strings.ReplaceAll(strings.TrimSpace(members), "\n", "\n    ") + "\n"
}

const nobody = "\npermissions: {public: {methods: {}}, user: {methods: {}}}"

func fields(list, rest string) string { return collection("fields: [" + list + "]\n" + rest + nobody) }

// records are those of c for tests that need no store.
type records []bson.D

func (r records) Count(context.Context, string) (int64, error) { return int64(len(r)), nil }

func (r records) Each(_ context.Context, _ string, fn func(bson.Raw) error) error {
	for _, d := range r {
		raw, err := bson.Marshal(d)
		if err != nil {
			return err
		}
		if err := fn(raw); err != nil {
			return err
		}
	}
	return nil
}

func planned(t *testing.T, served, next *project.Project, r plan.Records) *api.Plan {
	t.Helper()
	p, err := plan.Make(t.Context(), served, next, plan.Options{Records: r, Now: now, Box: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func lines(p *api.Plan) []string {
	out := []string{}
	for _, it := range p.Items {
		out = append(out, fmt.Sprintf("%s %s %s (%s): %s", it.Action, it.Kind, it.Object, it.Risk, it.Detail))
	}
	return out
}

// Of fields that were renamed, what is compared is the values that they have in the store.
func TestRenamedFields(t *testing.T) {
	t.Parallel()
	some := records{
		{{Key: "_id", Value: "1"}, {Key: "title", Value: "a"}, {Key: "o", Value: bson.D{{Key: "x", Value: "v"}}}},
		{{Key: "_id", Value: "2"}, {Key: "title", Value: "a"}, {Key: "o", Value: bson.A{bson.D{{Key: "y", Value: "w"}}}}},
		{{Key: "_id", Value: "3"}, {Key: "title", Value: 5}, {Key: "head", Value: "of an earlier config"}},
	}
	const title, heading = "{name: title, type: string}", "{name: heading, type: string, renamedFrom: title}"
	const renamed = "rename field c.heading (breaking): was title; its values, indexes and files come along; requests that name title are refused"
	read := func(fields, rest string) string {
		return collection("fields: [" + fields + "]\n" + rest + "\npermissions: {public: {methods: {get: true}}, user: {methods: {}}}")
	}
	for name, tt := range map[string]struct {
		old, next string
		want      []string
	}{
		"renamed":         {fields(title, ""), fields(heading, ""), []string{renamed}},
		"with a new rule": {fields(title, ""), fields("{name: heading, type: string, renamedFrom: title, validator: required}", ""), []string{renamed, "update field c.heading (breaking): required; 1 of 3 records fail"}},
		"with another type": {fields("{name: title, type: any}", ""), fields(heading, ""), []string{
			renamed, "update field c.heading (breaking): type string, before any; 1 of 3 records fail",
		}},
		"its indexes": {fields("{name: title, type: string, index: [single]}", "indexes: [{name: i, key: [-title]}]"), fields("{name: heading, type: string, index: [single], renamedFrom: title}", "indexes: [{name: i, key: [-heading]}]"), []string{
			renamed, "rename index c.heading_1 (safe): was title_1; stays as it is: (heading)",
		}},
		"its search": {
			fields(title+", {name: at, type: date}, {name: lang, type: string}", "languageOverride: lang\nsearch: [{name: s, mode: text, fields: [title], filter: {title: a}, score: {recency: {field: at, halfLife: 1d}}}]"),
			fields(heading+", {name: on, type: date, renamedFrom: at}, {name: l, type: string, renamedFrom: lang}", "languageOverride: l\nsearch: [{name: s, mode: text, fields: [heading], filter: {heading: a}, score: {recency: {field: on, halfLife: 1d}}}]"),
			[]string{
				renamed, "rename field c.on (breaking): was at; its values, indexes and files come along; requests that name at are refused",
				"rename field c.l (breaking): was lang; its values, indexes and files come along; requests that name lang are refused",
				"update collection c (safe): languageOverride changes",
			},
		},
		"with a unique index": {fields(title, ""), fields("{name: heading, type: string, index: [unique], renamedFrom: title}", ""), []string{
			renamed, "create index c.heading_1 (breaking): to build: (heading) unique; records: 3; 2 of 3 records share a value",
		}},
		"with a name that records have": {fields(title, ""), fields("{name: head, type: string, renamedFrom: title}", ""), []string{
			"rename field c.head (destructive): was title; its values, indexes and files come along; requests that name title are refused; " +
				"1 of 3 records have something by the new name from an earlier config, which is out of reach then",
		}},
		"onto another": {fields(title+", {name: head, type: string}", ""), fields("{name: head, type: string, renamedFrom: title}", ""), []string{
			"rename field c.head (breaking): was title; its values, indexes and files come along; requests that name title are refused",
			"delete field c.head (destructive): string; requests that name it are refused; 1 of 3 records have it",
		}},
		"inside": {fields("{name: o, type: object, subFields: [{name: x, type: string}]}", ""), fields("{name: p, type: object, renamedFrom: o, subFields: [{name: y, type: string, renamedFrom: x}]}", ""), []string{
			"rename field c.p (breaking): was o; its values, indexes and files come along; requests that name o are refused",
			"rename field c.p.y (destructive): was x; its values, indexes and files come along; requests that name x are refused; " +
				"1 of 3 records have something by the new name from an earlier config, which is out of reach then",
		}},
		"hidden, and not any more": {read(title, "hiddenFields: [title]"), read(heading, ""), []string{
			"update collection c (safe): hiddenFields: heading is not hidden from everybody any more",
			renamed,
			"update permission c public (breaking): wider: public gains read on c.heading",
		}},
		"hidden, and still":   {read(title, "hiddenFields: [title]\nreadonlyFields: [title]"), read(heading, "hiddenFields: [heading]\nreadonlyFields: [heading]"), []string{renamed}},
		"and another deleted": {fields(title+", {name: n, type: string}", ""), fields(heading, ""), []string{renamed, "delete field c.n (breaking): string; requests that name it are refused; 0 of 3 records have it"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, next := load(t, tt.old), load(t, tt.next)
			names, err := project.Names{}.Resolve(old, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = names.Resolve(next, old, nil); err != nil {
				t.Fatal(err)
			}
			got := lines(planned(t, old, next, some))
			slices.Sort(got)
			slices.Sort(tt.want)
			if !slices.Equal(got, tt.want) {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
			if after := planned(t, next, next, some); !after.Empty {
				t.Errorf("afterwards: %v", lines(after))
			}
		})
	}
}

// What each change is told as, with its risk, where three records are stored.
func TestItems(t *testing.T) {
	t.Parallel()
	some := records{
		{{Key: "_id", Value: "1"}, {Key: "title", Value: "a"}, {Key: "n", Value: 5}},
		{{Key: "_id", Value: "2"}, {Key: "title", Value: "a"}, {Key: "n", Value: 50}},
		{{Key: "_id", Value: "3"}, {Key: "tags", Value: bson.A{"x", "y"}}},
	}
	const title, n = "{name: title, type: string}", "{name: n, type: number}"
	const tags = ", {name: tags, type: 'string[]'}"
	perms := func(public string) string {
		return collection("fields: [" + title + "]\npermissions: {" + public + ", user: {methods: {}}}")
	}
	with := func(more string) string { return fields(title, "") + more }
	for name, tt := range map[string]struct {
		old, next string
		want      []string
	}{
		"nothing":                           {fields(title, ""), fields(title, "") + "# a comment\n", nil},
		"new field":                         {fields(title, ""), fields(title+","+n, ""), []string{"create field c.n (safe): number; 0 of 3 records fail"}},
		"new field that stored values fail": {fields(title, ""), fields(title+", {name: n, type: string}", ""), []string{"create field c.n (breaking): string; 2 of 3 records fail"}},
		"required": {fields(title, ""), fields("{name: title, type: string, validator: required}", ""), []string{
			"update field c.title (breaking): required; 1 of 3 records fail",
		}},
		"tighter, all pass":       {fields(n, ""), fields("{name: n, type: number, validator: {max: 50}}", ""), []string{"update field c.n (safe): max 50; 0 of 3 records fail"}},
		"tighter":                 {fields("{name: n, type: number, validator: {max: 50}}", ""), fields("{name: n, type: number, validator: {max: 10}}", ""), []string{"update field c.n (breaking): max 10, before max 50; 1 of 3 records fail"}},
		"looser":                  {fields("{name: n, type: number, validator: {max: 50}}", ""), fields("{name: n, type: number, validator: {max: 60}}", ""), []string{"update field c.n (safe): max 60, before max 50"}},
		"rule gone":               {fields("{name: n, type: number, validator: {max: 50}}", ""), fields(n, ""), []string{"update field c.n (safe): not max 50 any more"}},
		"type":                    {fields(n, ""), fields("{name: n, type: string}", ""), []string{"update field c.n (breaking): type string, before number; 2 of 3 records fail"}},
		"choices":                 {fields("{name: title, type: string, meta: {choices: [a, b]}}", ""), fields("{name: title, type: string, meta: {choices: [b, c]}}", ""), []string{"update field c.title (breaking): choices: fewer values, or others, are allowed; 2 of 3 records fail"}},
		"more choices":            {fields("{name: title, type: string, meta: {choices: [a]}}", ""), fields("{name: title, type: string, meta: {choices: [a, b]}}", ""), []string{"update field c.title (safe): choices: more values are allowed"}},
		"label":                   {fields(title, ""), fields("{name: title, type: string, meta: {label: Title}}", ""), []string{"update field c.title (safe): meta.label changes"}},
		"default":                 {fields(title, ""), fields("{name: title, type: string, meta: {defaultValue: x}}", ""), []string{"update field c.title (safe): meta.defaultValue changes, for records to come"}},
		"hidden":                  {fields(title, ""), fields("{name: title, type: string, hidden: true}", ""), []string{"update field c.title (breaking): hidden"}},
		"readonly":                {fields(title, ""), fields("{name: title, type: string, readonly: true}", ""), []string{"update field c.title (breaking): readonly"}},
		"field gone":              {fields(title+","+n, ""), fields(title, ""), []string{"delete field c.n (destructive): number; requests that name it are refused; 2 of 3 records have it"}},
		"unused field gone":       {fields(title+", {name: z, type: string}", ""), fields(title, ""), []string{"delete field c.z (breaking): string; requests that name it are refused; 0 of 3 records have it"}},
		"script rule":             {fields(title, ""), fields("{name: title, type: string, validator: {script: a.js}}", ""), []string{"update field c.title (breaking): script a.js; which records fail script is not counted; 0 of 3 records fail", "create script a.js (safe): is new; what it does is not judged"}},
		"index":                   {fields(title, ""), fields("{name: title, type: string, index: [single]}", ""), []string{"create index c.title_1 (slow): to build: (title); records: 3"}},
		"unique index":            {fields(n, ""), fields("{name: n, type: number, index: [unique]}", ""), []string{"create index c.n_1 (slow): to build: (n) unique; records: 3; 0 of 3 records share a value"}},
		"violated unique index":   {fields(title, ""), fields("{name: title, type: string, index: [unique]}", ""), []string{"create index c.title_1 (breaking): to build: (title) unique; records: 3; 2 of 3 records share a value"}},
		"index renamed":           {fields(title, "indexes: [{name: a, key: [title]}]"), fields(title, "indexes: [{name: b, key: [title], renamedFrom: a}]"), []string{"rename index c.b (safe): was a; stays as it is: (title)"}},
		"index of another name":   {fields(title, "indexes: [{name: a, key: [title]}]"), fields(title, "indexes: [{name: b, key: [title]}]"), []string{"rename index c.b (safe): was a; stays as it is: (title)"}},
		"index renamed, changed":  {fields(title+","+n, "indexes: [{name: a, key: [n], unique: true}]"), fields(title+","+n, "indexes: [{name: b, key: [title], renamedFrom: a}]"), []string{"rename index c.b (breaking): was a, (n) unique; to build anew: (title); records: 3"}},
		"index renamed for ever":  {fields(title, "indexes: [{name: b, key: [title], renamedFrom: a}]"), fields(title, "indexes: [{name: b, key: [title], renamedFrom: z}]"), nil},
		"index gone":              {fields(title, "indexes: [{name: a, key: [title]}]"), fields(title, ""), []string{"delete index c.a (slow): dropped: (title)"}},
		"search":                  {fields(title, ""), fields(title, "search: [{name: words, mode: text}, {name: exact, mode: regex}, {name: all, mode: rrf, rrf: {sources: [words]}}]"), []string{"create search c.all (safe): is new: rrf (words)", "create search c.exact (safe): is new: regex (title)", "create search c.words (slow): to build: text (title); records: 3"}},
		"search gone":             {fields(title, "search: [{name: a, mode: text}, {name: b, mode: ngram}]"), fields(title, "search: [{name: a, mode: text}]"), []string{"delete search c.b (breaking): who names it in qName is refused: ngram (title)"}},
		"all searches gone":       {fields(title, "search: [{name: a, mode: text}]"), fields(title, ""), []string{"delete search c.a (breaking): who names it in qName is refused: text (title)"}},
		"first search":            {fields(title, "search: [{name: a, mode: regex}, {name: b, mode: regex}]"), fields(title, "search: [{name: b, mode: regex}, {name: a, mode: regex}]"), []string{"update search c.b (breaking): is what q searches by without a qName, before a"}},
		"new first search":        {fields(title, "search: [{name: a, mode: regex}]"), fields(title, "search: [{name: b, mode: text}, {name: a, mode: regex}]"), []string{"create search c.b (slow): to build: text (title); records: 3", "update search c.b (breaking): is what q searches by without a qName, before a"}},
		"search of other fields":  {fields(title+tags, "search: [{name: a, mode: text, autoRegenerate: true}]"), fields(title+tags, "search: [{name: a, mode: text, autoRegenerate: true, fields: [tags]}]"), []string{"update search c.a (slow): fields changes; to build anew: text (tags); records: 3"}},
		"search by new fields":    {fields(title, "search: [{name: a, mode: text}]"), fields(title+tags, "search: [{name: a, mode: text}]"), []string{"create field c.tags (safe): string[]; 0 of 3 records fail", "update search c.a (slow): fields changes; to build anew: text (title, tags), when regenerate-search is called; until then the index of before answers; records: 3"}},
		"search of another mode":  {fields(title, "search: [{name: a, mode: text}]"), fields(title, "search: [{name: a, mode: ngram, async: true, autoRegenerate: true}]"), []string{"update search c.a (slow): mode, text, ngram, async, autoRegenerate changes; to build anew: ngram (title); records: 3"}},
		"search without an index": {fields(title, "search: [{name: a, mode: text}]"), fields(title, "search: [{name: a, mode: regex}]"), []string{"update search c.a (safe): mode, text, regex changes"}},
		"search with an index":    {fields(title, "search: [{name: a, mode: regex}]"), fields(title, "search: [{name: a, mode: ngram}]"), []string{"update search c.a (slow): mode, ngram, regex changes; to build anew: ngram (title); records: 3"}},
		"search: n-grams":         {fields(title, "search: [{name: a, mode: ngram, autoRegenerate: true}]"), fields(title, "search: [{name: a, mode: ngram, ngram: {max: 4}, autoRegenerate: true}]"), []string{"update search c.a (slow): ngram changes; to build anew: ngram (title); records: 3"}},
		"search: filter":          {fields(title, "search: [{name: a, mode: text, autoRegenerate: true}]"), fields(title, "search: [{name: a, mode: text, filter: {title: a}, autoRegenerate: true}]"), []string{"update search c.a (slow): filter changes; to build anew: text (title); records: 3"}},
		"search: filter of regex": {fields(title, "search: [{name: a, mode: regex, filter: {title: b}}]"), fields(title, "search: [{name: a, mode: regex, filter: {title: a}}]"), []string{"update search c.a (safe): filter changes"}},
		"search: settings":        {fields(title, "search: [{name: a, mode: text}]"), fields(title, "search: [{name: a, mode: text, text: {prefix: true}, score: {weights: {title: 2}}, meta: {label: x}}]"), []string{"update search c.a (safe): text, score, meta changes"}},
		"search: recency":         {fields(title, "search: [{name: a, mode: text, autoRegenerate: true, score: {recency: {field: createdAt, halfLife: 1d}}}]"), fields(title, "search: [{name: a, mode: text, autoRegenerate: true, score: {recency: {field: createdAt, halfLife: 2d}}}]"), []string{"update search c.a (safe): score changes"}},
		"search: recency of more": {fields(title, "search: [{name: a, mode: text, autoRegenerate: true}]"), fields(title, "search: [{name: a, mode: text, autoRegenerate: true, score: {recency: {field: createdAt, halfLife: 2d}}}]"), []string{"update search c.a (slow): score changes; to build anew: text (title); records: 3"}},
		"search: eval":            {fields(title, "search: [{name: a, mode: text, autoRegenerate: true, fields: [title]}]"), fields(title, "search: [{name: a, mode: text, fields: [title], eval: ctx.doc.title, autoRegenerate: true}]"), []string{"update search c.a (slow): eval changes; to build anew: text (eval of title); records: 3"}},
		"search: another eval":    {fields(title, "search: [{name: a, mode: text, fields: [title], eval: ctx.doc.title}]"), fields(title, "search: [{name: a, mode: text, fields: [title], eval: ctx.lang + ctx.doc.title}]"), []string{"update search c.a (slow): eval changes; to build anew: text (eval of title), when regenerate-search is called; until then the index of before answers; records: 3"}},
		"search: eval of others":  {fields(title+tags, "search: [{name: a, mode: text, fields: [title], eval: ctx.doc.title, autoRegenerate: true}]"), fields(title+tags, "search: [{name: a, mode: text, fields: [title, tags], eval: ctx.doc.title, autoRegenerate: true}]"), []string{"update search c.a (slow): fields changes; to build anew: text (eval of title, tags); records: 3"}},
		"search: rrf":             {fields(title, "search: [{name: a, mode: text}, {name: r, mode: rrf, rrf: {sources: [a]}}]"), fields(title, "search: [{name: a, mode: text}, {name: r, mode: rrf, rrf: {sources: [a], weights: {a: 2}}}]"), []string{"update search c.r (safe): rrf changes"}},
		"search by vectors":       {fields(title, ""), fields(title, "search: [{name: a, mode: vector, vector: {group: x}}]"), []string{"create search c.a (slow): to embed: vector (title) by the group x; records: 3"}},
		"search: another group":   {fields(title, "search: [{name: a, mode: vector, vector: {group: x}, autoRegenerate: true}]"), fields(title, "search: [{name: a, mode: vector, vector: {group: y}, autoRegenerate: true}]"), []string{"update search c.a (slow): vector changes; to embed anew: vector (title) by the group y; records: 3"}},
		"search: vectors of more": {fields(title+tags, "search: [{name: a, mode: vector, vector: {group: x, fields: [title]}}]"), fields(title+tags, "search: [{name: a, mode: vector, vector: {group: x, fields: [title, tags]}}]"), []string{"update search c.a (slow): fields changes; to embed anew: vector (title, tags) by the group x, when regenerate-search is called; until then the index of before answers; records: 3"}},
		"search: the same":        {fields(title, "search: [{name: a, mode: text}]"), fields(title, "search: [{name: a, mode: text, text: {operator: or}, fields: [title], score: {weights: {title: 1}}}]"), nil},
		"search: the language":    {fields(title, "search: [{name: a, mode: text, autoRegenerate: true}]"), fields(title, "defaultLanguage: de\nsearch: [{name: a, mode: text, autoRegenerate: true}]"), []string{"update collection c (safe): defaultLanguage changes", "update search c.a (slow): the language changes; to build anew: text (title); records: 3"}},
		"text index":              {fields(title, ""), fields(title, "indexes: [{name: words, key: ['$text:title']}]"), []string{"create search c.text (slow): to build: text (title); records: 3"}},
		"text index, of more":     {fields(title+tags, "indexes: [{name: words, key: ['$text:title']}]"), fields(title+tags, "indexes: [{name: words, key: ['$text:title', '$text:tags']}]"), []string{"update search c.text (slow): fields changes; to build anew: text (title, tags); records: 3"}},
		"text index of a field":   {fields("{name: title, type: string, index: [text]}", ""), fields(title, "indexes: [{name: words, key: ['$text:title']}]"), nil},
		"text index gone":         {fields("{name: title, type: string, index: [text, single]}", ""), fields("{name: title, type: string, index: [single]}", ""), []string{"delete search c.text (breaking): who names it in qName is refused: text (title)"}},
		"collection with search":  {"namespace: p\ncollections: []\n", fields(title, "search: [{name: a, mode: text}]"), []string{"create collection c (breaking): fields: 1; 0 of 3 records fail; they are of an earlier config, and in reach again", "create search c.a (slow): to build: text (title); records: 3", "create route /_/p/c (safe): appears"}},
		"strict":                  {fields(title, ""), fields(title, "strictFields: true"), []string{"update collection c (breaking): strictFields: fields that are not declared are refused, and hidden where they are stored; 3 of 3 records fail"}},
		"query limits":            {fields(title, ""), fields(title, "queryLimits: {maxLimit: 10}"), []string{"update collection c (breaking): queryLimits changes"}},
		"public gains":            {perms("public: {methods: {}}"), perms("public: {methods: {delete: true}}"), []string{"update permission c public (breaking): wider: public gains count in delete on c", "update permission c public (breaking): wider: public gains delete on c", "update permission c public (breaking): wider: public gains facet in delete on c"}},
		"public gains a field":    {perms("public: {methods: {get: true}, hiddenFields: [title]}"), perms("public: {methods: {get: true}}"), []string{"update permission c public (breaking): wider: public gains read on c.title"}},
		"public loses a field":    {perms("public: {methods: {get: true}}"), perms("public: {methods: {get: true}, hiddenFields: [title]}"), []string{"update permission c public (breaking): public loses read on c.title"}},
		"public loses its filter": {perms("public: {methods: {get: true}, filter: {title: a}}"), perms("public: {methods: {get: true}}"), []string{"update permission c public (breaking): wider: public gains all records on c: its filter is gone"}},
		"token":                   {perms("public: {methods: {}}"), perms("public: {methods: {}}, 'token:${env:T}': {methods: {post: true}}"), []string{"create token c token:sha256:91d15f60fc191ef0… (safe): gains create, count in create, facet in create on c"}},
		"projection":              {fields(title, "projections: {short: {select: {title: 1}}}"), fields(title, ""), []string{"delete projection c.short (breaking): who asks for it is refused"}},
		"image filter":            {fields(title, "imageFilter: {small: [{width: 10}]}"), fields(title, "imageFilter: {small: [{width: 20}], big: [{width: 90}]}"), []string{"create imageFilter c.big (safe): is new", "update imageFilter c.small (slow): pictures are made anew when they are asked for"}},
		"hook":                    {fields(title, "hooks: {post: {create: {type: javascript, file: a.js}}}"), fields(title, "hooks: {post: {create: {type: javascript, file: b.js}}}"), []string{"update hook c post.create (safe): runs b.js, before a.js, or for another time; what it does is not judged", "delete script a.js (safe): nothing runs it any more", "create script b.js (safe): is new; what it does is not judged"}},
		"job":                     {with(""), with("jobs: [{type: javascript, file: a.js, cron: '@daily'}]\n"), []string{"create script a.js (safe): is new; what it does is not judged", "create job a (safe): schedule \"@daily\"; next runs: 2026-11-24T00:00:00Z, 2026-11-25T00:00:00Z, 2026-11-26T00:00:00Z"}},
		"snapshots":               {with("snapshots: [{name: a}, {name: b, enabled: true, schedule: '@daily', description: x}]\n"), with("snapshots: [{name: b, enabled: true, schedule: 'every 6h', description: y}, {name: c}]\n"), []string{"delete snapshot a (breaking): is not taken any more; snapshots of it stay", `update snapshot b (safe): description, schedule changes; schedule "every 6h", before schedule "@daily"`, "create snapshot c (safe): by hand"}},
		"snapshots keep more":     {with("snapshots: [{name: a, enabled: true, retention: {keepLast: 2}}]\n"), with("snapshots: [{name: a, enabled: true, retention: {keepLast: 2, keepWithin: 7d}}]\n"), []string{"update snapshot a (safe): retention changes"}},
		"snapshots keep less":     {with("snapshots: [{name: a, enabled: true, retention: {keepLast: 2, keepWithin: 7d}}]\n"), with("snapshots: [{name: a, enabled: true, retention: {keepLast: 3, keepWithin: 6d}}]\n"), []string{"update snapshot a (destructive): retention changes; snapshots that it does not keep are removed"}},
		"snapshots: a retention":  {with("snapshots: [{name: a, retention: {keepLast: 2}}]\n"), with("snapshots: [{name: a, enabled: true, retention: {keepLast: 2}}]\n"), []string{"update snapshot a (destructive): enabled changes; enabled, without a schedule, before by hand; snapshots that it does not keep are removed"}},
		"asset":                   {with(""), with("assets: [{name: x, path: public}]\n"), []string{"create asset x (breaking): wider: everybody may read the files in public", "create route /_/p/_/assets/x (safe): appears"}},
		"collection gone":         {with(""), "namespace: p\ncollections: []\n", []string{"delete collection c (destructive): its records stay in the store, out of reach; records: 3", "delete route /_/p/c (breaking): vanishes"}},
		"collection back":         {"namespace: p\ncollections: []\n", with(""), []string{"create collection c (breaking): fields: 1; 0 of 3 records fail; they are of an earlier config, and in reach again", "create route /_/p/c (safe): appears"}},
		"setting":                 {with(""), with("meta: {label: '${env:LABEL}'}\nhook: {timeout: 100}\n"), []string{"update project hook (breaking): changes", "update project meta (safe): changes"}},
		"action":                  {with(""), with("actions: [{name: act, hooks: {handle: {type: javascript, file: a.js}}, meta: {methods: {get: {}}}}]\n"), []string{"create script a.js (safe): is new; what it does is not judged", "create action act (safe): is new", "create route GET /_/p/_/actions/act (safe): appears"}},
		"shorter retention":       {with("audit: {enabled: true}\n"), with("audit: {enabled: true, retention: 1d}\n"), []string{"update project audit (destructive): the audit log's settings change: retention; entries older than 24h0m0s are deleted"}},
		"a secret is not shown":   {fields(title, ""), fields("{name: title, type: string, validator: {pattern: '${env:P}'}}", ""), []string{"update field c.title (breaking): pattern ***; 2 of 3 records fail"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			served, next := load(t, tt.old), load(t, tt.next)
			got := planned(t, served, next, some)
			if tt.want == nil {
				tt.want = []string{}
			}
			if !slices.Equal(tt.want, lines(got)) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(lines(got), "\n"), strings.Join(tt.want, "\n"))
			}
			if got.Empty != (len(tt.want) == 0) {
				t.Errorf("empty is %t", got.Empty)
			}
			for range 3 { // maps must not show
				if again := planned(t, served, next, some); again.Hash != got.Hash || !slices.Equal(lines(again), lines(got)) {
					t.Errorf("planned again:\n%s\n%s", got.Hash, again.Hash)
				}
			}
			if after := planned(t, next, next, some); !after.Empty || after.Risk != api.RiskSafe {
				t.Errorf("after the apply: %v", lines(after))
			}
			if first := planned(t, nil, next, records{}); first.Empty || first.Risk.Above(api.RiskSafe) {
				t.Errorf("a first config: %v", lines(first))
			}
		})
	}
}

// The hash is another one when the files, or what is served, are others, even where no item tells of it; records change it not.
func TestHash(t *testing.T) {
	t.Parallel()
	a, b := load(t, fields("{name: title, type: string}", "")), load(t, fields("{name: title, type: string, validator: required}", ""))
	commented := load(t, fields("{name: title, type: string, validator: required}", "")+"# more\n")
	plain := planned(t, a, b, records{}).Hash
	for name, p := range map[string]*api.Plan{
		"other files": planned(t, a, commented, records{}), "other base": planned(t, commented, b, records{}), "no base": planned(t, nil, b, records{}),
	} {
		if p.Hash == plain {
			t.Errorf("%s: the hash is the same", name)
		}
	}
	if p := planned(t, a, b, records{{{Key: "_id", Value: "1"}}}); p.Hash != plain || p.Risk != api.RiskBreaking {
		t.Errorf("with a record that fails: %s, %s", p.Hash, p.Risk)
	}
}

// slow records are those before the time is over.
type slow struct {
	records
	before int
}

func (s slow) Count(ctx context.Context, c string) (int64, error) {
	if s.before < 0 {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return s.records.Count(ctx, c)
}

func (s slow) Each(ctx context.Context, c string, fn func(bson.Raw) error) error {
	if err := s.records[:s.before].Each(ctx, c, fn); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// What there is no time for is told, and taken for the worst; the hash stays.
func TestTimeIsOver(t *testing.T) {
	t.Parallel()
	served := load(t, fields("{name: title, type: string}, {name: n, type: number}", ""))
	next := load(t, fields("{name: title, type: string, validator: required}", "search: [{name: a, mode: text}]"))
	all := records{{{Key: "_id", Value: "1"}, {Key: "title", Value: "a"}}, {{Key: "_id", Value: "2"}}, {{Key: "_id", Value: "3"}}}
	for before, want := range map[int][]string{
		2: {
			"delete field c.n (destructive): number; requests that name it are refused; at least 0 of 3 records, of which 2 were looked at, have it",
			"update field c.title (breaking): required; at least 1 of 3 records, of which 2 were looked at, fail",
			"create search c.a (slow): to build: text (title); records: 3",
		},
		-1: {
			"delete field c.n (destructive): number; requests that name it are refused; there was no time to count records",
			"update field c.title (breaking): required; there was no time to count records",
			"create search c.a (slow): to build: text (title); there was no time to count records",
		},
	} {
		p, err := plan.Make(t.Context(), served, next, plan.Options{Records: slow{all, before}, Now: now, Box: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(want, lines(p)) {
			t.Errorf("after %d records\n%s", before, strings.Join(lines(p), "\n"))
		}
		if p.Hash != planned(t, served, next, all).Hash {
			t.Errorf("after %d records the hash is another one", before)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if p, err := plan.Make(ctx, served, next, plan.Options{Records: slow{all, 1}, Now: now, Box: time.Hour}); err == nil {
		t.Errorf("a caller who is gone gets %v", p)
	}
}

// Records are counted in what is stored, on every store.
func TestStored(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		t.Helper()
		db := s.Database("svc_plan_" + bson.NewObjectID().Hex())
		var ops []store.Op
		var ids []string
		for i := range 30 {
			id := bson.NewObjectIDFromTimestamp(now.Add(time.Duration(i) * time.Second))
			ids = append(ids, id.Hex())
			doc := bson.D{{Key: "_id", Value: id}, {Key: "_rev", Value: int64(1)}, {Key: "createdAt", Value: bson.NewDateTimeFromTime(now)}, {Key: "k", Value: bson.A{i, i / 2 * 2}}}
			if i%2 == 0 {
				doc = append(doc, bson.E{Key: "title", Value: "x"})
			}
			raw, err := bson.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			ops = append(ops, store.Op{Kind: store.Insert, Doc: raw})
		}
		if err := store.WriteAll(t.Context(), db.Collection("c"), ops...); err != nil {
			t.Fatal(err)
		}
		served := load(t, fields("{name: title, type: string}, {name: k, type: 'number[]'}", ""))
		next := load(t, fields("{name: title, type: string, validator: required}, {name: k, type: 'number[]'}", "indexes: [{name: u, key: [k], unique: true}]"))
		p := planned(t, served, next, plan.Stored(db))
		want := []string{
			"update field c.title (breaking): required; 15 of 30 records fail",
			"create index c.u (breaking): to build: (k) unique; records: 30; 30 of 30 records share a value",
		}
		if !slices.Equal(want, lines(p)) {
			t.Errorf("%s", strings.Join(lines(p), "\n"))
		}
		var odd []string
		for i := 1; i < 20; i += 2 {
			odd = append(odd, ids[i])
		}
		if got := p.Items[0].Samples; !slices.Equal(got, odd) {
			t.Errorf("samples: %v", got)
		}
	})
}
