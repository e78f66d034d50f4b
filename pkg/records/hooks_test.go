package records_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// hooked is a project whose collection items has scripts at stages. Its other collection is notes, without any.
func hooked(t *testing.T, s store.Store, more string, stages map[string]string) *world {
	t.Helper()
	groups := map[string][]string{}
	files := map[string]string{}
	for stage, text := range stages {
		group, name, _ := strings.Cut(stage, ".")
		file := strings.ReplaceAll(stage, ".", "_") + ".js"
		groups[group] = append(groups[group], fmt.Sprintf("    %s: {type: javascript, file: %s}\n", name, file))
		files[file] = text
	}
	var config strings.Builder
	config.WriteString(`
collections:
- name: notes
  permissions: {public: {methods: {}}, user: {methods: {get: true, post: true}}}
  fields: [{name: text, type: string}, {name: n, type: number, index: [unique]}]
- name: items
  audit: {enabled: true}
  permissions:
    public: {methods: {get: true, post: true}, hiddenFields: [secret]}
    user: {methods: {get: true, post: {bulk: true}, put: {bulk: true}, delete: {bulk: true}}, readonlyFields: [slug], hiddenFields: [secret]}
  fields:
  - {name: title, type: string, validator: {max: 40}}
  - {name: slug, type: string}
  - {name: secret, type: string}
  - {name: n, type: number}
  - {name: seo, type: object, subFields: [{name: title, type: string}]}
` + more + "\n  hooks:\n")
	for group, lines := range groups {
		config.WriteString("   " + group + ":\n" + strings.Join(lines, ""))
	}
	return newScripted(t, s, config.String(), files)
}

// A stage runs where the table says, and in its order.
func TestStageOrder(t *testing.T) {
	t.Parallel()
	stages := map[string]string{}
	for _, g := range schema.HookGroups() {
		for _, stage := range g.Stages {
			if stage.Name == "file" { // refused until there are files
				continue
			}
			stages[g.Name+"."+stage.Name] = "module.exports = (ctx) => { if (ctx.stage !== '" + g.Name + "." + stage.Name + "') throw new Error(ctx.stage) }"
		}
	}
	s := teststore.Memory(t)
	for _, mode := range []string{"continue", "atomic"} {
		for _, each := range []string{"bulk", "each"} {
			w := hooked(t, s, "  bulk: {mode: "+mode+", hooks: "+each+"}", stages)
			id := w.create("alice", `{"title": "a"}`)
			if got, want := w.stages(), "post.bind, post.validate, post.handle, post.create, audit.return, post.return"; got != want {
				t.Errorf("create: %s, want %s", got, want)
			}
			ctx := t.Context()
			for _, tt := range []struct {
				name, want string
				do         func(c *records.Call) error
			}{
				{"get", "get.handle, get.read, get.return", func(c *records.Call) error {
					_, err := w.service.Get(ctx, c, id, records.GetParams{})
					return err
				}},
				{"list", "get.handle, get.read, get.return", func(c *records.Call) error {
					_, err := w.service.List(ctx, c, query.Params{})
					return err
				}},
				{"count", "", func(c *records.Call) error {
					_, err := w.service.Count(ctx, c, query.Where{})
					return err
				}},
				{"update", "put.bind, put.validate, put.update, audit.return, put.return", func(c *records.Call) error {
					_, err := w.service.Update(ctx, c, id, records.Change{Body: doc(t, `{"title": "b"}`)})
					return err
				}},
				{"patch", "put.bind, put.validate, put.update, audit.return, put.return", func(c *records.Call) error {
					_, err := w.service.Update(ctx, c, id, records.Change{Mode: records.JSONPatch, Patch: []byte(`[{"op": "replace", "path": "/title", "value": "c"}]`)})
					return err
				}},
				{"bulk create", map[string]string{
					"continue bulk": "post.bulkCreate, audit.return, audit.return, post.bulkReturn",
					"atomic bulk":   "post.bulkCreate, audit.return, audit.return, post.bulkReturn",
					"continue each": "post.bind, post.validate, post.handle, post.bind, post.validate, post.handle, post.bulkCreate, " +
						"post.create, audit.return, post.create, audit.return, post.return, post.return, post.bulkReturn",
					"atomic each": "post.bind, post.validate, post.handle, post.bind, post.validate, post.handle, post.bulkCreate, " +
						"post.create, post.create, audit.return, audit.return, post.return, post.return, post.bulkReturn",
				}[mode+" "+each], func(c *records.Call) error {
					_, err := w.service.BulkCreate(ctx, c, bson.A{doc(t, `{"title": "x", "n": 1}`), doc(t, `{"title": "y", "n": 1}`)})
					return err
				}},
				{"bulk update", map[string]string{
					"bulk": "put.bulkUpdate, audit.return, audit.return, put.bulkReturn",
					"each": "put.bind, put.validate, put.bind, put.validate, put.bulkUpdate, " + map[string]string{
						"continue": "put.update, audit.return, put.update, audit.return, ",
						"atomic":   "put.update, put.update, audit.return, audit.return, ",
					}[mode] + "put.return, put.return, put.bulkReturn",
				}[each], func(c *records.Call) error {
					_, err := w.service.BulkUpdate(ctx, c, where(t, `{"n": 1}`), doc(t, `{"n": 2}`))
					return err
				}},
				{"bulk delete", map[string]string{
					"bulk": "delete.bulkDelete, audit.return, audit.return, delete.bulkReturn",
					"each": "delete.bulkDelete, " + map[string]string{
						"continue": "delete.delete, audit.return, delete.delete, audit.return, ",
						"atomic":   "delete.delete, delete.delete, audit.return, audit.return, ",
					}[mode] + "delete.return, delete.return, delete.bulkReturn",
				}[each], func(c *records.Call) error {
					_, err := w.service.BulkDelete(ctx, c, where(t, `{"n": 2}`))
					return err
				}},
				{"delete", "delete.delete, audit.return, delete.return", func(c *records.Call) error {
					return deleted(w.service.Delete(ctx, c, id))
				}},
			} {
				if err := tt.do(w.call("alice")); err != nil {
					t.Fatalf("%s, %s, %s: %s", mode, each, tt.name, show(err))
				}
				if got := w.stages(); got != tt.want {
					t.Errorf("%s, %s, %s:\n%s\nwant\n%s", mode, each, tt.name, got, tt.want)
				}
			}
		}
	}
}

// A hook that fails before the write leaves nothing: no record, no entry of the audit log, and nothing that it wrote
// itself.
func TestFailureLeavesNothing(t *testing.T) {
	t.Parallel()
	const insert = "await db.collection('notes').insert({text: 'left behind'}); "
	failures := map[string]string{
		"thrown":    "throw ctx.error(402, 'not now', [{path: 'title', rule: 'r', message: 'm'}])",
		"exception": "null.x",
		"rejected":  "await Promise.reject(new Error('no'))",
	}
	teststore.Each(t, func(t *testing.T, s store.Store) {
		for _, stage := range []string{
			"post.bind", "post.validate", "post.handle", "post.create", "post.bulkCreate",
			"put.bind", "put.validate", "put.update", "put.bulkUpdate", "delete.delete", "delete.bulkDelete", "audit.return",
		} {
			for name, failure := range failures {
				if s.Name() == "mongodb" && name != "exception" {
					continue
				}
				for _, mode := range []string{"continue", "atomic"} {
					within := slices.Contains([]string{"post.create", "put.update", "delete.delete"}, stage) || mode == "atomic" && strings.Contains(stage, "bulk")
					text := "module.exports = async (ctx) => { "
					if within {
						text += insert
					}
					w := hooked(t, s, "  bulk: {mode: "+mode+", hooks: each}", map[string]string{stage: text + failure + " }"})
					for i := range 2 {
						w.put(fmt.Sprintf(`{"title": "t%d", "n": 1, "_rev": 1}`, i))
					}
					failsEverywhere(t, w, fmt.Sprintf("%s, %s, %s", stage, name, mode), stage, name == "thrown")
				}
			}
		}
	})
}

// failsEverywhere makes each write that a stage is part of, and sees that it changes nothing.
func failsEverywhere(t *testing.T, w *world, name, stage string, thrown bool) {
	t.Helper()
	ctx := t.Context()
	before, id := w.everything(), ""
	if page, err := w.service.List(ctx, w.call("alice"), query.Params{}); err == nil {
		id = page.Items[0].ID()
	}
	group, short, _ := strings.Cut(stage, ".")
	for verb, do := range map[string]func() ([]records.Item, error){
		"post one": func() ([]records.Item, error) {
			_, err := w.service.Create(ctx, w.call("alice"), doc(t, `{"title": "new"}`))
			return nil, err
		},
		"post bulk": func() ([]records.Item, error) {
			res, err := w.service.BulkCreate(ctx, w.call("alice"), bson.A{doc(t, `{"title": "new"}`), doc(t, `{"title": "new"}`)})
			return res.Items, err
		},
		"put one": func() ([]records.Item, error) {
			_, err := w.service.Update(ctx, w.call("alice"), id, records.Change{Body: doc(t, `{"title": "other"}`)})
			return nil, err
		},
		"put bulk": func() ([]records.Item, error) {
			res, err := w.service.BulkUpdate(ctx, w.call("alice"), where(t, `{"n": 1}`), doc(t, `{"title": "other"}`))
			return res.Items, err
		},
		"delete one": func() ([]records.Item, error) { return nil, deleted(w.service.Delete(ctx, w.call("alice"), id)) },
		"delete bulk": func() ([]records.Item, error) {
			res, err := w.service.BulkDelete(ctx, w.call("alice"), where(t, `{"n": 1}`))
			return res.Items, err
		},
	} {
		if g, how, _ := strings.Cut(verb, " "); group != "audit" && g != group || how == "one" && strings.HasPrefix(short, "bulk") {
			continue
		}
		items, err := do()
		if len(items) == 0 {
			items = []records.Item{{Err: err}}
		}
		for _, it := range items {
			e := errs.From(it.Err)
			switch {
			case e == nil:
				t.Errorf("%s, %s: no error", name, verb)
			case thrown && (e.Code != "script_error" || e.Status != 402 || e.Message != "not now" || len(e.Fields) != 1):
				t.Errorf("%s, %s: %+v", name, verb, e)
			case !thrown && (e.Code != "script_failed" || e.Kind != errs.Internal || e.Message != "a script of the project failed"):
				t.Errorf("%s, %s: %+v", name, verb, e)
			}
		}
		if after := w.everything(); after != before {
			t.Errorf("%s, %s: left\n%s\nwas\n%s", name, verb, after, before)
		}
		for _, left := range []string{"notes", "svc.audit"} {
			if n, err := w.collection(left).Count(ctx, nil, 0); err != nil || n != 0 {
				t.Errorf("%s, %s: left %d in %s (%v)", name, verb, n, left, err)
			}
		}
	}
}

// What a hook changes counts, and is checked.
func TestHooksChangeRecords(t *testing.T) {
	t.Parallel()
	hooksChange(t, "")
}

// TestS20HooksAreNoWayAround is row S20 for hooks: what a caller can't set stays so, whatever hooks do besides.
func TestS20HooksAreNoWayAround(t *testing.T) {
	t.Parallel()
	hooksChange(t, "S20")
}

// TestS60WhatGoesOutIsMasked is row S60: what a hook read with all rights goes out through the caller's mask.
func TestS60WhatGoesOutIsMasked(t *testing.T) {
	t.Parallel()
	hooksChange(t, "S60")
}

// TestS22NamesAreData is row S22 for hooks: names that mean something to JavaScript are refused in records, and what one
// run does to the prototypes is gone in the next.
func TestS22NamesAreData(t *testing.T) {
	t.Parallel()
	hooksChange(t, "S22")
	w := hooked(t, teststore.Memory(t), "", map[string]string{
		"post.bind": "module.exports = (ctx) => { ctx.data.n = ({}).polluted ? 1 : 0; Object.prototype.polluted = true; globalThis.polluted = true }",
	})
	for range 3 {
		if got := creates(`{"title": "A"}`)(w, ""); got != `{"n":0,"title":"A"} stored {"n":0,"title":"A"}` {
			t.Error(got)
		}
	}
}

// hooksChange runs the cases of a row, or those of none.
func hooksChange(t *testing.T, row string) {
	t.Helper()
	ran := 0
	for name, tt := range hookCases() {
		if of, _, _ := strings.Cut(name, ":"); of != row && (row != "" || strings.HasPrefix(of, "S") && len(of) == 3) {
			continue
		}
		ran++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := hooked(t, teststore.Memory(t), "", tt.stages)
			id := w.put(`{"title": "A", "slug": "old", "secret": "kept", "n": 1, "createdBy": "x", "_rev": 1}`)
			if got := tt.do(w, id); !strings.HasPrefix(got, tt.want) || tt.want != "script_failed" && got != tt.want {
				t.Errorf("%s\nwant\n%s", got, tt.want)
			}
		})
	}
	if ran == 0 {
		t.Error("no case")
	}
}

// hookCase is what scripts at stages make of an operation.
type hookCase struct {
	stages map[string]string
	do     func(w *world, id string) string
	want   string
}

func hookCases() map[string]hookCase {
	return map[string]hookCase{
		"bind sets what the caller can't": {
			map[string]string{"post.bind": "module.exports = (ctx) => { ctx.data.slug = ctx.data.title.toLowerCase(); ctx.data.secret = 's' }"},
			creates(`{"title": "A"}`), `{"slug":"a","title":"A"} stored {"secret":"s","slug":"a","title":"A"}`,
		},
		"S20: bind is no way around the guard": {
			map[string]string{"post.bind": "module.exports = (ctx) => { ctx.data.n = 1 }"},
			creates(`{"title": "A", "slug": "mine"}`), `validation_failed: slug: is read-only for you`,
		},
		"S20: nor for what is hidden": {
			map[string]string{"post.bind": "module.exports = (ctx) => ctx.data"},
			creates(`{"title": "A", "secret": "mine"}`), `validation_failed: secret: unknown field`,
		},
		"bind's values are checked": {
			map[string]string{"post.bind": "module.exports = (ctx) => ({title: 'x'.repeat(41)})"},
			creates(`{"title": "A"}`), `validation_failed: title: must have at most 40 characters, has 41`,
		},
		"bind gives no object": {
			map[string]string{"post.bind": "module.exports = (ctx) => 7"},
			creates(`{"title": "A"}`), `script_failed`,
		},
		"an update's bind sets what the caller can't": {
			map[string]string{"put.bind": "module.exports = (ctx) => { ctx.data.slug = ctx.previous.title + '-' + ctx.data.title; ctx.data.secret = 't' }"},
			updates(`{"title": "B"}`), `{"n":1,"slug":"A-B","title":"B"} stored {"n":1,"secret":"t","slug":"A-B","title":"B"}`,
		},
		"S20: an update's bind is no way around": {
			map[string]string{"put.bind": "module.exports = (ctx) => { ctx.data.n = 5 }"},
			updates(`{"slug": "mine"}`), `validation_failed: slug: is read-only for you`,
		},
		"S20: what is hidden stays": {
			map[string]string{"put.bind": "module.exports = (ctx) => ({...ctx.data, n: 5})"},
			updates(`{"title": "B"}`), `{"n":5,"slug":"old","title":"B"} stored {"n":5,"secret":"kept","slug":"old","title":"B"}`,
		},
		"validate adds problems": {
			map[string]string{"post.validate": "module.exports = (ctx) => ctx.doc.n > 3 ? [{path: 'n', message: 'too many'}, 'not today'] : undefined"},
			creates(`{"title": "A", "n": 4}`), `validation_failed: n: too many (and 1 more) [n script] [ script]`,
		},
		"validate sees both": {
			map[string]string{"put.validate": "module.exports = (ctx) => ctx.doc.n < ctx.previous.n ? 'must not shrink' : null"},
			updates(`{"n": 0}`), `validation_failed: must not shrink`,
		},
		"handle does something else": {
			map[string]string{"post.handle": "module.exports = (ctx) => ({id: 'x', title: ctx.doc.title + '!', secret: 'shown?'})"},
			creates(`{"title": "A"}`), `{"title":"A!"} stored nothing`,
		},
		"handle leaves it": {
			map[string]string{"post.handle": "module.exports = (ctx) => {}"},
			creates(`{"title": "A"}`), `{"title":"A"} stored {"title":"A"}`,
		},
		"create changes it last": {
			map[string]string{"post.create": "module.exports = (ctx) => { ctx.doc.slug = ctx.doc.id.length + '-' + ctx.doc._rev }"},
			creates(`{"title": "A"}`), `{"slug":"24-1","title":"A"} stored {"slug":"24-1","title":"A"}`,
		},
		"create is checked again": {
			map[string]string{"post.create": "module.exports = (ctx) => { ctx.doc.n = 'no number' }"},
			creates(`{"title": "A"}`), `script_failed`,
		},
		"create can't touch what the service sets": {
			map[string]string{"post.create": "module.exports = (ctx) => ({...ctx.doc, _rev: 7, createdBy: 'me', n: 1})"},
			func(w *world, _ string) string {
				res, err := w.service.Create(w.t.Context(), w.call("alice"), doc(w.t, `{"title": "A"}`))
				if err != nil {
					return show(err)
				}
				return fmt.Sprint(res.Record.Rev(), " ", strings.Contains(string(res.Record.AppendJSON(nil)), alice.Hex()))
			}, "1 true",
		},
		"update changes it last": {
			map[string]string{"put.update": "module.exports = (ctx) => { ctx.doc.slug = ctx.previous.n + '-' + ctx.doc.n }"},
			updates(`{"n": 2}`), `{"n":2,"slug":"1-2","title":"A"} stored {"n":2,"secret":"kept","slug":"1-2","title":"A"}`,
		},
		"delete refuses": {
			map[string]string{"delete.delete": "module.exports = (ctx) => { if (ctx.doc.n) throw ctx.error(409, 'in use') }"},
			func(w *world, id string) string {
				err := deleted(w.service.Delete(w.t.Context(), w.call("alice"), id))
				return show(err) + " " + w.stored(id)
			}, `script_error: in use {"n":1,"secret":"kept","slug":"old","title":"A"}`,
		},
		"return shapes the answer": {
			map[string]string{"post.return": "module.exports = (ctx) => ({title: 'thanks', hadSecret: 'secret' in ctx.result})"},
			creates(`{"title": "A"}`), `{"hadSecret":false,"title":"thanks"} stored {"title":"A"}`,
		},
		"S60: return is masked again": {
			map[string]string{"put.return": "module.exports = async (ctx) => await db.collection('items').findOne(ctx.id)"},
			updates(`{"n": 2}`), `{"n":2,"slug":"old","title":"A"} stored {"n":2,"secret":"kept","slug":"old","title":"A"}`,
		},
		"return fails, the write stands": {
			map[string]string{"post.return": "module.exports = (ctx) => { throw new Error('x') }"},
			creates(`{"title": "A"}`), `warning: the change was made, but a script behind it failed stored {"title":"A"}`,
		},
		"return refuses, the write stands": {
			map[string]string{"put.return": "module.exports = (ctx) => { throw ctx.error(500, 'mail is down') }"},
			updates(`{"n": 2}`), `warning: the change was made, but a script behind it gave an error: mail is down stored {"n":2,"secret":"kept","slug":"old","title":"A"}`,
		},
		"read adds what is computed": {
			map[string]string{"get.read": "module.exports = (ctx) => { for (const d of ctx.docs || [ctx.doc]) d.double = d.n * 2 }"},
			reads(records.GetParams{}), `{"double":2,"n":1,"slug":"old","title":"A"}`,
		},
		"read may drop and select": {
			map[string]string{"get.read": "module.exports = (ctx) => ctx.docs ? ctx.docs.filter(d => d.n) : ctx.doc"},
			reads(records.GetParams{Select: "n"}), `{"n":1}`,
		},
		"S60: what read brings in is masked": {
			map[string]string{"get.read": "module.exports = (ctx) => { for (const d of ctx.docs || [ctx.doc]) d.secret = 'other' }"},
			reads(records.GetParams{}), `{"n":1,"slug":"old","title":"A"}`,
		},
		"handle replaces the read": {
			map[string]string{"get.handle": "module.exports = (ctx) => ctx.id ? {id: ctx.id, title: 'made', secret: 's'} : [{id: 'y', title: 'made', secret: 's'}]"},
			reads(records.GetParams{}), `{"title":"made"}`,
		},
		"handle finds nothing": {
			map[string]string{"get.handle": "module.exports = (ctx) => ctx.id ? null : []"},
			reads(records.GetParams{}), `not_found: not found`,
		},
		"get.return is masked again": {
			map[string]string{"get.return": "module.exports = async (ctx) => { for (const r of ctx.result.items || [ctx.result]) { r.secret = 's'; r.seen = Object.keys(r).length } }"},
			reads(records.GetParams{}), `{"n":1,"seen":7,"slug":"old","title":"A"}`,
		},
		"S22: names are data only": {
			map[string]string{"post.bind": `module.exports = (ctx) => JSON.parse('{"__proto__": {"admin": true}, "title": "x"}')`},
			creates(`{"title": "A"}`), `validation_failed: __proto__: the field name __proto__ is reserved; choose another`,
		},
		"state is handed on": {
			map[string]string{
				"post.bind": "module.exports = (ctx) => { ctx.state.n = 40 }", "post.validate": "module.exports = (ctx) => { ctx.state.n += 1; ctx.state.list = [1] }",
				"post.create": "module.exports = (ctx) => { ctx.doc.n = ctx.state.n + ctx.state.list[0] }",
			},
			creates(`{"title": "A"}`), `{"n":42,"title":"A"} stored {"n":42,"title":"A"}`,
		},
	}
}

func told(w *world, res records.Written, err error) string {
	switch {
	case err != nil:
		return show(err)
	case res.Warning != "":
		return "warning: " + res.Warning
	}
	return seen(w.t, res.Record)
}

func creates(body string) func(w *world, id string) string {
	return func(w *world, _ string) string {
		res, err := w.service.Create(w.t.Context(), w.call("alice"), doc(w.t, body))
		if err != nil {
			return show(err)
		}
		if len(res.ID) != 24 {
			return told(w, res, err) + " stored nothing"
		}
		return told(w, res, err) + " stored " + w.stored(res.ID)
	}
}

func updates(body string) func(w *world, id string) string {
	return func(w *world, id string) string {
		res, err := w.service.Update(w.t.Context(), w.call("alice"), id, records.Change{Body: doc(w.t, body)})
		if err != nil {
			return show(err)
		}
		return told(w, res, err) + " stored " + w.stored(id)
	}
}

// reads gives what a single read and a list both give.
func reads(p records.GetParams) func(w *world, id string) string {
	return func(w *world, id string) string {
		rec, err := w.service.Get(w.t.Context(), w.call("alice"), id, p)
		if err != nil {
			return show(err)
		}
		one := bare(w.t, rec.AppendJSON(nil))
		page, err := w.service.List(w.t.Context(), w.call("alice"), query.Params{Select: p.Select})
		if err != nil {
			return show(err)
		}
		if len(page.Items) != 1 {
			return fmt.Sprint(len(page.Items), " in the list")
		}
		if many := bare(w.t, page.Items[0].AppendJSON(nil)); many != one {
			return one + " alone, in the list " + many
		}
		return one
	}
}

// The envelope of a list is the hook's to add to.
func TestReturnOfAList(t *testing.T) {
	t.Parallel()
	w := hooked(t, teststore.Memory(t), "", map[string]string{
		"get.return": "module.exports = (ctx) => ({items: ctx.result.items.slice(1), sum: ctx.result.items.reduce((s, r) => s + r.n, 0), total: 7})",
	})
	for i := range 3 {
		w.put(fmt.Sprintf(`{"title": "t", "n": %d}`, i))
	}
	page, err := w.service.List(t.Context(), w.call("alice"), query.Params{})
	if err != nil {
		t.Fatal(show(err))
	}
	if got := string(page.AppendExtra(nil)); got != `,"sum":3` || len(page.Items) != 2 || page.Total != 7 {
		t.Errorf("%s, %d items, total %d", got, len(page.Items), page.Total)
	}
}

// S61: a chain of hooks that lead to hooks breaks, and leaves nothing.
func TestS61ChainOfHooks(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := hooked(t, s, "", map[string]string{
			"post.create": "module.exports = async (ctx) => { await db.collection('items').insert({title: 'again', n: (ctx.doc.n || 0) + 1}) }",
		})
		_, err := w.service.Create(t.Context(), w.call("alice"), doc(t, `{"title": "first"}`))
		if e := errs.From(err); e == nil || e.Code != "script_failed" {
			t.Errorf("%v", err)
		}
		if got := strings.Count(w.stages(), "post.create"); got != 5 {
			t.Errorf("%d hooks ran, want 5", got)
		}
		if got := w.everything(); got != "" {
			t.Errorf("left %s", got)
		}
	})
}

// A hook's time is over when it is over.
func TestHookTimeout(t *testing.T) {
	t.Parallel()
	w := hooked(t, teststore.Memory(t), "", map[string]string{"post.create": "module.exports = () => { for (;;); }"})
	for _, list := range w.project.Collections["items"].Hooks {
		list[0].Timeout = 50_000_000
	}
	_, err := w.service.Create(t.Context(), w.call("alice"), doc(t, `{"title": "a"}`))
	if e := errs.From(err); e == nil || e.Kind != errs.Timeout || e.Code != "script_timeout" {
		t.Errorf("%v", err)
	}
	if got := w.everything(); got != "" {
		t.Errorf("left %s", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.service.Create(ctx, w.call("alice"), doc(t, `{"title": "a"}`)); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("canceled: %v", err)
	}
}
