package records_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

const scriptedNotes = `
collections:
  - name: notes
    meta: {i18n: {languages: [en, de]}}
    permissions:
      public: {methods: {get: {allow: true, count: false}}, filter: {state: open}, hiddenFields: [secret]}
      user: {methods: {get: {allow: true, count: true}}}
    fields:
      - {name: title, type: string}
      - {name: body, type: string}
      - {name: secret, type: string}
      - {name: state, type: string}
      - {name: rank, type: number}
    search:
      - {name: main, mode: text, fields: [title, body, secret], score: {weights: {title: 2}}}
      - {name: pattern, mode: regex, fields: [title]}
      - {name: both, mode: rrf, rrf: {sources: [main], topK: 2}}
      - {name: hidden, mode: text, fields: [secret]}
  - name: plain
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
`

// Scripts find what searches find: all of it as the service, and as the caller what these would.
func TestSearchOfScripts(t *testing.T) {
	t.Parallel()
	const titles = `const titles = (list) => list.map((r) => r.title).join(','); `
	tests := []struct{ name, who, text, want string }{
		{"as the service", "public", `return titles(await search.find('notes', 'fox'))`, `"Red fox,Foxes shut,Blue bird"`},
		{"as the caller", "public", `return titles(await search.find('notes', 'fox', {asUser: true}))`, `"Red fox,Blue bird"`},
		{"db finds the same", "public", `return [titles(await db.collection('notes').find({}, {q: 'fox'})), titles(await db.collection('notes', {asUser: true}).find({}, {q: 'fox'}))]`, `["Red fox,Foxes shut,Blue bird","Red fox,Blue bird"]`},
		{"what is hidden as the service", "public", `return (await search.find('notes', 'badger', {sort: 'rank'})).map((r) => [r.title, r.secret])`, `[["Foxes shut","badger"],["Red fox","badger"]]`},
		{"what is hidden as the caller", "public", `return [await search.find('notes', 'badger', {asUser: true}), (await search.find('notes', 'red', {asUser: true})).map((r) => [r.title, r.secret])]`, `[[],[["Red fox",null]]]`},
		{"a hidden search", "public", `return await search.find('notes', 'badger', {asUser: true, name: 'hidden'})`, `unknown_search: search.find: unknown search: hidden; notes has main, pattern, both`},
		{"a hidden search as the service", "public", `return await search.count('notes', 'badger', {name: 'hidden'})`, `2`},
		{"a filter", "public", `return titles(await search.find('notes', 'fox', {filter: {rank: {$gte: 2}}}))`, `"Red fox,Foxes shut"`},
		{"a page", "public", `return titles(await search.find('notes', 'fox', {limit: 1, offset: 1}))`, `"Foxes shut"`},
		{"sorted", "public", `return titles(await search.find('notes', 'fox', {sort: 'rank', select: ['title', 'rank']}))`, `"Blue bird,Foxes shut,Red fox"`},
		{"selected", "public", `return Object.keys((await search.find('notes', 'red', {select: ['title']}))[0])`, `["_id","title","_score"]`},
		{"a pattern", "public", `return titles(await search.find('notes', '^blue|fox$', {name: 'pattern', sort: 'title'}))`, `"Blue bird,Red fox"`},
		{"fused", "public", `return [titles(await search.find('notes', 'fox', {name: 'both'})), titles(await search.find('notes', 'fox', {name: 'both', asUser: true}))]`, `["Red fox,Foxes shut","Red fox,Blue bird"]`},
		{"marked", "public", `return (await search.find('notes', 'snow', {highlight: true}))[0]._highlights`, `{"body":["A fox in the &lt;b&gt;<mark>snow</mark>&lt;/b&gt;"]}`},
		{"marked as the caller", "public", `return (await search.find('notes', 'fox', {highlight: true, asUser: true}))[0]._highlights`, `{"title":["Red <mark>fox</mark>"],"body":["A <mark>fox</mark> in the &lt;b&gt;snow&lt;/b&gt;"]}`},
		{"why", "public", `const [r] = await search.find('notes', 'snow', {explain: true}); return [r._score > 0, typeof r._explain, r._highlights]`, `[true,"object",null]`},
		{"the best one", "public", `return (await db.collection('notes').findOne({}, {q: 'fox'})).title`, `"Red fox"`},
		{"in a language", "public", `return titles(await search.find('notes', 'vogel', {lang: 'de'})) + titles(await search.find('notes', 'vogel'))`, `"Blauer Vogel"`},
		{"in no language", "public", `return await search.find('notes', 'fox', {lang: 'fr'})`, `unknown_language: search.find: unknown language: fr; notes has en, de`},
		{"counted", "public", `return [await search.count('notes', 'fox'), await search.count('notes', 'fox', {filter: {state: 'open'}}), await db.collection('notes').count({}, {q: 'fox', qName: 'main'})]`, `[3,2,3]`},
		{"counted as the caller", "alice", `return await search.count('notes', 'fox', {asUser: true, filter: {state: 'open'}})`, `2`},
		{"may not count", "public", `return await search.count('notes', 'fox', {asUser: true})`, `permission_denied: search.count: permission denied`},
		{"no words", "public", `return await search.find('notes', ' ')`, `bad_argument: search.find: q must be the words to look for: leave it out, or call find, to look for none`},
		{"nothing but what must not be there", "public", `return await search.find('notes', '-fox')`, `bad_search: search.find: q has no word to look for`},
		{"no q", "public", `try { await search.find('notes') } catch (e) { return e.name + ': ' + e.message }`, `"TypeError: search.find takes a collection, and the words to look for"`},
		{"a filter with what has no value", "public", `try { await search.find('notes', 'fox', {filter: {state: ctx.none}}) } catch (e) { return e.name }`, `"TypeError"`},
		{"no such option", "public", `return await search.find('notes', 'fox', {topK: 1})`, `bad_argument: search.find: unknown option topK; there are sort, limit, offset, select, lookup, q, qName, highlight, explain and lang`},
		{"no such option of a count", "public", `return await search.count('notes', 'fox', {limit: 1})`, `bad_argument: search.count: unknown option limit; there are q, qName and lang`},
		{"an option of another type", "public", `return await search.find('notes', 'fox', {highlight: 'yes'})`, `bad_argument: search.find: highlight must be true or false`},
		{"marks without words", "public", `return await db.collection('notes').find({}, {highlight: true})`, `bad_parameter: db.find: highlight and explain need q, the words to look for`},
		{"no search", "public", `return await search.find('plain', 'fox')`, `no_search: search.find: plain has no search: leave q out, or use filter`},
		{"no collection", "public", `return await search.find('users', 'fox')`, `collection_not_found: search.find: the project has no collection "users"`},
		{"nothing else", "public", `return typeof search.aggregate`, `"undefined"`},
		{"not caught, as the service", "public", `!return await search.find('notes', 'fox', {name: 'none'})`, `script_failed: a script of the project failed`},
		{"not caught, as the caller", "public", `!return await search.find('notes', 'fox', {name: 'none', asUser: true})`, `unknown_search: unknown search: none; notes has main, pattern, both`},
		{"what was written before", "public", `const c = db.collection('notes'); const r = await c.insert({title: 'quokka'}); const n = [await search.count('notes', 'quokka')]; await c.delete(r.id); return [...n, await search.count('notes', 'quokka')]`, `[1,0]`},
		{
			"in a transaction", "public", `const seen = []; const c = db.collection('notes'); const old = await c.insert({title: 'wombat'});
			await db.transaction(async (tx) => { const c = tx.collection('notes'); await c.insert({title: 'wombat two'}); await c.delete(old.id); seen.push((await c.find({}, {q: 'wombat'})).length) });
			const [r] = await search.find('notes', 'wombat'); await c.delete(r.id); return [...seen, r.title]`, `[0,"wombat two"]`,
		},
	}
	var config strings.Builder
	config.WriteString(scriptedNotes)
	files := map[string]string{}
	for i, x := range tests {
		text, uncaught := strings.CutPrefix(x.text, "!")
		code := `module.exports = async (ctx) => { const run = async () => { ` + titles + text + ` };
			const out = await run().then((v) => JSON.stringify(v), (e) => { if (e.code && ` + strconv.FormatBool(!uncaught) + `) return e.code + ': ' + e.message; throw e }); return {items: [], out} };`
		fmt.Fprintf(&config, "  - {name: run%d, permissions: {public: {methods: {get: true}}, user: {methods: {get: true}}}, hooks: {get: {handle: {type: javascript, file: run%d.js}}}}\n", i, i)
		files[fmt.Sprintf("run%d.js", i)] = code
	}
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newScripted(t, s, config.String(), files)
		e := w.searched()
		for _, note := range []string{
			`{"title": "Red fox", "body": "A fox in the <b>snow</b>", "secret": "badger", "state": "open", "rank": 3}`,
			`{"title": "Blue bird", "body": "The fox watches it", "state": "open", "rank": 1, "_i18n": {"de": {"title": "Blauer Vogel"}}}`,
			`{"title": "Foxes shut", "secret": "badger", "state": "closed", "rank": 2}`,
		} {
			if _, err := w.service.Create(t.Context(), w.in("notes", "admin"), doc(t, note)); err != nil {
				t.Fatal(show(err))
			}
		}
		if err := e.Settle(t.Context(), w.project); err != nil {
			t.Fatal(err)
		}
		for i, x := range tests {
			page, err := w.service.List(t.Context(), w.in(fmt.Sprintf("run%d", i), x.who), query.Params{})
			got := ""
			if err != nil {
				got = errs.From(err).Code + ": " + errs.From(err).Message
			} else {
				for _, m := range page.Extra {
					got = fmt.Sprint(m.Value)
				}
			}
			if got != x.want {
				t.Errorf("%s: %s\nwant %s", x.name, got, x.want)
			}
		}
	})
}

// What a hook writes is found when its write is done, and before by nobody.
func TestHookLooksForWhatItWrites(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newScripted(t, s, `
collections:
  - name: items
    permissions: {public: {methods: {get: true}}, user: {methods: {post: true}}}
    fields: [{name: title, type: string}, {name: alike, type: number}]
    search: [{name: main, mode: text, fields: [title]}]
    hooks: {post: {create: {type: javascript, file: alike.js}}}
`, map[string]string{"alike.js": `module.exports = async (ctx) => {
  if (ctx.doc.alike === -1) return
  await db.collection('items').insert({title: 'a copy of ' + ctx.doc.title, alike: -1})
  ctx.doc.alike = await search.count('items', ctx.doc.title, {filter: {alike: {$gte: 0}}})
}`})
		if err := w.searched().Settle(t.Context(), w.project); err != nil {
			t.Fatal(err)
		}
		for want := range 2 {
			res, err := w.service.Create(t.Context(), w.call("admin"), bson.D{{Key: "title", Value: "heron"}})
			if err != nil {
				t.Fatal(show(err))
			}
			if got := bare(t, res.Record.AppendJSON(nil)); got != fmt.Sprintf(`{"alike":%d,"title":"heron"}`, want) {
				t.Errorf("the record of %d: %s", want, got)
			}
		}
		if got, _, err := w.answerIn("items", "public", q("heron")); err != nil || strings.Count(got, "heron") != 4 {
			t.Errorf("%s, %v", got, err)
		}
	})
}
