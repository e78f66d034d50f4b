package records_test

import (
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// The audit stage may redact and add, and can't drop an entry.
func TestAuditStage(t *testing.T) {
	t.Parallel()
	w := hooked(t, teststore.Memory(t), "", map[string]string{
		"audit.return": `module.exports = (ctx) => {
			if (ctx.doc.op === 'delete') return { }
			ctx.doc.after.title = ctx.doc.after.title[0] + '…'
			ctx.doc.note = ctx.doc.op + ' by ' + ctx.user.name
			ctx.doc.op = 'nothing'
		}`,
	})
	id := w.create("alice", `{"title": "Private", "n": 1}`)
	if err := deleted(w.service.Delete(t.Context(), w.call("alice"), id)); err != nil {
		t.Fatal(show(err))
	}
	page, err := w.service.Audit(t.Context(), w.project, as("admin"), query.Params{Sort: "at"})
	if err != nil || len(page.Items) != 2 {
		t.Fatal(err, page)
	}
	e := page.Items[0]
	if e.Op != "create" || e.Note != "create by alice" || bare(t, document.AppendJSON(nil, e.After, nil)) != `{"n":1,"title":"P…"}` {
		t.Errorf("%+v %s", e, e.After)
	}
	if e = page.Items[1]; e.Op != "delete" || e.Before != nil || e.RecordID != id {
		t.Errorf("%+v", e)
	}
}

// What the audit stage changes tells nobody of records that their filter keeps from them.
func TestAuditStageAndFilters(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		hook string
		seen int // entries of two records, one of them out of sight
	}{
		"touches nothing of it":      {`ctx.doc.after.n = 5; ctx.doc.note = 'n'`, 1},
		"adds a note":                {`ctx.doc.note = 'n'`, 1},
		"takes the field away":       {`delete ctx.doc.after.on`, 0},
		"changes it":                 {`ctx.doc.after.on = true`, 1}, // of the one that is seen it is what it was
		"changes what is in it":      {`ctx.doc.after.of = {team: 1}`, 1},
		"takes away what is in it":   {`ctx.doc.after.of = {}`, 0},
		"makes up a state":           {`ctx.doc.before = {title: 'x'}`, 1},
		"makes up one for the other": {`ctx.doc.before = ctx.doc.after; delete ctx.doc.after`, 0},
	} {
		w := newScripted(t, teststore.Memory(t), `
collections:
- name: items
  audit: {enabled: true}
  permissions:
    public: {methods: {}}
    user: {methods: {get: true}, filter: {on: {$ne: false}, of.team: {$ne: 2}}}
  fields: [{name: title, type: string}, {name: on, type: boolean}, {name: n, type: number}, {name: of, type: object, subFields: [{name: team, type: number}]}]
  hooks: {audit: {return: {type: javascript, file: a.js}}}
`, map[string]string{"a.js": "module.exports = (ctx) => { " + tt.hook + " }"})
		for _, text := range []string{`{"title": "seen", "on": true, "of": {"team": 1}}`, `{"title": "unseen", "on": false, "of": {"team": 2}}`} {
			w.create("admin", text)
		}
		if all, err := w.service.Audit(t.Context(), w.project, as("admin"), query.Params{}); err != nil || len(all.Items) != 2 {
			t.Errorf("%s: %v, %d entries", name, err, len(all.Items))
		}
		page, err := w.service.Audit(t.Context(), w.project, as("alice"), query.Params{})
		if err != nil || len(page.Items) != tt.seen {
			t.Errorf("%s: %v, alice sees %d entries", name, err, len(page.Items))
		}
		for _, e := range page.Items {
			if e.Before != nil || !strings.Contains(string(document.AppendJSON(nil, e.After, e.View)), `"seen"`) {
				t.Errorf("%s: alice sees %s %s", name, e.Before, e.After)
			}
		}
	}
}
