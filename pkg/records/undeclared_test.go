package records_test

import (
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// strict takes declared fields only, but for what is inside loose.
const strict = `
collections:
  - name: items
    strictFields: true
    audit: {enabled: true}
    fields:
      - {name: title, type: string}
      - {name: own, type: string, hidden: true}
      - {name: seo, type: object, subFields: [{name: title, type: string}]}
      - {name: parts, type: "object[]", subFields: [{name: sku, type: string}]}
      - {name: data, type: any, subFields: [{name: x, type: number}]}
      - {name: loose, type: object, strictFields: false, subFields: [{name: a, type: string}]}
      - {name: free, type: object}
    permissions:
      public: {methods: {get: {count: true}, post: {bulk: true}, put: {bulk: true}, delete: {bulk: true}}}
      user: {methods: {get: true, put: true}, hiddenFields: [seo.title]}
`

// leftover is a record of an earlier config: every gone is no field any more.
const leftover = `{"title": "A", "own": "o", "gone": "GONE", "seo": {"title": "T", "gone": "GONE"},
	"parts": [{"sku": "a", "gone": "GONE-a"}, {"sku": "b", "gone": "GONE-b"}], "data": [[{"x": 1, "gone": "GONE"}]],
	"loose": {"a": "1", "more": 2}, "free": {"z": 1}}`

const leftoverSeen = `"data":[[{"x":1}]],"free":{"z":1},"loose":{"a":"1","more":2},`

// TestUndeclaredStaysInside is row S11 for what strictFields refuses: what is stored of it goes out to nobody, by no way,
// and stays as it is.
func TestUndeclaredStaysInside(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		for _, who := range []string{"public", "alice", "admin"} {
			w := newWorld(t, s, strict)
			id := w.put(leftover)
			ctx, before := t.Context(), w.stored(id)
			out := []string{}
			see := func(rec records.Record, err error) {
				t.Helper()
				if err != nil {
					t.Fatal(show(err))
				}
				out = append(out, bare(t, rec.AppendJSON(nil)))
			}
			see(w.service.Get(ctx, w.call(who), id, records.GetParams{}))
			see(w.service.Get(ctx, w.call(who), id, records.GetParams{Select: "-title"}))
			page, err := w.service.List(ctx, w.call(who), query.Params{Select: "title,seo,parts"})
			if err != nil {
				t.Fatal(show(err))
			}
			see(page.Items[0], nil)
			for _, sel := range []string{"gone", "-gone", "seo.gone"} {
				if _, err := w.service.List(ctx, w.call(who), query.Params{Select: sel}); !strings.HasPrefix(show(err), "unknown_field") {
					t.Errorf("%s selects %s: %s", who, sel, show(err))
				}
			}
			for _, filter := range []string{`{"gone": "GONE"}`, `{"seo": {"$gt": {"title": "T"}}}`, `{"parts": {"sku": "a", "gone": "GONE-a"}}`} {
				if _, err := w.service.List(ctx, w.call(who), query.Params{Where: where(t, filter)}); err == nil {
					t.Errorf("%s filters by %s", who, filter)
				}
			}
			if _, err := w.service.List(ctx, w.call(who), query.Params{Where: where(t, `{"seo": {"$ne": null}}`)}); err != nil {
				t.Errorf("%s asks whether there is an object: %s", who, show(err))
			}
			for _, ch := range []records.Change{
				{Mode: records.Merge, Body: doc(t, `{"title": "B"}`)},
				{Mode: records.Merge, Body: doc(t, `{"parts": [{"sku": "a"}, {"sku": "b2"}]}`)},
				{Mode: records.JSONPatch, Patch: []byte(`[{"op": "replace", "path": "/title", "value": "A"}, {"op": "replace", "path": "/parts/1/sku", "value": "b"}]`)},
			} {
				written, err := w.service.Update(ctx, w.call(who), id, ch)
				if err != nil {
					t.Fatal(who, show(err))
				}
				see(*written.Record, nil)
			}
			for _, path := range []string{"/gone", "/seo/gone", "/parts/0/gone"} {
				for _, op := range []string{`"op": "test", "value": "GONE"`, `"op": "copy", "from": "` + path + `"`, `"op": "remove"`} {
					patch := []byte(`[{` + op + `, "path": "` + path + `"}]`)
					if strings.Contains(op, "copy") {
						patch = []byte(`[{` + op + `, "path": "/title"}]`)
					}
					if _, err := w.service.Update(ctx, w.call(who), id, records.Change{Mode: records.JSONPatch, Patch: patch}); err == nil || strings.Contains(show(err), "GONE") {
						t.Errorf("%s: %s: %s", who, patch, show(err))
					}
				}
			}
			if got := w.stored(id); got != before {
				t.Errorf("%s: stored\n%s, was\n%s", who, got, before)
			}
			out = append(out, w.trail(as(who))...)
			if who == "public" {
				res, err := w.service.BulkUpdate(ctx, w.call(who), query.Where{}, doc(t, `{"title": "C"}`))
				if err != nil || len(res.Items) != 1 || res.Failed() > 0 {
					t.Fatal(show(err), res)
				}
				if got, want := w.stored(id), strings.Replace(before, `"title":"A"`, `"title":"C"`, 1); got != want {
					t.Errorf("stored\n%s, want\n%s", got, want)
				}
			}
			for _, text := range out {
				if strings.Contains(text, "gone") {
					t.Errorf("%s sees %s", who, text)
				}
			}
			if want := `{` + leftoverSeen; !strings.HasPrefix(out[0], want) {
				t.Errorf("%s sees %s, want %s…", who, out[0], want)
			}
		}
	})
}

// TestUndeclaredIsKept has what each kind of write leaves of a record of an earlier config.
func TestUndeclaredIsKept(t *testing.T) {
	w := newWorld(t, teststore.Memory(t), strict)
	const rest = `"data":[[{"gone":"GONE","x":1}]],"free":{"z":1},"gone":"GONE","loose":{"a":"1","more":2},"own":"o",`
	for name, tt := range map[string]struct {
		who  string
		ch   records.Change
		want string // stored, or the error
	}{
		"an object is merged": {
			ch:   records.Change{Mode: records.Merge, Body: doc(t, `{"seo": {"title": "N"}}`)},
			want: `{` + rest + `"parts":[{"gone":"GONE-a","sku":"a"},{"gone":"GONE-b","sku":"b"}],"seo":{"gone":"GONE","title":"N"},"title":"A"}`,
		},
		"an object goes": {
			ch:   records.Change{Mode: records.Merge, Body: doc(t, `{"seo": null}`)},
			want: `{` + rest + `"parts":[{"gone":"GONE-a","sku":"a"},{"gone":"GONE-b","sku":"b"}],"seo":{"gone":"GONE"},"title":"A"}`,
		},
		"an element goes": {
			ch:   records.Change{Mode: records.Merge, Body: doc(t, `{"parts": [{"sku": "b"}]}`)},
			want: `{` + rest + `"parts":[{"gone":"GONE-b","sku":"b"}],"seo":{"gone":"GONE","title":"T"},"title":"A"}`,
		},
		"the whole is replaced": {
			who: "admin",
			ch: records.Change{Mode: records.Overwrite, Body: doc(t, `{"own": "o", "title": "N", "loose": {"a": "1", "more": 2}, "free": {"z": 1},
				"data": [[{"x": 1}]], "parts": [{"sku": "a"}, {"sku": "b"}], "seo": {"title": "T"}}`)},
			want: `{` + rest + `"parts":[{"gone":"GONE-a","sku":"a"},{"gone":"GONE-b","sku":"b"}],"seo":{"gone":"GONE","title":"T"},"title":"N"}`,
		},
		"it can't be named": {
			ch:   records.Change{Mode: records.Merge, Body: doc(t, `{"seo": {"gone": null}}`)},
			want: "validation_failed: seo.gone: unknown field",
		},
	} {
		if tt.who == "" {
			tt.who = "public"
		}
		id := w.put(leftover)
		_, err := w.service.Update(t.Context(), w.call(tt.who), id, tt.ch)
		got := show(err)
		if err == nil {
			got = w.stored(id)
		}
		if got != tt.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, tt.want)
		}
	}
	// Where nothing undeclared is stored, objects and lists change as they do without strictFields.
	id := w.create("admin", `{"seo": {"title": "T"}, "parts": [{"sku": "a"}, {"sku": "b"}]}`)
	_, err := w.service.Update(t.Context(), w.call("public"), id, records.Change{Mode: records.Merge, Body: doc(t, `{"seo": null, "parts": [{"sku": "c"}]}`)})
	if got, want := w.stored(id), `{"parts":[{"sku":"c"}]}`; err != nil || got != want {
		t.Errorf("%s, stored %s; want %s", show(err), got, want)
	}
}

// TestUndeclaredOfOldEntries is about entries that were written when the field was one.
func TestUndeclaredOfOldEntries(t *testing.T) {
	w := newWorld(t, teststore.Memory(t), strings.Replace(strict, "fields:\n", "fields:\n      - {name: gone, type: string}\n", 1))
	w.create("admin", `{"title": "A", "gone": "GONE"}`)
	now := load(t, "namespace: "+w.project.Namespace+"\n"+strict, nil)
	for _, who := range []string{"public", "admin"} {
		if got := strings.Join(w.trail(as(who)), ""); !strings.Contains(got, "GONE") {
			t.Fatalf("%s doesn't see the field while it is one: %s", who, got)
		}
	}
	w.project = now
	for _, who := range []string{"public", "alice", "admin"} {
		if got := w.trail(as(who)); len(got) != 1 || !strings.Contains(got[0], `"title":"A"`) || strings.Contains(got[0], "gone") {
			t.Errorf("%s sees %q", who, got)
		}
	}
}

// TestTextOfTheMark: a text that has the mark of what is redacted in it hides no entry from those who may read the record.
func TestTextOfTheMark(t *testing.T) {
	w := newWorld(t, teststore.Memory(t), auditedConfig("continue"))
	w.create("alice", `{"n": 1, "owner": "see [redacted] below", "price": 1}`)
	w.create("alice", `{"n": 2, "owner": "me", "price": 1}`)
	if got := w.trail(as("bob")); len(got) != 2 {
		t.Errorf("bob sees %q, want both", got)
	}
}
