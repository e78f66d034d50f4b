package script_test

import (
	"context"
	"syscall"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/script"
)

// hookDoc is a record as the bench of the product creates it: 20 members.
func hookDoc() bson.D {
	doc := bson.D{{Key: "_id", Value: bson.NewObjectID()}, {Key: "title", Value: "Hello World, this is it"}}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} {
		doc = append(doc, bson.E{Key: name, Value: "some text of a usual length"}, bson.E{Key: name + "n", Value: int32(7)})
	}
	return append(doc, bson.E{Key: "tags", Value: bson.A{"x", "y"}}, bson.E{Key: "sub", Value: bson.D{{Key: "k", Value: 1.5}}})
}

// cpuTime is what the process has used.
func cpuTime(b *testing.B) int64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func BenchmarkHook(b *testing.B) {
	e := engine(b)
	stub := host{"db.findOne": func(context.Context, bson.A) (any, error) { return hookDoc(), nil }}
	for name, text := range map[string]string{
		"nothing":   `module.exports = (ctx) => {}`,
		"two lines": "module.exports = (ctx) => {\n ctx.doc.slug = ctx.doc.title.toLowerCase().replaceAll(' ', '-')\n ctx.doc.an = ctx.doc.an + 1 }",
		"regexp":    "module.exports = (ctx) => {\n ctx.doc.slug = ctx.doc.title.toLowerCase().replace(/[^a-z0-9]+/g, '-')\n ctx.doc.an = ctx.doc.an + 1 }",
		"db":        "module.exports = async (ctx) => {\n const author = await db.collection('authors').findOne(ctx.doc.a)\n ctx.doc.slug = author.title }",
		"async":     "export default async (ctx) => {\n ctx.doc.slug = ctx.doc.title.toLowerCase()\n ctx.doc.an = ctx.doc.an + 1 }",
	} {
		p := compile(b, text)
		doc := hookDoc()
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			start := cpuTime(b)
			defer func() { b.ReportMetric(float64(cpuTime(b)-start)/float64(b.N), "cpu-ns/op") }()
			for b.Loop() {
				if _, err := e.Run(b.Context(), script.Call{Program: p, Host: stub, Ctx: []script.Member{{Name: "user", Value: nil}, {Name: "doc", Value: doc, Out: true}}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
