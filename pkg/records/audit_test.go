package records_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// auditedConfig is a collection whose writes are logged, and one for each way not to be.
func auditedConfig(mode string) string {
	return `
audit: {enabled: true}
collections:
  - name: items
    fields:
      - {name: n, type: number, index: [unique]}
      - {name: owner, type: string}
      - {name: secret, type: string, hidden: true}
      - {name: note, type: string}
      - {name: price, type: number}
    audit: {enabled: true, excludeFields: [note]}
    bulk: {mode: ` + mode + `}
    permissions:
      public: {methods: {get: true}, filter: {n: {$lt: 10}}, hiddenFields: [price]}
      user: {methods: {get: true, post: {bulk: true}, put: {bulk: true}, delete: {bulk: true}}, filter: {owner: {$ne: hidden}}}
  - name: deletes
    fields: [{name: n, type: number}]
    audit: {enabled: true, methods: [delete]}
    permissions: {public: {methods: {}}, user: {methods: {}}}
  - name: "off"
    fields: [{name: n, type: number}]
    audit: {}
    permissions: {public: {methods: {}}, user: {methods: {}}}
  - name: project
    fields: [{name: n, type: number}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
`
}

// trail is the audit log as a caller sees it, oldest first, in short: "update before -> after".
func (w *world) trail(who *access.Principal) []string {
	w.t.Helper()
	page, err := w.service.Audit(w.t.Context(), w.project, who, query.Params{Sort: "at"})
	if err != nil {
		w.t.Fatal(show(err))
	}
	state := func(e audit.Entry, raw bson.Raw) string {
		if raw == nil {
			return "none"
		}
		return bare(w.t, document.AppendJSON(nil, raw, e.View))
	}
	out := []string{}
	for _, e := range page.Items {
		out = append(out, fmt.Sprintf("%s %s %s -> %s", e.Collection, e.Op, state(e, e.Before), state(e, e.After)))
	}
	return out
}

func (w *world) in(collection, who string) *records.Call {
	return &records.Call{Project: w.project, Collection: w.project.Collections[collection], Principal: as(who)}
}

func TestWritesAreLogged(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, auditedConfig("continue"))
		ctx := audit.With(t.Context(), audit.NewCaller(as("alice"), "req-1", "192.0.2.1"))
		made, err := w.service.Create(ctx, w.call("admin"), doc(t, `{"n": 1, "secret": "s1", "note": "n1", "price": 5}`))
		if err != nil {
			t.Fatal(show(err))
		}
		if _, err := w.service.Update(ctx, w.call("admin"), made.ID, records.Change{Body: doc(t, `{"n": 2, "secret": "s2"}`)}); err != nil {
			t.Fatal(show(err))
		}
		if _, err := w.service.Update(ctx, w.call("admin"), made.ID, records.Change{Body: doc(t, `{"n": "x"}`)}); err == nil {
			t.Fatal("a number is text")
		}
		patch := records.Change{Mode: records.JSONPatch, Patch: []byte(`[{"op": "replace", "path": "/n", "value": 3}]`)}
		if _, err := w.service.Update(ctx, w.call("admin"), made.ID, patch); err != nil {
			t.Fatal(show(err))
		}
		if _, err := w.service.Delete(ctx, w.call("admin"), made.ID); err != nil {
			t.Fatal(show(err))
		}
		for _, name := range []string{"deletes", "off", "project"} {
			r, err := w.service.Create(ctx, w.in(name, "admin"), doc(t, `{"n": 1}`))
			if err != nil {
				t.Fatal(show(err))
			}
			if _, err := w.service.Delete(ctx, w.in(name, "admin"), r.ID); err != nil {
				t.Fatal(show(err))
			}
		}
		state := func(n int) string {
			return fmt.Sprintf(`{"n":%d,"note":"[redacted]","price":5,"secret":"[redacted]"}`, n)
		}
		want := []string{
			"items create none -> " + state(1),
			"items update " + state(1) + " -> " + state(2),
			"items update " + state(2) + " -> " + state(3),
			"items delete " + state(3) + " -> none",
			`deletes delete {"n":1} -> none`,
			`project create none -> {"n":1}`,
			`project delete {"n":1} -> none`,
		}
		if diff := cmp.Diff(want, w.trail(as("admin"))); diff != "" {
			t.Error(diff)
		}
		page, err := w.service.Audit(t.Context(), w.project, as("admin"), query.Params{Where: where(t, `{"recordId": "`+made.ID+`"}`)})
		if err != nil || len(page.Items) != 4 {
			t.Fatalf("%d entries about the record, %v", len(page.Items), err)
		}
		e := page.Items[0]
		got := []string{string(e.Kind), e.Op, e.Namespace, e.Actor.Kind, e.Actor.ID, e.Actor.Name, e.RequestID, e.Address}
		expect := []string{"records", "delete", w.project.Namespace, "user", alice.Hex(), "alice", "req-1", "192.0.2.1"}
		if diff := cmp.Diff(expect, got); diff != "" {
			t.Error(diff)
		}
	})
}

// TestBulkWritesAreLogged writes many, of which some fail: what is written has an entry, and nothing else.
func TestBulkWritesAreLogged(t *testing.T) {
	for _, mode := range []string{"continue", "atomic"} {
		t.Run(mode, func(t *testing.T) {
			teststore.Each(t, func(t *testing.T, s store.Store) {
				w := newWorld(t, s, auditedConfig(mode))
				items := bson.A{}
				for _, n := range []int64{1, 2, 2, 3} {
					items = append(items, bson.D{{Key: "n", Value: n}, {Key: "owner", Value: "a"}})
				}
				res, err := w.service.BulkCreate(t.Context(), w.call("alice"), items)
				if mode == "atomic" {
					if errs.KindOf(err) != errs.Conflict || len(w.trail(as("admin"))) != 0 || w.everything() != "" {
						t.Fatalf("%s; %v", show(err), w.trail(as("admin")))
					}
					items = slices.Delete(items, 2, 3)
					if _, err = w.service.BulkCreate(t.Context(), w.call("alice"), items); err != nil {
						t.Fatal(show(err))
					}
				} else if err != nil || res.Failed() != 1 {
					t.Fatalf("%s, %d failed", show(err), res.Failed())
				}
				if _, err := w.service.BulkUpdate(t.Context(), w.call("alice"), where(t, `{"n": {"$gt": 1}}`), doc(t, `{"owner": "b"}`)); err != nil {
					t.Fatal(show(err))
				}
				if _, err := w.service.BulkDelete(t.Context(), w.call("alice"), where(t, `{"n": 3}`)); err != nil {
					t.Fatal(show(err))
				}
				got := w.trail(as("admin"))
				slices.Sort(got)
				want := []string{
					`items create none -> {"n":1,"owner":"a"}`, `items create none -> {"n":2,"owner":"a"}`, `items create none -> {"n":3,"owner":"a"}`,
					`items delete {"n":3,"owner":"b"} -> none`,
					`items update {"n":2,"owner":"a"} -> {"n":2,"owner":"b"}`, `items update {"n":3,"owner":"a"} -> {"n":3,"owner":"b"}`,
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
				if report, err := w.logs.Of(w.database()).Verify(t.Context(), nil); err != nil || report.Entries != 6 || len(report.Problems) > 0 {
					t.Errorf("%+v, %v", report, err)
				}
			})
		})
	}
}

// TestAuditShowsWhatRecordsShow reads the log as callers who may not read everything.
func TestAuditShowsWhatRecordsShow(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, auditedConfig("continue"))
		id := w.create("admin", `{"n": 1, "price": 7, "secret": "s"}`)
		if _, err := w.service.Update(t.Context(), w.call("admin"), id, records.Change{Body: doc(t, `{"n": 20}`)}); err != nil {
			t.Fatal(show(err))
		}
		if _, err := w.service.Delete(t.Context(), w.call("admin"), id); err != nil {
			t.Fatal(show(err))
		}
		w.create("admin", `{"n": 2, "owner": "hidden"}`)
		large := w.create("admin", `{"n": 3, "owner": "`+strings.Repeat("x", 2<<20)+`"}`)
		if _, err := w.service.Create(t.Context(), w.in("project", "admin"), doc(t, `{"n": 1}`)); err != nil {
			t.Fatal(show(err))
		}
		for _, tt := range []struct {
			who  *access.Principal
			want []string
		}{
			{as("public"), []string{ // n < 10, without price
				`items create none -> {"n":1}`, `items update {"n":1} -> none`, `items create none -> {"n":2,"owner":"hidden"}`,
			}},
			{as("alice"), []string{
				`items create none -> {"n":1,"price":7}`, `items update {"n":1,"price":7} -> {"n":20,"price":7}`, `items delete {"n":20,"price":7} -> none`,
			}},
			{as("token:unknown"), []string{}},
		} {
			if diff := cmp.Diff(tt.want, w.trail(tt.who)); diff != "" {
				t.Errorf("%s: %s", tt.who.Kind, diff)
			}
		}
		if err := w.logs.Of(w.database()).Seal(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			who    *access.Principal
			hashes bool
		}{{as("admin"), true}, {as("alice"), false}} {
			page, err := w.service.Audit(t.Context(), w.project, tt.who, query.Params{Count: true})
			if err != nil || *page.Total != int64(len(page.Items)) {
				t.Fatal(show(err), *page.Total, len(page.Items))
			}
			for _, e := range page.Items {
				if (e.Hash != "") != tt.hashes || (e.Seq > 0) != tt.hashes {
					t.Errorf("%s sees the hash %q of entry %d", tt.who.Kind, e.Hash, e.Seq)
				}
				if !tt.hashes && e.RecordID == large {
					t.Error("an entry that can't be held against the filter shows")
				}
			}
		}
	})
}

// TestAuditOfAFilterOnHidden reads as one whose filter asks for what entries don't have.
func TestAuditOfAFilterOnHidden(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t), collections(`
name: items
fields: [{name: n, type: number}, {name: secret, type: string, hidden: true}]
audit: {enabled: true}
permissions: {public: {methods: {get: true}, filter: {secret: {$ne: mine}}}, user: {methods: {}}}
`))
	w.create("admin", `{"n": 1, "secret": "mine"}`)
	w.create("admin", `{"n": 2}`) // that it has no secret is none of their business either
	if diff := cmp.Diff([]string{}, w.trail(as("public"))); diff != "" {
		t.Error(diff)
	}
}
