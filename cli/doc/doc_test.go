package doc

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/command/commandtest"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

func TestParse(t *testing.T) {
	t.Parallel()
	at := place{"blog", "articles"}
	commandtest.Options(t, map[string]commandtest.Verb{
		"list":    commandtest.Of(newList),
		"get":     commandtest.Of(newGet),
		"create":  commandtest.Of(newCreate),
		"update":  commandtest.Of(newUpdate),
		"replace": commandtest.Of(newReplace),
		"patch":   commandtest.Of(newPatch),
		"edit":    commandtest.Of(newEdit),
		"delete":  commandtest.Of(newDelete),
		"count":   commandtest.Of(newCount),
		"facet":   commandtest.Of(newFacet),
		"watch":   commandtest.Of(newWatch),
		"import":  commandtest.Of(newImport),
		"export":  commandtest.Of(newExport),
	}, map[string]any{
		"list blog articles --filter {} --sort -a --select a,b --projection p --limit 5 --offset 10 --after c --count": listOptions{
			place: at, Query: client.Query{Filter: "{}", Sort: "-a", Select: "a,b", Projection: "p", Limit: 5, Offset: 10, After: "c", Count: true},
		},
		"list blog articles --all":                                         listOptions{place: at, All: true},
		"list blog articles --all --count":                                 nil,
		"list blog articles --limit -1":                                    nil,
		"list blog articles --filter x":                                    listOptions{place: at, Query: client.Query{Filter: "x"}}, // the service judges it
		"get blog articles 1 --lookup author":                              getOptions{place: at, ID: "1", Query: client.Query{Lookup: "author"}},
		"list blog articles --lookup author":                               listOptions{place: at, Query: client.Query{Lookup: "author"}},
		"get blog articles 1 --select a":                                   getOptions{place: at, ID: "1", Query: client.Query{Select: "a"}},
		"get blog articles 1 --lang de":                                    getOptions{place: at, ID: "1", Query: client.Query{Lang: "de"}},
		"get blog settings":                                                getOptions{place: place{"blog", "settings"}},
		"get -n blog articles 1":                                           getOptions{place: at, ID: "1"},
		"get -n blog settings":                                             getOptions{place: place{"blog", "settings"}},
		"get articles 65f0c2a1b3d4e5f60718293a":                            nil, // of which project?
		"get":                                                              nil,
		"list blog articles --lang de":                                     listOptions{place: at, Query: client.Query{Lang: "de"}},
		"list blog articles --aggregate [] --filter {} --limit 3":          listOptions{place: at, Query: client.Query{Filter: "{}", Limit: 3}, Aggregate: "[]"},
		"list blog articles --aggregate [] --sort a":                       nil,
		"list blog articles --aggregate [] --all":                          nil,
		"facet blog articles section,tags --filter {}":                     facetOptions{place: at, Fields: []string{"section", "tags"}, Filter: "{}", Top: 20},
		"facet -n blog articles tags --top 0":                              facetOptions{place: at, Fields: []string{"tags"}},
		"facet blog articles tags --top -1":                                nil,
		"facet blog articles":                                              nil,
		"watch blog articles --filter {} --select a --after t --limit 3":   watchOptions{place: at, Query: client.Query{Filter: "{}", Select: "a"}, After: "t", Limit: 3, RetryFor: 2 * time.Minute},
		"watch blog articles --retry-for -1s":                              nil,
		"create blog articles -d {}":                                       createOptions{place: at, Input: command.Input{Data: "{}"}},
		"create blog articles":                                             nil,
		"update blog articles 1 -f - --if-match 3":                         updateOptions{place: at, ID: "1", Input: command.Input{File: "-"}, IfMatch: "3", bounds: bounds{MaxAffected: -1}},
		"update blog articles 1 -f - --replace":                            updateOptions{place: at, ID: "1", Input: command.Input{File: "-"}, Replace: true, bounds: bounds{MaxAffected: -1}},
		"update blog articles --filter {} -d {} -y":                        updateOptions{place: at, Filter: "{}", Input: command.Input{Data: "{}"}, Yes: true, bounds: bounds{MaxAffected: -1}},
		"update blog articles 1 --filter {} -d {}":                         nil,
		"update blog articles --filter {} --replace -d {}":                 nil,
		"update blog articles 1":                                           nil,
		"update blog settings -d {}":                                       updateOptions{place: place{"blog", "settings"}, Input: command.Input{Data: "{}"}, bounds: bounds{MaxAffected: -1}},
		"update blog articles 1 -d {} --lang de":                           updateOptions{place: at, ID: "1", Input: command.Input{Data: "{}"}, Lang: "de", bounds: bounds{MaxAffected: -1}},
		"delete blog articles 1 --yes":                                     deleteOptions{place: at, ID: "1", Yes: true, bounds: bounds{MaxAffected: -1}},
		"delete blog articles --filter {}":                                 deleteOptions{place: at, Filter: "{}", bounds: bounds{MaxAffected: -1}},
		"delete blog articles --filter {} --max-affected 3 --dry-run":      deleteOptions{place: at, Filter: "{}", bounds: bounds{DryRun: true, MaxAffected: 3}},
		"delete blog articles 1 --max-affected 3":                          nil,
		"update blog articles --filter {} -d {} --max-affected -2":         nil,
		"create blog articles -d {} --dry-run":                             createOptions{place: at, Input: command.Input{Data: "{}"}, DryRun: true},
		"delete blog articles":                                             nil,
		"count blog articles --filter {}":                                  countOptions{place: at, Filter: "{}"},
		"import blog articles -f a --dry-run --state b":                    importOptions{place: at, File: "a", Batch: defaultBatch, RetryFor: 2 * time.Minute, DryRun: true},
		"import blog articles -f a --dry-run --restart":                    nil,
		"import blog articles -f a --batch 7 --skip 2 --continue-on-error": importOptions{place: at, File: "a", Batch: 7, Skip: 2, ContinueOnError: true, RetryFor: 2 * time.Minute, State: "a.import"},
		"import blog articles -f a":                                        importOptions{place: at, File: "a", Batch: defaultBatch, RetryFor: 2 * time.Minute, State: "a.import"},
		"import blog articles -f a --format csv --upsert slug --errors e --retry-for 0": importOptions{
			place: at, File: "a", Format: "csv", Batch: defaultBatch, Upsert: "slug", Errors: "e", State: "a.import",
		},
		"import blog articles -f - --retry-for 0":                     importOptions{place: at, File: "-", Batch: defaultBatch},
		"import blog articles -f - --retry-for 0 --state s --restart": importOptions{place: at, File: "-", Batch: defaultBatch, State: "s", Restart: true},
		"import blog articles -f a --format xml":                      nil,
		"import blog articles -f a --retry-for -1s":                   nil,
		"import blog articles -f a --batch 0":                         nil,
		"import blog articles":                                        nil,
		"export blog articles --format json --limit 9 --page-size 4":  exportOptions{place: at, File: "-", Format: "json", Limit: 9, Query: client.Query{Limit: 4}},
		"export blog articles -f a.csv --bare":                        exportOptions{place: at, File: "a.csv", Format: "csv", Bare: true},
		"export blog articles -f a.JSON":                              exportOptions{place: at, File: "a.JSON", Format: "json"},
		"export blog articles":                                        exportOptions{place: at, File: "-", Format: "ndjson"},
		"export blog articles --format xml":                           nil,
		"export blog articles -f a.xlsx":                              nil,
		"export blog articles -f a.ndjson.gz":                         nil,
		"export blog articles -f a.xlsx --format csv":                 exportOptions{place: at, File: "a.xlsx", Format: "csv"},
		"export blog articles -f a.jsonl":                             exportOptions{place: at, File: "a.jsonl", Format: "ndjson"},
		"export blog articles -f out":                                 exportOptions{place: at, File: "out", Format: "ndjson"},
		"export blog articles -f -":                                   exportOptions{place: at, File: "-", Format: "ndjson"},
		"replace blog articles 1 -d {}":                               updateOptions{place: at, ID: "1", Input: command.Input{Data: "{}"}, Replace: true, bounds: bounds{MaxAffected: -1}},
		"replace blog settings -d {} --lang de":                       updateOptions{place: place{"blog", "settings"}, Input: command.Input{Data: "{}"}, Replace: true, Lang: "de", bounds: bounds{MaxAffected: -1}},
		"patch blog articles 1 -d [] --if-match 2":                    patchOptions{place: at, ID: "1", Input: command.Input{Data: "[]"}, IfMatch: "2"},
		"patch blog articles 1":                                       nil,
		"edit blog articles 1 --draft d":                              editOptions{place: at, ID: "1", Draft: "d"},
		"edit blog settings --lang de":                                editOptions{place: place{"blog", "settings"}, Lang: "de"},
	})
}

func TestWritable(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want, left, rev string }{
		{`{"a":1,"b":{"id":2}}`, `{"a":1,"b":{"id":2}}`, "", ""},
		{`{"id":"x","z":9223372036854775807,"_rev":7,"a\"b":[1, 2],"updatedAt":"d"}`, `{"z":9223372036854775807,"a\"b":[1, 2]}`, "id _rev updatedAt", "7"},
		{`{"_id":"x","createdAt":1,"createdBy":1,"updatedBy":1}`, `{}`, "_id createdAt createdBy updatedBy", ""},
	} {
		rest, left, rev, err := writable(api.Record(tc.in))
		if err != nil || string(rest) != tc.want || strings.Join(left, " ") != tc.left || rev != tc.rev {
			t.Errorf("%s: got %s, %v, %s, %v", tc.in, rest, left, rev, err)
		}
	}
	for _, bad := range []string{`[1]`, `1`, `"x"`, `{"a":`} {
		if _, _, _, err := writable(api.Record(bad)); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

func TestETag(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ flag, rev, want string }{
		{"", "", ""}, {"", "7", `"7"`}, {"8", "7", `"8"`}, {`"8"`, "", `"8"`}, {"any", "7", ""},
	} {
		if got := etag(tc.flag, tc.rev); got != tc.want {
			t.Errorf("%+v: got %s", tc, got)
		}
	}
}

func TestReadRecords(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in, want, err string
	}{
		{in: ""},
		{in: " \n\t"},
		{in: "[]"},
		{in: "[ ]\n"},
		{in: "{\"a\":1}\n{\"a\":2}\n", want: `{"a":1} {"a":2}`},
		{in: "\ufeff{\"a\":1}", want: `{"a":1}`},
		{in: "{\n\"a\":\n1}{\"a\":2}", want: "{\n\"a\":\n1} {\"a\":2}"},
		{in: `[{"a":1},{"a":2}]`, want: `{"a":1} {"a":2}`},
		{in: `{"items":[{"a":1},{"a":2}],"limit":2,"offset":0,"hasMore":false}`, want: `{"a":1} {"a":2}`},
		{in: `{"items":[{"sku":1}],"customer":"x"}`, want: `{"items":[{"sku":1}],"customer":"x"}`}, // a record with items
		{in: "{\"a\":1}\n{\"items\":[1]}", want: `{"a":1} {"items":[1]}`},
		{in: "{\"a\":1}\n{\"a\":", want: `{"a":1}`, err: "record 2: "},
		{in: `[{"a":1},{"a":`, want: `{"a":1}`, err: "record 2: "},
		{in: `[{"a":1}`, want: `{"a":1}`, err: "after record 1: "},
		{in: `[{"a":1}] x`, want: `{"a":1}`, err: "more text"},
		{in: "nonsense", err: "record 1: NDJSON begins with {, and a JSON list with [, not with 'n'"},
		{in: "title: of a record in YAML", err: "svcctl doc create a record in YAML"},
	} {
		var got []string
		errText := ""
		for r, err := range readRecords(strings.NewReader(tc.in)) {
			if err != nil {
				errText = err.Error()
				break
			}
			got = append(got, string(r))
		}
		if strings.Join(got, " ") != tc.want || (errText == "") != (tc.err == "") || !strings.Contains(errText, tc.err) {
			t.Errorf("%q: got %q, %q", tc.in, got, errText)
		}
	}
}

// Whatever the input, reading it ends, and what it gives is valid JSON.
func FuzzReadRecords(f *testing.F) {
	for _, s := range []string{`[{"a":1},2]`, "{}\n{}", `{"items":[{}]}`, "[", "]", "\ufeff", "{\"items\":null}", "[1,]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for r, err := range readRecords(strings.NewReader(s)) {
			if err != nil {
				return
			}
			if !json.Valid(r) {
				t.Fatalf("%q gave %q", s, r)
			}
		}
	})
}
