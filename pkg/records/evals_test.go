package records_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// judged has fields that expressions decide about, a filter that a script makes, and a validator that is one.
func judged(t *testing.T) *world {
	t.Helper()
	return newScripted(t, teststore.Memory(t), `
collections:
- name: items
  permissions:
    public: {methods: {get: true}, filter: {type: javascript, file: public.js}}
    user: {methods: {get: true, post: {bulk: true}, put: {bulk: true}, delete: true}, filter: {type: javascript, file: user.ts}}
    token:none: {methods: {get: true}, filter: {type: javascript, file: none.js}}
    token:throws: {methods: {get: true}, filter: {type: javascript, file: throws.js}}
    token:slow: {methods: {get: true}, filter: {type: javascript, file: slow.js, timeout: 30}}
    token:db: {methods: {get: true}, filter: {type: javascript, file: reaches.js}}
  fields:
  - {name: title, type: string, validator: {script: title.js}}
  - {name: pay, type: number, hidden: {eval: "!ctx.user || ctx.user.name !== 'bob'"}}
  - {name: fixed, type: string, readonly: {eval: "ctx.method === 'PUT'"}}
  - {name: note, type: string, hidden: {eval: own.js}, readonly: {eval: "ctx.doc.locked"}}
  - {name: open, type: string, hidden: {eval: "null.x"}}
  - {name: locked, type: boolean}
  - {name: lines, type: "object[]", subFields: [{name: a, type: string}, {name: cost, type: number, hidden: {eval: "ctx.doc.locked"}}]}
`, map[string]string{
		"public.js":  "module.exports = (ctx) => ({locked: {$ne: true}})",
		"user.ts":    "export default (ctx: any) => ctx.method === 'DELETE' ? {createdBy: {$var: 'user.id'}} : {}",
		"none.js":    "module.exports = (ctx) => undefined",
		"throws.js":  "module.exports = (ctx) => { throw new Error('no') }",
		"slow.js":    "module.exports = (ctx) => { for (;;); }",
		"reaches.js": "module.exports = async (ctx) => { await db.collection('items').find(); return {} }",
		"own.js":     "module.exports = (ctx) => !ctx.user || ctx.doc.createdBy !== ctx.user.id",
		"title.js":   "module.exports = (value, ctx) => { if (value === ctx.doc.note) return 'is the same as the note'; if (value === 'boom') null.x }",
	})
}

func TestFiltersOfScripts(t *testing.T) {
	t.Parallel()
	w := judged(t)
	id := w.create("alice", `{"title": "a"}`)
	w.create("alice", `{"title": "b", "locked": true}`)
	for who, want := range map[string]string{
		"public": "1", "alice": "2", "admin": "2",
		"token:none": "permission_denied: permission denied", "token:throws": "permission_denied: permission denied", "token:db": "permission_denied: permission denied",
		"token:slow": "script_timeout: a script of the project took too long",
	} {
		page, err := w.service.List(t.Context(), w.call(who), query.Params{})
		got, _, _ := strings.Cut(show(err), " a script")
		if err == nil {
			got = strconv.Itoa(len(page.Items))
		}
		if !strings.HasPrefix(got, strings.SplitN(want, " a script", 2)[0]) {
			t.Errorf("%s: %s, want %s", who, got, want)
		}
	}
	if err := deleted(w.service.Delete(t.Context(), w.call("bob"), id)); show(err) != "not_found: not found" {
		t.Errorf("bob deletes: %s", show(err))
	}
	x := w.service.Explain(t.Context(), w.call("admin"), as("public"), access.Get)
	if x.Err != nil || x.Grant.Filter == nil || !strings.Contains(x.Reason(), "public.js") || x.Grant.Unsure.Paths()[0] != "lines.cost" {
		t.Errorf("%+v %s %v", x, x.Reason(), x.Grant.Unsure.Paths())
	}
	if got := fmt.Sprint(x.Grant.Hidden.Paths()); got != "[open pay]" {
		t.Errorf("hidden: %s", got)
	}
	if want := "db.find is not there in filters, validators and expressions: they have env, crypto and console"; !strings.Contains(w.log.String(), want) {
		t.Errorf("the log does not say %q", want)
	}
}

func TestFieldsByExpressions(t *testing.T) {
	t.Parallel()
	w := judged(t)
	const body = `{"title": "t", "fixed": "f", "note": "n", "lines": [{"a": "x", "cost": 1}]}`
	mine := w.create("alice", body)
	foreign := w.create("bob", `{"title": "t", "pay": 7, "note": "bobs"}`)
	locked := w.put(`{"title": "t", "locked": true, "note": "old", "createdBy": "` + alice.Hex() + `", "_rev": 1}`)
	get := func(who, id string) string {
		rec, err := w.service.Get(t.Context(), w.call(who), id, records.GetParams{})
		if err != nil {
			return show(err)
		}
		return bare(t, rec.AppendJSON(nil))
	}
	put := func(who, id, body string) string {
		res, err := w.service.Update(t.Context(), w.call(who), id, records.Change{Body: doc(t, body)})
		return told(w, res, err)
	}
	list := func(who string, p query.Params) string {
		page, err := w.service.List(t.Context(), w.call(who), p)
		if err != nil {
			return show(err)
		}
		var out []string
		for _, rec := range page.Items {
			out = append(out, bare(t, rec.AppendJSON(nil)))
		}
		return strings.Join(out, " ")
	}
	for _, tt := range []struct{ name, got, want string }{
		{"one's own", get("alice", mine), `{"fixed":"f","lines":[{"a":"x","cost":1}],"note":"n","title":"t"}`},
		{"another's", get("bob", mine), `{"fixed":"f","lines":[{"a":"x","cost":1}],"title":"t"}`},
		{"nobody's", get("public", foreign), `{"title":"t"}`},
		{"by name", get("bob", foreign), `{"note":"bobs","pay":7,"title":"t"}`},
		{"everything", get("admin", foreign), `{"note":"bobs","pay":7,"title":"t"}`},
		{"each by itself", list("alice", query.Params{}), `{"fixed":"f","lines":[{"a":"x","cost":1}],"note":"n","title":"t"} {"title":"t"} {"locked":true,"note":"old","title":"t"}`},
		{"a filter names what is hidden on some", list("alice", query.Params{Where: where(t, `{"note": "n"}`)}), `unknown_field: unknown field: note`},
		{"a sort does", list("alice", query.Params{Sort: "lines.cost"}), `unknown_field: unknown field: lines.cost`},
		{"a select does", list("alice", query.Params{Select: "note"}), `unknown_field: unknown field: note`},
		{"a filter names what is hidden", list("alice", query.Params{Where: where(t, `{"pay": 1}`)}), `unknown_field: unknown field: pay`},
		{"who sees it may", list("bob", query.Params{Where: where(t, `{"pay": 7}`)}), `{"note":"bobs","pay":7,"title":"t"}`},
		{"writes what is hidden", put("alice", mine, `{"pay": 1}`), `validation_failed: pay: unknown field`},
		{"writes what is hidden here", put("alice", foreign, `{"note": "x"}`), `validation_failed: note: unknown field`},
		{"the hidden stays", put("alice", foreign, `{"title": "u"}`) + " " + w.stored(foreign), `{"title":"u"} {"note":"bobs","pay":7,"title":"u"}`},
		{"writes what is readonly", put("alice", mine, `{"fixed": "g"}`), `validation_failed: fixed: is read-only for you`},
		{"writes what is readonly here", put("alice", locked, `{"note": "new"}`), `validation_failed: note: is read-only for you`},
		{"may write it elsewhere", put("alice", mine, `{"note": "new"}`), `{"fixed":"f","lines":[{"a":"x","cost":1}],"note":"new","title":"t"}`},
		{"an expression that throws hides", put("alice", mine, `{"open": "x"}`), `validation_failed: open: unknown field`},
		{"a validator", put("alice", mine, `{"title": "new"}`), `validation_failed: title: is the same as the note`},
		{"a validator that fails refuses", put("alice", mine, `{"title": "boom"}`)[:13], `script_failed`},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.name, tt.got, tt.want)
		}
	}
	for _, tt := range []struct{ who, body, want string }{
		{"alice", `{"title": "t", "pay": 1}`, "validation_failed: pay: unknown field"},
		{"alice", `{"title": "t", "locked": true, "note": "x"}`, "validation_failed: note: is read-only for you"},
		{"alice", `{"title": "t", "locked": true, "lines": [{"cost": 1}]}`, "validation_failed: lines.0.cost: unknown field"},
	} {
		if _, err := w.service.Create(t.Context(), w.call(tt.who), doc(t, tt.body)); show(err) != tt.want {
			t.Errorf("create %s: %s", tt.body, show(err))
		}
	}
	res, err := w.service.BulkUpdate(t.Context(), w.call("alice"), query.Where{Filter: bson.D{{Key: "locked", Value: bson.D{{Key: "$exists", Value: true}}}}, Bytes: 10}, doc(t, `{"note": "b"}`))
	if err != nil || res.Failed() != 1 || show(res.Items[0].Err) != "validation_failed: note: is read-only for you" {
		t.Errorf("bulk: %v %+v", err, res)
	}
	d, err := w.service.Describe(t.Context(), w.call("alice"))
	if err != nil || d.Shows("pay") || !d.Shows("note") {
		t.Errorf("describe: %v", err)
	}
	if _, err := w.service.Create(t.Context(), w.call("public"), doc(t, `{}`)); errs.KindOf(err) != errs.Denied {
		t.Errorf("public: %v", err)
	}
}

// What an expression says of a new record is asked of what will be stored, not only of what the caller has written.
func TestExpressionsSeeWhatIsStored(t *testing.T) {
	t.Parallel()
	w := newScripted(t, teststore.Memory(t), `
collections:
- name: items
  permissions: {public: {methods: {}}, user: {methods: {get: true, post: {bulk: true}}}}
  bulk: {hooks: each}
  hooks: {post: {bind: {type: javascript, file: bind.js}}}
  fields:
  - {name: level, type: string}
  - {name: at, type: date}
  - {name: pay, type: number, readonly: {eval: "ctx.doc.at && ctx.doc.at.getTime() < 0"}}
  - {name: plan, type: string, hidden: {eval: "ctx.doc.level === 'by hook'"}}
`, map[string]string{"bind.js": "module.exports = (ctx) => { if (ctx.data.level === 'hook') ctx.data.level = 'by hook' }"})
	for _, tt := range []struct{ body, want string }{
		{`{"pay": 1}`, "ok"},
		{`{"at": "1960-01-01T00:00:00Z", "pay": 1}`, "validation_failed: pay: is read-only for you"},
		{`{"at": "1980-01-01T00:00:00Z", "pay": 1}`, "ok"},
		{`{"level": "hook", "plan": "p"}`, "validation_failed: plan: unknown field"},
		{`{"level": "other", "plan": "p"}`, "ok"},
	} {
		if _, err := w.service.Create(t.Context(), w.call("alice"), doc(t, tt.body)); show(err) != tt.want {
			t.Errorf("%s: %s, want %s", tt.body, show(err), tt.want)
		}
		res, err := w.service.BulkCreate(t.Context(), w.call("alice"), bson.A{doc(t, tt.body)})
		if err == nil {
			err = res.Items[0].Err
		}
		if show(err) != tt.want {
			t.Errorf("%s in bulk: %s, want %s", tt.body, show(err), tt.want)
		}
	}
}

// The order of members doesn't tell, once a field shows, whether it was there before.
func TestOrderTellsNothingOfHiddenFields(t *testing.T) {
	t.Parallel()
	w := newScripted(t, teststore.Memory(t), `
collections:
- name: items
  permissions: {public: {methods: {get: true}}, user: {methods: {get: true}}}
  hooks: {post: {create: [{type: javascript, file: hook.js}]}}
  fields:
  - {name: title, type: string}
  - {name: mood, type: string, hidden: {eval: "ctx.doc.title !== 'a'"}}
  - {name: lines, type: "object[]", subFields: [{name: cost, type: number, hidden: {eval: "ctx.doc.title !== 'a'"}}, {name: a, type: string}]}
`, map[string]string{"hook.js": "module.exports = (ctx) => { if (ctx.doc.title === 'hook') { ctx.doc = {mood: 'm', ...ctx.doc} } }"})
	for _, body := range []string{
		`{"mood": "x", "title": "b", "lines": [{"cost": 1, "a": "x"}]}`,
		`{"title": "b", "lines": [{"a": "x"}]}`,
		`{"title": "hook", "lines": [{"a": "x"}]}`,
	} {
		id := w.create("admin", body)
		for _, change := range []string{`{"title": null}`, `{"title": "a", "mood": "m", "lines": [{"a": "x", "cost": 2}]}`} {
			if _, err := w.service.Update(t.Context(), w.call("admin"), id, records.Change{Body: doc(t, change)}); err != nil {
				t.Fatal(err)
			}
		}
		rec, err := w.service.Get(t.Context(), w.call("public"), id, records.GetParams{})
		if err != nil {
			t.Fatal(show(err))
		}
		if got := string(rec.AppendJSON(nil)); !strings.Contains(got, `"lines":[{"a":"x","cost":2}],"title":"a","mood":"m"`) {
			t.Errorf("%s: %s", body, got)
		}
	}
}
