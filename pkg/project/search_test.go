package project_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/search"
)

// searchable is the fields of the collections that follow.
const searchable = `
fields:
  - {name: title, type: string}
  - {name: tags, type: "string[]"}
  - {name: code, type: string, hidden: true}
  - {name: margin, type: object, hidden: true, subFields: [{name: note, type: string}]}
  - {name: secret, type: string}
  - {name: seo, type: object, subFields: [{name: title, type: string}, {name: rank, type: number}]}
  - {name: parts, type: "object[]", subFields: [{name: name, type: string}, {name: lang, type: string}, {name: at, type: date}]}
  - {name: extra, type: object}
  - {name: free, type: any}
  - {name: photo, type: file}
  - {name: author, type: string, meta: {foreign: {collection: items}}}
  - {name: ref, type: string, meta: {foreign: {collection: items, key: title}}}
  - {name: price, type: number}
  - {name: active, type: boolean}
  - {name: language, type: string}
  - {name: publishedAt, type: date}
hiddenFields: [secret]
permissions: {public: {methods: {get: true}, hiddenFields: [seo.title]}, user: {methods: {}}}
`

// searched is some of everything that they may say about searches.
const searched = `
defaultLanguage: german
languageOverride: language
search: [{name: a, mode: text, fields: [title, tags], text: {language: en}, score: {weights: {title: 2}, recency: {field: publishedAt, halfLife: 1d}}, filter: {active: true}}, {name: b, mode: ngram, ngram: {max: 4}}, {name: c, mode: regex, regex: {options: i}}, {name: r, mode: rrf, rrf: {sources: [a, b], weights: {a: 2}}}]
indexes: [{key: ["$text:title"], defaultLanguage: fr, languageOverride: language}]
`

// loadItems loads a project with the collection items.
func loadItems(t *testing.T, members string) (*project.Collection, schema.Problems) {
	t.Helper()
	config := "-- project.yaml --\nnamespace: blog\ncollections:\n  - name: items\n    " + strings.ReplaceAll(strings.TrimSpace(members), "\n", "\n    ") + "\n"
	p, problems := project.Load(write(t, config), "project.yaml", nil)
	if p == nil {
		return nil, problems
	}
	return p.Collections["items"], problems
}

// shown is a search in one line: its fields with language, weight and translations, and what is not as it is without saying.
func shown(s *search.Config) string {
	parts := []string{s.Name, string(s.Mode)}
	for _, f := range s.Fields {
		text := f.Path
		if f.Language != "" {
			text += ":" + f.Language
		}
		if f.Weight != 1 {
			text += fmt.Sprintf("*%g", f.Weight)
		}
		if f.Translations != nil {
			text += "(" + strings.Join(f.Translations, " ") + ")"
		}
		parts = append(parts, text)
	}
	for _, f := range s.Sources {
		parts = append(parts, fmt.Sprintf("%s*%g", f.Name, f.Weight))
	}
	say := func(name string, given bool, value any) {
		if given {
			parts = append(parts, fmt.Sprintf("%s=%v", name, value))
		}
	}
	say("override", s.Override != "", s.Override)
	say("fuzzy", s.Fuzzy, true)
	say("prefix", s.Prefix, true)
	say("all", s.All, true)
	say("grams", s.MaxGram > 0, fmt.Sprintf("%d-%d", s.MinGram, s.MaxGram))
	say("options", s.Mode == search.Regex, s.Options)
	say("k", s.K > 0, s.K)
	say("topK", s.TopK > 0, s.TopK)
	say("minScore", s.MinScore > 0, s.MinScore)
	if s.Eval != nil {
		say("eval", true, strings.Join(s.Eval.Paths, " "))
	}
	if s.Recency != nil {
		say("recency", true, fmt.Sprint(s.Recency.Path, " ", s.Recency.HalfLife, " ", s.Recency.Weight))
	}
	if s.Filter != nil {
		say("filter", true, s.Filter.Raw())
	}
	say("async", s.Async, true)
	say("auto", s.AutoRegenerate, true)
	return strings.Join(parts, " ")
}

// TestSearches: what search configs and text indexes become.
func TestSearches(t *testing.T) {
	t.Parallel()
	const (
		german = "defaultLanguage: german\n"
		all    = "title tags seo.title parts.name parts.lang language"
	)
	translated := strings.Replace(searchable, "permissions:", "meta: {i18n: {languages: [en, de, pt-BR]}}\npermissions:", 1)
	for name, tt := range map[string]struct {
		config string
		want   []string
	}{
		"none":                  {searchable, nil},
		"all fields with text":  {"search: [{name: a, mode: text}]" + searchable, []string{"a text " + all + " fuzzy=true"}},
		"of a language":         {german + "search: [{name: a, mode: text, fields: [title, tags]}]" + searchable, []string{"a text title:de tags:de fuzzy=true"}},
		"of no language":        {"defaultLanguage: none\nsearch: [{name: a, mode: text, fields: [title]}]" + translated, []string{"a text title(de pt-BR) fuzzy=true"}},
		"of the translations":   {"search: [{name: a, mode: text, fields: [title, seo.title, photo.alt]}]" + translated, []string{"a text title:en(de pt-BR) seo.title:en(de pt-BR) photo.alt:en fuzzy=true"}},
		"of unknown ones":       {"search: [{name: a, mode: text, fields: [title]}]" + strings.Replace(translated, "en, de, pt-BR", "xx, yy", 1), []string{"a text title(yy) fuzzy=true"}},
		"of its own language":   {"languageOverride: language\n" + german + "search: [{name: a, mode: text, fields: [title], text: {language: pt-BR}}]" + searchable, []string{"a text title:pt fuzzy=true"}},
		"of a record's":         {"languageOverride: language\nsearch: [{name: a, mode: text, fields: [title]}, {name: b, mode: ngram, fields: [title]}]" + searchable, []string{"a text title override=language fuzzy=true", "b ngram title grams=2-3"}},
		"an open field":         {"languageOverride: free\nsearch: [{name: a, mode: text, fields: [free, extra.x.y, ref]}]" + searchable, []string{"a text free extra.x.y ref override=free fuzzy=true"}},
		"settings of words":     {"search: [{name: a, mode: text, fields: [title], text: {fuzziness: off, prefix: true, operator: and}}]" + searchable, []string{"a text title prefix=true all=true"}},
		"ngram":                 {german + "search: [{name: a, mode: ngram, fields: [title], ngram: {min: 1, max: 9}, async: true, autoRegenerate: true}]" + searchable, []string{"a ngram title grams=1-9 async=true auto=true"}},
		"ngram, one length":     {"search: [{name: a, mode: ngram, fields: [title], ngram: {min: 5}}, {name: b, mode: ngram, fields: [title], ngram: {max: 1}}]" + searchable, []string{"a ngram title grams=5-5", "b ngram title grams=1-1"}},
		"regex":                 {"search: [{name: a, mode: regex, fields: [title]}, {name: b, mode: regex, fields: [title], regex: {options: ''}}]" + searchable, []string{"a regex title options=i", "b regex title options="}},
		"weights":               {"search: [{name: a, mode: text, fields: [title, tags], score: {weights: {tags: 2.5}, minScore: 0.5}}]" + searchable, []string{"a text title tags*2.5 fuzzy=true minScore=0.5"}},
		"weights of defaults":   {"search: [{name: a, mode: text, score: {weights: {parts.name: 3}}}]" + searchable, []string{"a text title tags seo.title parts.name*3 parts.lang language fuzzy=true"}},
		"recency":               {"search: [{name: a, mode: text, fields: [title], score: {recency: {field: publishedAt, halfLife: 30d}}}]" + searchable, []string{"a text title fuzzy=true recency=publishedAt 720h0m0s 1"}},
		"recency of the record": {"search: [{name: a, mode: ngram, fields: [title], score: {recency: {field: createdAt, halfLife: 1h, weight: 2}}}]" + searchable, []string{"a ngram title grams=2-3 recency=createdAt 1h0m0s 2"}},
		"filter": {"search: [{name: a, mode: regex, fields: [title], filter: {active: true, publishedAt: {$gte: '2026-01-01T00:00:00Z'}, author: 650102030405060708090a0b}}]" + searchable, []string{
			`a regex title options=i filter={"active": {"$eq": true},"publishedAt": {"$gte": {"$date":{"$numberLong":"1767225600000"}}},"author": {"$eq": {"$oid":"650102030405060708090a0b"}}}`,
		}},
		"rrf": {"search: [{name: r, mode: rrf, rrf: {sources: [b, a], weights: {a: 2}}}, {name: a, mode: text, fields: [title]}, {name: b, mode: ngram, fields: [title]}]" + searchable, []string{
			"r rrf b*1 a*2 k=60 topK=100", "a text title fuzzy=true", "b ngram title grams=2-3",
		}},
		"eval": {"languageOverride: language\nsearch: [{name: a, mode: text, fields: [price, seo, title, _id, createdAt, photo, author], eval: '`$${ctx.doc.price} EUR`'}, {name: b, mode: ngram, fields: [free.x, title], eval: ctx.doc.title}]" + translated, []string{
			"a text price:en seo:en(de pt-BR) title:en(de pt-BR) _id:en createdAt:en photo:en author:en override=language fuzzy=true eval=price seo title _id createdAt photo author",
			"b ngram free.x(de pt-BR) title(de pt-BR) grams=2-3 eval=free.x title",
		}},
		"rrf with settings": {"search: [{name: a, mode: text, fields: [title]}, {name: r, mode: rrf, rrf: {sources: [a], k: 1, topK: 10000}}]" + searchable, []string{"a text title fuzzy=true", "r rrf a*1 k=1 topK=10000"}},

		"a text index":           {german + "indexes: [{key: ['$text:title', '$text:tags']}]" + searchable, []string{"text text title:de tags:de fuzzy=true auto=true"}},
		"text indexes":           {"languageOverride: title\nindexes: [{key: ['$text:title'], defaultLanguage: french, languageOverride: language}, {name: b, key: ['$text:tags', '$text:title']}, {key: [price], defaultLanguage: klingon}]" + searchable, []string{"text text title:fr tags override=language fuzzy=true auto=true"}},
		"of a field":             {"languageOverride: language\n" + strings.Replace(searchable, `type: "string[]"`, `type: "string[]", index: [text]`, 1), []string{"text text tags override=language fuzzy=true auto=true"}},
		"of both":                {"indexes: [{key: ['$text:title'], defaultLanguage: de}]" + strings.ReplaceAll(searchable, "name: title, type: string", "name: title, type: string, index: [text]"), []string{"text text title:de seo.title fuzzy=true auto=true"}},
		"beside search configs":  {"search: [{name: a, mode: regex, fields: [title]}]\nindexes: [{key: ['$text:title']}]" + searchable, []string{"a regex title options=i", "text text title fuzzy=true auto=true"}},
		"with their translation": {"indexes: [{key: ['$text:title']}]" + translated, []string{"text text title:en(de pt-BR) fuzzy=true auto=true"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, problems := loadItems(t, tt.config)
			if len(problems) > 0 {
				t.Fatal(strings.Join(lines(problems), "\n"))
			}
			var got []string
			for _, s := range c.Searches {
				got = append(got, shown(s))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for i, s := range c.Searches {
				if c.Search(s.Name) != s || i == 0 && c.Search("") != s {
					t.Errorf("%s is not found by its name", s.Name)
				}
			}
			if c.Search("nothing") != nil {
				t.Error("a search that is not there is found")
			}
		})
	}
}

// TestTextIndexes: what has a text index has an ordinary one only if it says so.
func TestTextIndexes(t *testing.T) {
	t.Parallel()
	for index, want := range map[string]string{
		"text": "", "text, sparse": "", "text, background": "", "single, text": "title_1", "text, unique": "title_1", "background": "title_1", "sparse": "title_1",
	} {
		c, problems := loadItems(t, "indexes: [{key: ['$text:tags'], name: t}]"+strings.Replace(searchable, "name: title, type: string", "name: title, type: string, index: ["+index+"]", 1))
		if len(problems) > 0 {
			t.Fatal(index, lines(problems))
		}
		var got []string
		for _, ix := range c.Indexes {
			got = append(got, ix.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: indexes %v, want %q", index, got, want)
		}
	}
}

// TestSearchProblems: what is wrong with search configs and text indexes, and where.
func TestSearchProblems(t *testing.T) {
	t.Parallel()
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	manyFields := "fields: [" + many(101, "{name: f%d, type: string},") + "]\npermissions: {public: {methods: {}}, user: {methods: {}}}"
	cases := map[string]string{
		"unknown field":                    "search: [{name: a, mode: text, fields: [titel]}]" + searchable,
		"no text":                          "search: [{name: a, mode: ngram, fields: [price, active]}]" + searchable,
		"objects":                          "search: [{name: a, mode: text, fields: [seo, parts, photo]}]" + searchable,
		"a relation":                       "search: [{name: a, mode: text, fields: [author]}]" + searchable,
		"system fields":                    "search: [{name: a, mode: text, fields: [createdBy, id]}]" + searchable,
		"positions":                        "search: [{name: a, mode: text, fields: [tags.0, parts.1.name]}]" + searchable,
		"a translation":                    "search: [{name: a, mode: text, fields: [_i18n.de.title]}]" + strings.Replace(searchable, "permissions:", "meta: {i18n: {languages: [en, de]}}\npermissions:", 1),
		"twice":                            "search: [{name: a, mode: text, fields: [title, title]}]" + searchable,
		"no fields":                        "search: [{name: a, mode: text}]\nfields: [{name: n, type: number}, {name: s, type: string, hidden: true}]\npermissions: {public: {methods: {}}, user: {methods: {}}}",
		"too many fields":                  "search: [{name: a, mode: text, fields: [" + many(101, "f%d,") + "]}]\n" + manyFields,
		"too many by default":              "search: [{name: a, mode: text}]\n" + manyFields,
		"too many searches":                "search: [" + many(17, "{name: s%d, mode: text},") + "]" + searchable,
		"of other modes":                   "search: [{name: a, mode: text, ngram: {}, regex: {}, rrf: {sources: [b]}}, {name: b, mode: ngram, text: {}}]" + searchable,
		"of those with indexes":            "search: [{name: a, mode: regex, score: {minScore: 1}, async: true, autoRegenerate: true}]" + searchable,
		"of none fused":                    "search: [{name: a, mode: text}, {name: r, mode: rrf, rrf: {sources: [a]}, fields: [title], filter: {active: true}, score: {}}]" + searchable,
		"weights":                          "search: [{name: a, mode: text, fields: [title, tags], score: {weights: {title: 0, tags: 1001, language: 2, titel: 1, seo.title: 1}}}]" + searchable,
		"negative scores":                  "search: [{name: a, mode: text, score: {minScore: -1, recency: {field: publishedAt, halfLife: 0, weight: -1}}}]" + searchable,
		"recency":                          "search: [{name: a, mode: text, score: {recency: {field: title, halfLife: 1d}}}, {name: b, mode: text, score: {recency: {field: parts.at, halfLife: 1d}}}, {name: c, mode: text, score: {recency: {field: publishAt, halfLife: 1d}}}]" + searchable,
		"hidden recency":                   "search: [{name: a, mode: text, score: {recency: {field: publishedAt, halfLife: 1d}}}]" + strings.Replace(searchable, "[secret]", "[publishedAt]", 1),
		"ngram":                            "search: [{name: a, mode: ngram, ngram: {min: 0, max: 21}}, {name: b, mode: ngram, ngram: {min: 3, max: 12}}, {name: c, mode: ngram, ngram: {min: 3, max: 2}}]" + searchable,
		"regex":                            "search: [{name: a, mode: regex, regex: {options: x, anchored: true}}]" + searchable,
		"languages":                        "defaultLanguage: klingon\nsearch: [{name: a, mode: text, text: {language: xx}}]" + searchable,
		"override":                         "languageOverride: lang" + searchable,
		"override of a number":             "languageOverride: price" + searchable,
		"override in a list":               "languageOverride: parts.lang" + searchable,
		"override by the id":               "languageOverride: id" + searchable,
		"override hidden":                  "languageOverride: secret" + searchable,
		"override hidden from some":        "languageOverride: seo.title" + searchable,
		"override hidden by an expression": "languageOverride: language" + strings.Replace(searchable, "{name: language, type: string}", "{name: language, type: string, hidden: {eval: 'true'}}", 1),
		"filters":                          "search: [{name: a, mode: text, filter: {activ: true}}, {name: b, mode: text, filter: {title: {$where: 1}}}, {name: c, mode: text, filter: {publishedAt: 5, $or: []}}, {name: d, mode: text, filter: {active: {$eq: {$var: now}}}}, {name: e, mode: text, filter: {ref.title: x}}]" + searchable,
		"sources":                          "search: [{name: a, mode: text}, {name: x, mode: regex}, {name: o, mode: rrf, rrf: {sources: [a]}}, {name: r, mode: rrf, rrf: {sources: [a, x, o, a], weights: {a: 0, b: 1, x: 1}}}]" + searchable,
		"no such sources":                  "search: [{name: a, mode: text}, {name: r, mode: rrf, rrf: {sources: [a, r, none]}}]" + searchable,
		"rrf bounds":                       "search: [{name: a, mode: text}, {name: r, mode: rrf, rrf: {sources: [a], k: 0, topK: 10001}}, {name: s, mode: rrf}]" + searchable,
		"half decoded":                     "search: [{name: a}, {mode: text, fields: [titel]}, {name: b, mode: magic, ngram: {}}, {name: r, mode: rrf, rrf: {sources: [a, b], weights: [1]}}, {name: x, mode: vector}, 5]" + searchable,
		"text keys among others":           "indexes: [{key: [price, '$text:title']}, {key: ['$text:tags', -price]}]" + searchable,
		"a unique text index":              "indexes: [{key: ['$text:title'], unique: true}, {name: b, key: ['$text:tags'], sparse: true}]" + searchable,
		"text indexes":                     "indexes: [{key: ['$text:titel', '$text:price'], defaultLanguage: xx, languageOverride: lang, renamedFrom: old}]" + searchable,
		"two overrides":                    "indexes: [{key: ['$text:title'], languageOverride: language}, {name: b, key: ['$text:tags'], languageOverride: title}]" + searchable,
		"of a number":                      strings.Replace(searchable, "type: number}", "type: number, index: [text]}", 1),
		"too many text indexes":            "indexes: [{key: [" + many(101, "'$text:f%d',") + "]}]\n" + manyFields,
		"eval without fields":              "search: [{name: a, mode: text, eval: ctx.doc.title}]" + searchable,
		"eval of other modes":              "search: [{name: a, mode: text, fields: [title]}, {name: b, mode: regex, fields: [title], eval: ctx.doc.title}, {name: r, mode: rrf, rrf: {sources: [a]}, eval: ctx.doc.title}]" + searchable,
		"eval of what is no field":         "search: [{name: a, mode: text, fields: [titel, tags.0, id, _i18n.de.title, title, title], eval: ctx.doc.title}]" + strings.Replace(searchable, "permissions:", "meta: {i18n: {languages: [en, de]}}\npermissions:", 1),
		"eval of too many fields":          "search: [{name: a, mode: text, eval: ctx.doc.f1, fields: [" + many(101, "f%d,") + "]}]\n" + manyFields,
		"eval with weights":                "search: [{name: a, mode: text, fields: [title], eval: ctx.doc.title, score: {weights: {title: 2}}}]" + searchable,
		"evals that do not compile":        "search: [{name: a, mode: text, fields: [title], eval: 'ctx.doc.'}, {name: b, mode: text, fields: [title], eval: none.js}, {name: c, mode: text, fields: [title], eval: 'let a = 1'}]" + searchable,
		"eval of what nobody sees":         "search: [{name: a, mode: text, fields: [code, margin.note, price], eval: ctx.doc.code}]" + searchable,
		"beside the search text":           "search: [{name: text, mode: regex, fields: [title]}]\nindexes: [{key: ['$text:title']}]" + searchable,
	}
	var golden strings.Builder
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		var got []string
		for range 3 { // maps must not show
			_, problems := loadItems(t, cases[name])
			if again := lines(problems); got != nil && !cmp.Equal(got, again) {
				t.Errorf("%s: then %v", name, again)
			} else {
				got = again
			}
		}
		if got == nil {
			t.Errorf("%s: no problem", name)
		}
		golden.WriteString(name + "\n")
		for _, line := range got {
			golden.WriteString("  " + strings.Replace(strings.TrimPrefix(line, "project.yaml:"), "collections[0].", "", 1) + "\n")
		}
	}
	const file = "testdata/search_problems.golden"
	if *update {
		if err := os.WriteFile(file, []byte(golden.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), golden.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFingerprint: what leads to another index is told apart, and nothing else.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	made := func(config string) string {
		c, problems := loadItems(t, config+searchable)
		if problems.Err() {
			t.Fatal(config, lines(problems))
		}
		return c.Search("a").Fingerprint(c.StoredField, c.FieldNames)
	}
	one := func(rest string) string {
		return made("search: [{name: a, mode: text, fields: [title, tags]" + rest + "}]\n")
	}
	plain := one("")
	for _, same := range []string{", async: true", ", score: {weights: {title: 3}, minScore: 1}", ", text: {prefix: true, operator: and, fuzziness: off}", ", meta: {a: 1}, autoRegenerate: true", ", text: {language: none}"} {
		if one(same) != plain {
			t.Errorf("%s: another index", same)
		}
	}
	seen := map[string]string{plain: "plain"}
	for _, config := range []string{
		"search: [{name: a, mode: text, fields: [title]}]\n",
		"search: [{name: a, mode: text, fields: [title, tags, ref]}]\n",
		"search: [{name: a, mode: ngram, fields: [title, tags]}]\n",
		"search: [{name: a, mode: ngram, fields: [title, tags], ngram: {max: 4}}]\n",
		"search: [{name: a, mode: ngram, fields: [title, tags], ngram: {min: 3}}]\n",
		"search: [{name: a, mode: text, fields: [title, tags], text: {language: de}}]\n",
		"search: [{name: a, mode: text, fields: [title, tags], filter: {active: true}}]\n",
		"search: [{name: a, mode: text, fields: [title, tags], filter: {active: false}}]\n",
		"search: [{name: a, mode: text, fields: [title, tags], score: {recency: {field: publishedAt, halfLife: 1d}}}]\n",
		"languageOverride: language\nsearch: [{name: a, mode: text, fields: [title, tags]}]\n",
		"search: [{name: a, mode: text, fields: [title, tags], eval: ctx.doc.title}]\n",
		"search: [{name: a, mode: text, fields: [title, tags], eval: ctx.doc.tags}]\n",
		"search: [{name: a, mode: text, fields: [tags, title], eval: ctx.doc.tags}]\n",
		"meta: {i18n: {languages: [none-x, de]}}\nsearch: [{name: a, mode: text, fields: [title, tags]}]\n",
	} {
		p := made(config)
		if other, taken := seen[p]; taken {
			t.Errorf("%s: the index of %s", config, other)
		}
		seen[p] = config
	}
}

// A config of many searches is refused as one problem, not one for each.
func TestManySearches(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("search: [")
	for i := range 20000 {
		fmt.Fprintf(&b, "{name: s%d, mode: text},", i)
	}
	b.WriteString("{name: r, mode: rrf, rrf: {sources: [")
	for i := range 20000 {
		fmt.Fprintf(&b, "s%d,", i)
	}
	b.WriteString("]}}]" + searchable)
	if _, problems := loadItems(t, b.String()); len(problems) != 1 {
		t.Errorf("%d problems, first %v", len(problems), problems[0])
	}
}
