package snapshot_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// What becomes of a forgery.
const (
	refused  = "it does not come in"
	useless  = "it can't be restored, and nothing changes"
	restored = "it is restored, and what is there then is as sound as before"
)

// forgedRecords are records in items, a line each, and what becomes of them.
var forgedRecords = map[string]struct {
	becomes string
	lines   []string
}{
	"an id that is a list":      {refused, []string{`{"_id":[]}`}},
	"one that is a regex":       {refused, []string{`{"_id":{"$regularExpression":{"pattern":"a","options":""}}}`}},
	"one that is undefined":     {refused, []string{`{"_id":{"$undefined":true}}`}},
	"no id":                     {refused, []string{`{"a":"b"}`}},
	"ids that are equal":        {refused, []string{`{"_id":{"$numberInt":"1"}}`, `{"_id":{"$numberDouble":"1.0"}}`}},
	"another order":             {refused, []string{`{"_id":"b"}`, `{"_id":"a"}`}},
	"a name with $":             {refused, []string{`{"_id":"a","$set":{"a":"b"}}`}},
	"a bool that is none":       {refused, []string{inBase64("\x02_id\x00\x02\x00\x00\x00a\x00\x08b\x00\x07")}},
	"a type that is none":       {refused, []string{inBase64("\x02_id\x00\x02\x00\x00\x00a\x00\x55b\x00\x07")}},
	"no JSON":                   {refused, []string{`x`}},
	"an empty line":             {refused, []string{``}},
	"two on a line":             {refused, []string{`{"_id":"a"} {"_id":"b"}`}},
	"deep nesting":              {refused, []string{`{"_id":"a","v":` + strings.Repeat(`{"a":`, 10000) + `null` + strings.Repeat("}", 10000) + `}`}},
	"two ids":                   {refused, []string{`{"_id":"a","_id":"b"}`}},
	"an id that is not first":   {refused, []string{`{"a":"b","_id":"a"}`}},
	"one value of a unique key": {useless, []string{`{"_id":"a","sku":"1"}`, `{"_id":"b","sku":"1"}`}},
	"an id that is null":        {restored, []string{`{"_id":null}`}},
	"one that is NaN":           {restored, []string{`{"_id":{"$numberDouble":"NaN"}}`}},
	"a NaN with other bits":     {restored, []string{inBase64("\x02_id\x00\x02\x00\x00\x00a\x00\x01n\x00\x01\x00\x00\x00\x00\x00\xf8\x7f")}},
	"an empty id":               {restored, []string{`{"_id":"","sku":"1"}`, `{"_id":{},"sku":"2"}`}},
	"a code":                    {restored, []string{`{"_id":{"$code":"x"}}`}},
	"a name twice":              {restored, []string{`{"_id":"a","x":"1","x":"2"}`}},
	"a text that is no UTF-8":   {restored, []string{inBase64("\x02_id\x00\x02\x00\x00\x00\xff\x00")}},
}

// forgedFiles are addresses of a file, which the forgery has, and whether it is put anywhere.
var forgedFiles = map[string]bool{
	"/api/v1/_/other/posts/ID/cover/x.txt":                    false,
	"/api/v1/_/NS/items/ID/cover/x.txt":                       false,
	"/api/v1/_/NS/posts/650000000000000000000002/cover/x.txt": false,
	"/api/v1/_/NS/posts/ID/cover/..":                          false,
	"/api/v1/_/NS/posts/ID/cover/":                            false,
	"/api/v1/_/NS/posts/ID/cover/a%00b":                       false,
	"/api/v1/_/NS/posts/ID/cover/..%2f..%2f..%2fx.txt":        true,
	"/api/v1/_/NS/posts/ID/cover/../../../x.txt":              true,
	"/api/v1/_/NS/posts/ID/..%2f..%2fx/x.txt":                 true,
	"/api/v1/_/NS/posts/ID/../x.txt":                          true,
	"/api/v1/_/NS/posts/ID/.claims/x":                         true,
}

// S53: an archive whose sums are all right, but that no svcd has written, reaches nothing but the collections that it names: no bookkeeping,
// no files of other records and projects.
func TestS53Forged(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		id := idOf(0).Hex()
		for _, name := range []string{"svc.restores", "svc.tokens", "system.users", "$cmd", "../x", "x\x00y", ".restore", strings.Repeat("x", 121)} {
			forge(t, s, refused, func(f *forgery) { f.collection(name, `{"_id":"restore","step":"decided"}`) })
		}
		large := map[string]func(f *forgery){
			"a warning more than svcd writes": func(f *forgery) { f.Warnings, f.Counts.Warnings = slices.Repeat([]string{"x"}, 101), 101 },
			"one that is long":                func(f *forgery) { f.Warnings, f.Counts.Warnings = []string{strings.Repeat("x", 4<<20)}, 1 },
			"a tool with a long name":         func(f *forgery) { f.Tool = strings.Repeat("x", 5<<20) },
			"more names than there can be":    func(f *forgery) { f.Only = slices.Repeat([]string{"x"}, 10_001) },
			"more collections": func(f *forgery) {
				for i := range 10_001 {
					f.collection(fmt.Sprint("c", i))
				}
			},
		}
		if s.Name() != "embedded" && os.Getenv("SOAK") == "" {
			clear(large) // they are refused before a store is asked, and take long
		}
		for name, change := range large {
			t.Run(name, func(t *testing.T) { forge(t, s, refused, change) })
		}
		forge(t, s, restored, func(f *forgery) {
			f.Warnings, f.Counts.Warnings = slices.Repeat([]string{strings.Repeat("x", 8<<10)}, 100), 1000
		})
		for name, tt := range forgedRecords {
			t.Run(name, func(t *testing.T) {
				forge(t, s, tt.becomes, func(f *forgery) { f.collection("items", tt.lines...) })
			})
		}
		var many []string
		for i := range store.MaxIndexes + 1 {
			many = append(many, fmt.Sprintf(`{"name":"x%d","keys":[{"path":"a%d"}]}`, i, i))
		}
		for index, becomes := range map[string]string{
			`{"name":"_id_","keys":[{"path":"a"}]}`:                                             refused,
			`{"name":"x","keys":[]}`:                                                            refused,
			`{"name":"x","keys":[{"path":"a"}],"where":1}`:                                      refused,
			`{"name":"x","keys":[{"path":"a"}],"expireAfterSeconds":9223372036854775807}`:       refused,
			`{"name":"x","keys":[{"path":"a"}],"partial":{"$where":"1"}}`:                       refused,
			`{"name":"x","keys":[{"path":"a"}]},{"name":"x","keys":[{"path":"b"}]}`:             refused,
			strings.Join(many, ","):                                                             refused,
			`{"name":"x","keys":[{"path":"title"}]},{"name":"y","keys":[{"path":"svc.other"}]}`: restored,
		} {
			forge(t, s, becomes, func(f *forgery) { f.files["indexes.json"] = `{"posts":{"indexes":[` + index + `]}}` })
		}
		for src, put := range forgedFiles {
			w := forge(t, s, restored, func(f *forgery) {
				address := strings.NewReplacer("NS", f.Namespace, "ID", id).Replace(src)
				f.collection("posts", fmt.Sprintf(`{"_id":{"$oid":"%s"},"cover":{"src":"%s","path":"x","hash":"%s"}}`, id, address, f.media("forged")))
			})
			files := contents(t, w.media)
			own := path.Join(w.p.Namespace, "posts", id) + "/"
			maps.DeleteFunc(files, func(_, content string) bool { return content != "forged" })
			for name := range files {
				if !strings.HasPrefix(name, own) {
					t.Errorf("%s is put at %s", src, name)
				}
			}
			if len(files) != 0 != put {
				t.Errorf("%s is put at %v", src, slices.Collect(maps.Keys(files)))
			}
		}
	})
}

// forge has a project take in a forgery, and restore it, and wants that to become of it. It gives the project.
func forge(t *testing.T, s store.Store, becomes string, change func(*forgery)) *world {
	t.Helper()
	from := newWorld(t, teststore.Memory(t))
	from.fillWith(2, 2)
	archived := forged(t, from, from.create("daily"), change)
	w := newWorldIn(t, s, config, from.p.Namespace)
	w.fillWith(3, 3)
	before := w.state()
	t.Cleanup(func() {
		_ = s.DropDatabase(context.Background(), project.DatabaseName(w.p.Namespace)) // the next one has another
	})
	info, err := w.imports(archived, nil)
	if err != nil {
		w.nothing()
		if becomes != refused || errs.KindOf(err) != errs.Invalid {
			t.Errorf("%v: %s", err, becomes)
		}
		return w
	}
	w.clock.Pass(time.Second)
	_, err = w.snaps.Restore(t.Context(), w.p, info.ID, w.p, replaceAll, nil)
	switch {
	case err == nil && becomes == restored:
		w.verify(w.create("daily"))
	case err != nil && becomes == useless && errs.KindOf(err) != errs.Internal:
		if diff := cmp.Diff(before, w.state()); diff != "" {
			t.Error(diff)
		}
	default:
		t.Errorf("%v: %s", err, becomes)
	}
	return w
}
