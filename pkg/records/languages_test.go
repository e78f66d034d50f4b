package records_test

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

var translated = collections(`
name: items
meta: {i18n: {languages: [en, de, fr-CA]}}
fields:
  - {name: title, type: string, validator: {required: true, max: 10}, meta: {defaultValue: none}}
  - {name: slug, type: string, index: [unique, sparse]}
  - {name: code, type: string, meta: {i18n: false}}
  - {name: n, type: number}
  - {name: tags, type: "string[]"}
  - {name: seo, type: object, subFields: [{name: title, type: string, validator: required}, {name: score, type: number, hidden: true}]}
  - {name: data, type: object}
  - {name: parts, type: "object[]", subFields: [{name: name, type: string, validator: required}, {name: cost, type: number}]}
  - {name: fixed, type: string}
  - {name: secret, type: string, hidden: true}
indexes: [{key: [_i18n.de.title], unique: true, sparse: true}]
readonlyFields: [fixed]
permissions:
  public: {methods: {get: true}, hiddenFields: [parts.cost]}
  user: {methods: {get: true, post: {bulk: true}, put: {bulk: true}, delete: true}}
`)

func (w *world) speaking(who, lang string) *records.Call {
	c := w.call(who)
	c.Lang = lang
	return c
}

// normal is the JSON of a record as seen and stored give it, or an error as it is.
func normal(t *testing.T, text string) string {
	t.Helper()
	if !strings.HasPrefix(text, "{") {
		return text
	}
	return bare(t, []byte(text))
}

// A read in a language shows what is translated in its place, and what is not as it is.
func TestLangReads(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, translated)
		id := w.put(`{"title": "Tent", "n": 1, "tags": ["a"], "seo": {"title": "S", "score": 1}, "data": {"x": 1, "y": 2}, "parts": [{"name": "pole", "cost": 3}], "secret": "s",
			"_i18n": {"de": {"title": "Zelt", "seo": {"title": "D", "score": 2}, "data": {"x": 5}, "secret": "g"}, "fr-CA": {"tags": ["b"], "fixed": "F"}}}`)
		for _, tt := range []struct{ lang, sel, want string }{
			{"", "", `{"title":"Tent","n":1,"tags":["a"],"seo":{"title":"S"},"data":{"x":1,"y":2},"parts":[{"name":"pole"}],"_i18n":{"de":{"title":"Zelt","seo":{"title":"D"},"data":{"x":5}},"fr-CA":{"tags":["b"],"fixed":"F"}}}`},
			{"en", "", `{"title":"Tent","n":1,"tags":["a"],"seo":{"title":"S"},"data":{"x":1,"y":2},"parts":[{"name":"pole"}]}`},
			{"de", "", `{"title":"Zelt","n":1,"tags":["a"],"seo":{"title":"D"},"data":{"x":5},"parts":[{"name":"pole"}]}`},
			{"FR-ca", "", `{"title":"Tent","n":1,"tags":["b"],"seo":{"title":"S"},"data":{"x":1,"y":2},"parts":[{"name":"pole"}],"fixed":"F"}`},
			{"de", "title,seo.title", `{"title":"Zelt","seo":{"title":"D"}}`},
			{"de", "-data,-parts,-seo", `{"title":"Zelt","n":1,"tags":["a"]}`},
			{"", "_i18n.de.title", `{"_i18n":{"de":{"title":"Zelt"}}}`},
			{"", "_i18n.de.parts", `{}`},
			{"", "_i18n.de.secret", `unknown_field: unknown field: _i18n.de.secret`},
			{"", "_i18n.de.nope", `unknown_field: unknown field: _i18n.de.nope`},
			{"", "_i18n.it.title", `unknown_field: unknown field: _i18n.it.title`},
			{"", "_i18n.de.code", `unknown_field: unknown field: _i18n.de.code`},
			{"it", "", `unknown_language: unknown language: it; items has en, de, fr-CA`},
		} {
			rec, err := w.service.Get(t.Context(), w.speaking("public", tt.lang), id, records.GetParams{Select: tt.sel})
			got := show(err)
			if err == nil {
				got = seen(t, &rec)
			}
			if want := normal(t, tt.want); got != want {
				t.Errorf("lang=%s select=%s:\n%s\n%s", tt.lang, tt.sel, got, want)
			}
			page, err := w.service.List(t.Context(), w.speaking("public", tt.lang), query.Params{Select: tt.sel})
			listed := show(err)
			if err == nil {
				listed = seen(t, &page.Items[0])
			}
			if listed != got {
				t.Errorf("lang=%s select=%s: the list says %s, not %s", tt.lang, tt.sel, listed, got)
			}
		}
	})
}

// Filters and sorts name what is stored, and nothing of what is hidden.
func TestLangQueries(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, translated)
		w.put(`{"title": "B", "_i18n": {"de": {"title": "X", "seo": {"score": 3}}}}`)
		w.put(`{"title": "A", "_i18n": {"de": {"title": "Y"}}}`)
		w.put(`{"title": "C", "_i18n": {"de": {"secret": "s"}}}`)
		for filter, want := range map[string]string{
			`{}`:                                              "CXY",
			`{"_i18n.de.title": "Y"}`:                         "Y",
			`{"title": "A"}`:                                  "Y",
			`{"_i18n.de.title": {"$exists": false}}`:          "C",
			`{"_i18n.de.secret": "s"}`:                        "unknown_field: unknown field: _i18n.de.secret",
			`{"_i18n.de.seo.score": 3}`:                       "unknown_field: unknown field: _i18n.de.seo.score",
			`{"_i18n.de": {"$exists": true}}`:                 "not_comparable: _i18n.de can't be compared as a whole: name one of its fields",
			`{"_i18n": null}`:                                 "not_comparable: _i18n can't be compared as a whole: name one of its fields",
			`{"_i18n.de.seo": {"$exists": true}}`:             "X",
			`{"$or": [{"_i18n.de.nope": 1}, {"title": "A"}]}`: "unknown_field: unknown field: _i18n.de.nope",
		} {
			page, err := w.service.List(t.Context(), w.speaking("public", "de"), query.Params{Where: where(t, filter), Sort: "_i18n.de.title", Select: "title"})
			got := show(err)
			if err == nil {
				var titles strings.Builder
				for i := range page.Items {
					titles.WriteString(strings.Trim(strings.Split(seen(t, &page.Items[i]), `"title":"`)[1], `"}`))
				}
				got = titles.String()
			}
			if got != want {
				t.Errorf("%s: %s, want %s", filter, got, want)
			}
		}
	})
}

// Facets count what is stored, and nothing of what is hidden.
func TestLangFacets(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, translated)
		w.put(`{"title": "A", "_i18n": {"de": {"title": "X", "tags": ["u", "v"], "parts": [{"name": "p", "cost": 3}]}}}`)
		w.put(`{"title": "A", "_i18n": {"de": {"title": "Y", "secret": "s", "tags": ["v"]}}}`)
		w.put(`{"title": "B", "_i18n": {"de": {"secret": "s", "nope": "s"}, "it": {"title": "s"}}}`)
		for fields, want := range map[string]string{
			"title,_i18n.de.title": `{"facets":{"title":[{"value":"A","count":2},{"value":"B","count":1}],"_i18n.de.title":[{"value":"X","count":1},{"value":"Y","count":1}]},"window":3,"truncated":false}`,
			"_i18n.de.tags":        `{"facets":{"_i18n.de.tags":[{"value":"v","count":2},{"value":"u","count":1}]},"window":3,"truncated":false}`,
			"_i18n.de.parts.name":  `{"facets":{"_i18n.de.parts.name":[{"value":"p","count":1}]},"window":3,"truncated":false}`,
			"_i18n.fr-CA.title":    `{"facets":{"_i18n.fr-CA.title":[]},"window":3,"truncated":false}`,
			"_i18n.de.secret":      `unknown_field: unknown field: _i18n.de.secret`,
			"_i18n.de.parts.cost":  `unknown_field: unknown field: _i18n.de.parts.cost`,
			"_i18n.de.nope":        `unknown_field: unknown field: _i18n.de.nope`,
			"_i18n.de.code":        `unknown_field: unknown field: _i18n.de.code`,
			"_i18n.it.title":       `unknown_field: unknown field: _i18n.it.title`,
			"_i18n.de":             `not_comparable: _i18n.de can't be compared as a whole: name one of its fields`,
			"_i18n":                `not_comparable: _i18n can't be compared as a whole: name one of its fields`,
			"_i18n.de.parts":       `not_comparable: _i18n.de.parts can't be compared as a whole: name one of its fields`,
		} {
			if got := w.facets("public", fields, ""); got != want {
				t.Errorf("%s: %s\nwant %s", fields, got, want)
			}
		}
	})
}

// A relation leads to what the caller may read there, in the language of the call: also one inside of a translation.
func TestLangRelations(t *testing.T) {
	config := collections(`
name: items
meta: {i18n: {languages: [en, de]}}
fields:
  - {name: title, type: string}
  - {name: of, type: string, meta: {foreign: {collection: people, key: code}}}
  - {name: box, type: object, subFields: [{name: by, type: string, meta: {foreign: {collection: people, key: code}}}]}
permissions: {public: {methods: {get: {lookup: true}}}, user: {methods: {}}}
`, `
name: people
strictFields: true
meta: {i18n: {languages: [fr, de, it], default: fr}}
fields:
  - {name: code, type: string, index: [unique]}
  - {name: name, type: string}
  - {name: secret, type: string, hidden: true}
permissions: {public: {methods: {get: true}}, user: {methods: {}}}
`)
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, config)
		w.put(`{"title": "T", "of": "a", "box": {"by": "a"}, "_i18n": {"de": {"title": "Z", "box": {"by": "b"}}}}`)
		for i, text := range []string{
			`{"code": "a", "name": "Anne", "_i18n": {"de": {"name": "Anna", "secret": "s", "gone": 1}, "it": {"secret": "s"}}}`,
			`{"code": "b", "name": "Jean", "secret": "s", "_i18n": {"de": {"name": "Hans"}, "en": {"name": "s"}}}`,
		} {
			w.putIn("people", append(bson.D{{Key: "_id", Value: oid(byte(i))}}, doc(t, text)...))
		}
		for _, tt := range []struct{ lang, filter, lookup, want string }{
			{"", ``, "of", `"of":{"_i18n":{"de":{"name":"Anna"}},"code":"a","id":"010000000000000000000000","name":"Anne"}`},
			{"de", ``, "of", `"of":{"code":"a","id":"010000000000000000000000","name":"Anna"}`},
			{"en", ``, "of", `"of":{"code":"a","id":"010000000000000000000000","name":"Anne"}`},
			{"de", ``, "box.by", `"box":{"by":{"code":"b","id":"010000000000000000000001","name":"Hans"}}`},
			{"en", ``, "box.by", `"box":{"by":{"code":"a","id":"010000000000000000000000","name":"Anne"}}`},
			{"", `{"of._i18n.de.name": "Anna"}`, "", `"title":"T"`},
			{"de", `{"of.name": "Anne"}`, "", `"title":"Z"`},
			{"de", `{"of.name": "Anna"}`, "", `none`},
			{"", `{"_i18n.de.box.by.name": "Jean"}`, "", `"title":"T"`},
			{"", `{"_i18n.de.box.by.name": "Anne"}`, "", `none`},
			{"", `{"of._i18n.de.secret": "s"}`, "", `unknown_field: unknown field: of._i18n.de.secret`},
			{"", `{"of._i18n.de.gone": 1}`, "", `unknown_field: unknown field: of._i18n.de.gone`},
			{"", `{"of._i18n.en.name": "s"}`, "", `unknown_field: unknown field: of._i18n.en.name`},
			{"", `{"_i18n.de.box.by.secret": "s"}`, "", `unknown_field: unknown field: _i18n.de.box.by.secret`},
			{"", `{"of._i18n.it": {"$exists": true}}`, "", `not_comparable: of._i18n.it can't be compared as a whole: name one of its fields`},
			{"it", ``, "of", `unknown_language: unknown language: it; items has en, de`},
		} {
			page, err := w.service.List(t.Context(), w.speaking("public", tt.lang), query.Params{Where: where(t, tt.filter), Lookup: tt.lookup})
			got := show(err)
			if err == nil {
				if got = "none"; len(page.Items) > 0 {
					got = seen(t, &page.Items[0])
				}
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("lang=%s %s lookup=%s: %s\nwant %s", tt.lang, tt.filter, tt.lookup, got, tt.want)
			}
		}
	})
}

// A write in a language says what is different in it.
func TestLangWrites(t *testing.T) {
	for _, tt := range []struct {
		name, before, lang, body string
		mode                     records.UpdateMode
		want                     string // what is stored, or the error
	}{
		{"a field", `{"title":"T","n":1}`, "de", `{"title":"Z","n":2}`, records.Merge, `{"title":"T","n":2,"_i18n":{"de":{"title":"Z"}}}`},
		{"in the default language", `{"title":"T","_i18n":{"de":{"title":"Z"}}}`, "en", `{"title":"U"}`, records.Merge, `{"title":"U","_i18n":{"de":{"title":"Z"}}}`},
		{"without a language", `{"title":"T"}`, "", `{"_i18n":{"de":{"title":"Z"}}}`, records.Merge, `{"title":"T","_i18n":{"de":{"title":"Z"}}}`},
		{"null", `{"title":"T","_i18n":{"de":{"title":"Z"}}}`, "de", `{"title":null}`, records.Merge, `{"title":"T"}`},
		{"what shows anyway", `{"title":"T","n":1,"tags":["a"],"seo":{"title":"S","score":1}}`, "de", `{"title":"T","n":1,"tags":["a"],"seo":{"title":"S"}}`, records.Merge, `{"title":"T","n":1,"tags":["a"],"seo":{"title":"S","score":1}}`},
		{"a member", `{"title":"T","seo":{"title":"S","score":1}}`, "de", `{"seo":{"title":"D"}}`, records.Merge, `{"title":"T","seo":{"title":"S","score":1},"_i18n":{"de":{"seo":{"title":"D"}}}}`},
		{"a member of any object", `{"title":"T","data":{"x":1,"y":2}}`, "de", `{"data":{"x":3}}`, records.Merge, `{"title":"T","data":{"x":1,"y":2},"_i18n":{"de":{"data":{"x":3,"y":2}}}}`},
		{"a list as a whole", `{"title":"T","parts":[{"name":"a","cost":1}]}`, "de", `{"parts":[{"name":"b"}]}`, records.Merge, `{"title":"T","parts":[{"name":"a","cost":1}],"_i18n":{"de":{"parts":[{"name":"b"}]}}}`},
		{"another language stays", `{"title":"T","_i18n":{"fr-CA":{"title":"F"}}}`, "de", `{"title":"Z"}`, records.Merge, `{"title":"T","_i18n":{"de":{"title":"Z"},"fr-CA":{"title":"F"}}}`},
		{
			"replace", `{"title":"T","n":1,"seo":{"title":"S"},"_i18n":{"de":{"title":"Z","tags":["x"]},"fr-CA":{"title":"F"}}}`, "de", `{"title":"Y","code":"c"}`, records.Overwrite,
			`{"code":"c","title":"T","seo":{"title":"S"},"_i18n":{"de":{"title":"Y"},"fr-CA":{"title":"F"}}}`,
		},
		{"replace in the default language", `{"title":"T","n":1,"_i18n":{"de":{"title":"Z"}}}`, "en", `{"title":"Y"}`, records.Overwrite, `{"title":"Y","_i18n":{"de":{"title":"Z"}}}`},
		{"replace without a language", `{"title":"T","n":1,"_i18n":{"de":{"title":"Z"}}}`, "", `{"title":"Y"}`, records.Overwrite, `{"title":"Y"}`},
		{
			"patch", `{"title":"T","n":1,"tags":["a"]}`, "de", `[{"op":"test","path":"/title","value":"T"},{"op":"replace","path":"/title","value":"Z"},{"op":"add","path":"/tags/-","value":"b"}]`, records.JSONPatch,
			`{"title":"T","n":1,"tags":["a"],"_i18n":{"de":{"title":"Z","tags":["a","b"]}}}`,
		},
		{"patch of a translation", `{"title":"T","_i18n":{"de":{"title":"Z"}}}`, "de", `[{"op":"test","path":"/title","value":"Z"},{"op":"remove","path":"/title"}]`, records.JSONPatch, `{"title":"T"}`},
		{"patch in the default language", `{"title":"T","_i18n":{"de":{"title":"Z"}}}`, "en", `[{"op":"replace","path":"/title","value":"U"}]`, records.JSONPatch, `{"title":"U","_i18n":{"de":{"title":"Z"}}}`},

		{"hidden content stays", `{"title":"T","secret":"s","_i18n":{"de":{"secret":"g","seo":{"title":"D","score":2}}}}`, "de", `{"seo":null}`, records.Merge, `{"title":"T","secret":"s","_i18n":{"de":{"secret":"g","seo":{"score":2}}}}`},
		{"hidden content stays behind a replace", `{"title":"T","_i18n":{"de":{"secret":"g"}}}`, "", `{"title":"Y"}`, records.Overwrite, `{"title":"Y","_i18n":{"de":{"secret":"g"}}}`},
		{"readonly, as it was", `{"title":"T","fixed":"f"}`, "de", `{"fixed":"f"}`, records.Merge, `{"title":"T","fixed":"f"}`},
		{"the order tells nothing", `{"title":"T","_i18n":{"fr-CA":{"title":"F"}},"n":1}`, "de", `{"title":"Z","code":"c"}`, records.Merge, `{"title":"T","n":1,"code":"c","_i18n":{"de":{"title":"Z"},"fr-CA":{"title":"F"}}}`},

		{"readonly", `{"title":"T","fixed":"f"}`, "de", `{"fixed":"g"}`, records.Merge, `validation_failed: fixed: is read-only for you`},
		{"readonly by its path", `{"title":"T"}`, "", `{"_i18n":{"de":{"fixed":"g"}}}`, records.Merge, `validation_failed: _i18n.de.fixed: is read-only for you`},
		{"hidden", `{"title":"T"}`, "de", `{"secret":"g"}`, records.Merge, `validation_failed: secret: unknown field`},
		{"hidden inside", `{"title":"T"}`, "de", `{"seo":{"score":2}}`, records.Merge, `validation_failed: seo.score: unknown field`},
		{"hidden by its path", `{"title":"T"}`, "", `{"_i18n":{"de":{"secret":"g"}}}`, records.Merge, `validation_failed: _i18n.de.secret: unknown field`},
		{"undeclared", `{"title":"T"}`, "", `{"_i18n":{"de":{"nope":"g"}}}`, records.Merge, `validation_failed: _i18n.de.nope: unknown field`},
		{"not translated", `{"title":"T"}`, "", `{"_i18n":{"de":{"code":"g"}}}`, records.Merge, `validation_failed: _i18n.de.code: unknown field`},
		{"another language", `{"title":"T"}`, "", `{"_i18n":{"it":{"title":"g"}}}`, records.Merge, `validation_failed: _i18n.it: unknown field`},
		{"the default language", `{"title":"T"}`, "", `{"_i18n":{"en":{"title":"g"}}}`, records.Merge, `validation_failed: _i18n.en: unknown field`},
		{"a rule", `{"title":"T"}`, "de", `{"title":"far too long"}`, records.Merge, `validation_failed: title: must have at most 10 characters, has 12`},
		{"empty", `{"title":"T"}`, "de", `{"title":""}`, records.Merge, `validation_failed: title: is required and must not be empty`},
		{"a rule inside of a list", `{"title":"T"}`, "de", `{"parts":[{"cost":1}]}`, records.Merge, `validation_failed: parts.0.name: is required`},
		{"a type", `{"title":"T"}`, "", `{"_i18n":{"de":{"tags":"x"}}}`, records.Merge, `validation_failed: _i18n.de.tags: must be a list, is a string`},
		{"both at once", `{"title":"T"}`, "de", `{"_i18n":{"de":{"title":"Z"}}}`, records.Merge, `validation_failed: _i18n: can't be given together with lang, by which the fields themselves are those of the language`},
		{"a patch of both", `{"title":"T"}`, "de", `[{"op":"add","path":"/_i18n","value":{}}]`, records.JSONPatch, `validation_failed: _i18n: can't be given together with lang, by which the fields themselves are those of the language`},
		{"an unknown language", `{"title":"T"}`, "it", `{}`, records.Merge, `unknown_language: unknown language: it; items has en, de, fr-CA`},
	} {
		teststore.Each(t, func(t *testing.T, s store.Store) {
			t.Run(tt.name, func(t *testing.T) {
				w := newWorld(t, s, translated)
				id := w.put(tt.before)
				ch := records.Change{Mode: tt.mode}
				if tt.mode == records.JSONPatch {
					ch.Patch = []byte(tt.body)
				} else {
					ch.Body = doc(t, tt.body)
				}
				_, err := w.service.Update(t.Context(), w.speaking("alice", tt.lang), id, ch)
				got := w.stored(id)
				if err != nil {
					if got != bare(t, []byte(tt.before)) {
						t.Errorf("changed to %s", got)
					}
					got = show(err)
				}
				want := normal(t, tt.want)
				if got != want {
					t.Errorf("\n%s, want\n%s", got, want)
				}
				if tt.mode == records.Merge && tt.lang != "it" {
					res, berr := w.service.BulkUpdate(t.Context(), w.speaking("alice", tt.lang), where(t, `{}`), ch.Body)
					if berr != nil || err != nil && show(res.Items[0].Err) != show(err) || err == nil && (res.Items[0].Err != nil || w.stored(id) != want) {
						t.Errorf("in bulk: %v %v %s", berr, res.Items, w.stored(id))
					}
				}
			})
		})
	}
}

// A record may begin in any language, as far as its rules let it.
func TestLangCreate(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, translated)
		for _, tt := range []struct{ lang, body, want, stored string }{
			{"de", `{"title":"Z","n":1,"seo":{"title":"D"}}`, `{"n":1,"title":"Z","seo":{"title":"D"}}`, `{"n":1,"title":"none","_i18n":{"de":{"title":"Z","seo":{"title":"D"}}}}`},
			{"", `{"title":"T","_i18n":{"fr-CA":{"title":"F"},"de":{"title":"Y"}}}`, `{"title":"T","_i18n":{"de":{"title":"Y"},"fr-CA":{"title":"F"}}}`, `{"title":"T","_i18n":{"de":{"title":"Y"},"fr-CA":{"title":"F"}}}`},
			{"", `{"title":"T","_i18n":{"de":{}}}`, `{"title":"T"}`, `{"title":"T"}`},
			{"de", `{"title":"Y"}`, `unique: _i18n.de.title is already taken`, ``},
			{"de", `{"secret":"s"}`, `validation_failed: secret: unknown field`, ``},
			{"de", `{"fixed":"s"}`, `validation_failed: fixed: is read-only for you`, ``},
			{"de", `{"title":"far too long"}`, `validation_failed: title: must have at most 10 characters, has 12`, ``},
			{"de", `{"_i18n":{}}`, `validation_failed: _i18n: can't be given together with lang, by which the fields themselves are those of the language`, ``},
			{"it", `{"title":"Y"}`, `unknown_language: unknown language: it; items has en, de, fr-CA`, ``},
		} {
			res, err := w.service.Create(t.Context(), w.speaking("alice", tt.lang), doc(t, tt.body))
			got := show(err)
			if err == nil {
				got = bare(t, res.Record.AppendJSON(nil))
				if stored := w.stored(res.ID); stored != normal(t, tt.stored) {
					t.Errorf("%s is stored as\n%s, want\n%s", tt.body, stored, tt.stored)
				}
			}
			if got != normal(t, tt.want) {
				t.Errorf("lang=%s %s:\n%s, want\n%s", tt.lang, tt.body, got, tt.want)
			}
		}
	})
}

// What a language is for is kept from a caller as its fields are, and a caller learns nothing of it: not by its place, nor
// by whether it is there.
func TestLangHidden(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, translated)
		plain := w.put(`{"title": "T"}`)
		full := w.put(`{"title": "T", "secret": "s", "_i18n": {"de": {"secret": "g", "parts": [{"name": "a", "cost": 1}]}, "fr-CA": {"secret": "f"}}}`)
		for who, want := range map[string]string{"public": `"_i18n":{"de":{"parts":[{"name":"a"}]}}`, "alice": `"_i18n":{"de":{"parts":[{"cost":1,"name":"a"}]}}`} {
			rec, err := w.service.Get(t.Context(), w.call(who), full, records.GetParams{})
			if err != nil || !strings.Contains(seen(t, &rec), want) {
				t.Error(who, seen(t, &rec), err)
			}
			if rec, err = w.service.Get(t.Context(), w.call(who), plain, records.GetParams{}); err != nil || strings.Contains(seen(t, &rec), "_i18n") {
				t.Error(who, seen(t, &rec), err)
			}
		}
		page, err := w.service.List(t.Context(), w.speaking("admin", "de"), query.Params{Select: "secret", Where: where(t, `{"_i18n.fr-CA": {"$exists": true}}`)})
		if err != nil || len(page.Items) != 1 || !strings.Contains(seen(t, &page.Items[0]), `"secret":"g"`) {
			t.Error(page, err)
		}
	})
}

// A language of which the caller sees nothing is not there for a JSON Patch, as it is not there in reads.
func TestPatchesOfUnseenTranslations(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, translated)
		with, without := w.put(`{"title": "T", "_i18n": {"de": {"secret": "s"}}}`), w.put(`{"title": "T"}`)
		for _, patch := range []string{
			`[{"op": "replace", "path": "/_i18n/de/secret", "value": 1}]`, `[{"op": "test", "path": "/_i18n/de", "value": {}}]`,
			`[{"op": "remove", "path": "/_i18n/de"}]`, `[{"op": "add", "path": "/_i18n/de/title", "value": "Z"}]`, `[{"op": "copy", "from": "/_i18n", "path": "/data"}]`,
		} {
			var told [2]string
			for i, id := range []string{with, without} {
				_, err := w.service.Update(t.Context(), w.call("alice"), id, records.Change{Mode: records.JSONPatch, Patch: []byte(patch)})
				told[i] = show(err)
			}
			if told[0] != told[1] || !strings.Contains(told[0], "patch") {
				t.Errorf("%s: %s, and without a hidden translation %s", patch, told[0], told[1])
			}
		}
		if got := w.stored(with); !strings.Contains(got, `"secret":"s"`) {
			t.Errorf("the hidden translation is gone: %s", got)
		}
	})
}

// Hooks and expressions see a record as it is stored, but for the body, which is as it was sent.
func TestLangHooks(t *testing.T) {
	config := collections(`
name: items
meta: {i18n: {languages: [en, de]}}
fields:
  - {name: title, type: string, validator: {script: judge.js}}
  - {name: mood, type: string, hidden: {eval: "ctx.doc._i18n && ctx.doc._i18n.de.title === 'X?'"}}
hooks:
  post: {bind: {type: javascript, file: bind.js}}
  get: {read: {type: javascript, file: read.js}, return: {type: javascript, file: return.js}}
permissions: {public: {methods: {get: true}}, user: {methods: {get: true, post: true, put: true}}}
`)
	files := map[string]string{
		"judge.js":  "module.exports = (value) => value === 'bad' ? 'is bad' : undefined",
		"bind.js":   "module.exports = (ctx) => { ctx.data.title += '!' }",
		"read.js":   "module.exports = (ctx) => { const all = ctx.docs || [ctx.doc]; for (const d of all) if (d._i18n) d._i18n.de.title += '?' }",
		"return.js": "module.exports = (ctx) => { ctx.result.note = ctx.result.title; return ctx.result }",
	}
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newScripted(t, s, config, files)
		res, err := w.service.Create(t.Context(), w.speaking("alice", "de"), doc(t, `{"title": "Z", "mood": "m"}`))
		if err != nil || w.stored(res.ID) != normal(t, `{"_i18n":{"de":{"title":"Z!","mood":"m"}}}`) {
			t.Fatal(err, w.stored(res.ID))
		}
		rec, err := w.service.Get(t.Context(), w.speaking("public", "de"), res.ID, records.GetParams{})
		if err != nil || !strings.Contains(seen(t, &rec), `"title":"Z!?"`) || !strings.Contains(seen(t, &rec), `"note":"Z!?"`) || !strings.Contains(seen(t, &rec), `"mood":"m"`) {
			t.Error(err, seen(t, &rec))
		}
		if _, err := w.service.Update(t.Context(), w.speaking("alice", "de"), res.ID, records.Change{Body: doc(t, `{"title": "bad"}`)}); show(err) != "validation_failed: title: is bad" {
			t.Error(err)
		}
		x := w.put(`{"mood": "m", "_i18n": {"de": {"title": "X", "mood": "n"}}}`)
		if rec, err = w.service.Get(t.Context(), w.call("public"), x, records.GetParams{}); err != nil || strings.Contains(seen(t, &rec), "mood") {
			t.Error(err, seen(t, &rec))
		}
	})
}
