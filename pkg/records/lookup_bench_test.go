package records_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/script"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// BenchmarkLookup compares a list of 100 records of 0.5 KB with the same list and the author of each, of 20, along with it.
func BenchmarkLookup(b *testing.B) {
	service, call := benchmarkLibrary(b)
	for _, c := range []struct{ name, lookup, sel, filter string }{
		{"none", "", "", ""},
		{"author", "author", "", ""},
		{"author,select", "author", "title,author.name", ""},
		{"json", `[{"localField": "author", "as": "by"}]`, "", ""},
		{"filter", "", "", `{"author.name": "Author 7"}`},
	} {
		b.Run("lookup="+c.name, func(b *testing.B) {
			b.ReportAllocs()
			dst := make([]byte, 0, 1<<20)
			before := processorTime(b)
			for b.Loop() {
				p := query.Params{Sort: "n", Lookup: c.lookup, Select: c.sel}
				if c.filter != "" {
					p.Where = where(b, c.filter)
				}
				page, err := service.List(b.Context(), call(), p)
				if err != nil {
					b.Fatal(err)
				}
				dst = dst[:0]
				for i := range page.Items {
					dst = page.Items[i].AppendJSON(dst)
				}
			}
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-us/op")
			b.ReportMetric(float64(len(dst)), "answer-bytes")
		})
	}
}

func benchmarkLibrary(b *testing.B) (*records.Service, func() *records.Call) {
	b.Helper()
	dir := b.TempDir()
	config := `
namespace: bench
collections:
- name: items
  permissions: {public: {methods: {get: {lookup: true}}, filter: {on: true}}, user: {methods: {}}}
  fields:
  - {name: title, type: string}
  - {name: body, type: string}
  - {name: n, type: number, index: [single]}
  - {name: on, type: boolean}
  - {name: author, type: string, index: [single], meta: {foreign: {collection: authors}}}
- name: authors
  permissions: {public: {methods: {get: true}, filter: {on: true}, hiddenFields: [mail]}, user: {methods: {}}}
  fields: [{name: name, type: string}, {name: mail, type: string}, {name: bio, type: string}, {name: on, type: boolean}]
`
	if err := os.WriteFile(filepath.Join(dir, "project.yaml"), []byte(config), 0o600); err != nil {
		b.Fatal(err)
	}
	p, problems := project.Load(dir, "project.yaml", func(string) (string, bool) { return "", false })
	if problems.Err() {
		b.Fatal(problems)
	}
	s, err := embedded.Open(b.Context(), embedded.Options{Dir: filepath.Join(dir, "store"), OnFatal: func(err error) { b.Error(err) }})
	if err != nil {
		b.Fatal(err)
	}
	engine := script.NewEngine(script.Options{})
	runner, err := hooks.New(hooks.Options{Engine: engine})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _, _ = engine.Close(), s.Close() })
	database := s.Database(project.DatabaseName(p.Namespace))
	fill := func(collection string, n int, record func(i int) bson.D) {
		ops := make([]store.Op, n)
		for i := range ops {
			raw, err := bson.Marshal(append(bson.D{{Key: "_id", Value: number(i + 1)}, {Key: "_rev", Value: int64(1)}, {Key: "on", Value: true}}, record(i)...))
			if err != nil {
				b.Fatal(err)
			}
			ops[i] = store.Op{Kind: store.Insert, Doc: raw}
		}
		if _, err := database.Collection(collection).Write(b.Context(), ops, true); err != nil {
			b.Fatal(err)
		}
	}
	fill("items", 1000, func(i int) bson.D {
		return bson.D{
			{Key: "title", Value: fmt.Sprintf("Record %d", i)},
			{Key: "body", Value: strings.Repeat("some words ", 35)},
			{Key: "n", Value: int64(i)},
			{Key: "author", Value: number(i%20 + 1)},
		}
	})
	fill("authors", 20, func(i int) bson.D {
		return bson.D{
			{Key: "name", Value: fmt.Sprintf("Author %d", i)},
			{Key: "mail", Value: fmt.Sprintf("author-%d@example.com", i)},
			{Key: "bio", Value: strings.Repeat("about ", 20)},
		}
	})
	for _, field := range []string{"n", "author"} {
		index := store.Index{Name: field, Keys: []store.IndexKey{{Path: field}}}
		if err := database.Collection("items").CreateIndex(b.Context(), index); err != nil {
			b.Fatal(err)
		}
	}
	service := records.New(s, time.Now, audit.New(audit.Options{Store: s, Now: time.Now, SystemDatabase: "svc"}), runner, nil)
	return service, func() *records.Call {
		return &records.Call{Project: p, Collection: p.Collections["items"], Principal: access.Anonymous()}
	}
}
