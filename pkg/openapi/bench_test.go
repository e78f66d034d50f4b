package openapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/openapi"
)

// BenchmarkDocument makes the document of a project of 100 collections with 20 fields each, as its operators have it.
func BenchmarkDocument(b *testing.B) {
	var config strings.Builder
	config.WriteString("namespace: large\ncollections:\n")
	for i := range 100 {
		fmt.Fprintf(&config, "  - name: c%d\n    permissions: {public: {methods: {get: true, post: true, put: true, delete: true}}, user: {methods: {get: true}}}\n    fields:\n", i)
		for f := range 15 {
			fmt.Fprintf(&config, "      - {name: f%d, type: string, validator: {max: 100}}\n", f)
		}
		config.WriteString("      - {name: at, type: date}\n      - {name: n, type: number, validator: {min: 0, max: 10}}\n      - {name: tags, type: 'string[]'}\n" +
			"      - {name: seo, type: object, subFields: [{name: title, type: string}, {name: text, type: string}]}\n      - {name: picture, type: file}\n")
	}
	v := seenBy(b, load(b, "", config.String()), admin())
	b.ReportAllocs()
	for b.Loop() {
		doc, err := openapi.AppendJSON(nil, openapi.Document(v))
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(doc)))
	}
}
