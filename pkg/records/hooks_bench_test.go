package records_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/script"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// BenchmarkCreate compares creates by 16 callers at once on the embedded store, on disk, with a hook of two lines and
// without. cpu-us/op is the processor time of the whole process.
func BenchmarkCreate(b *testing.B) {
	for _, hook := range []string{"none", "bind", "create", "db"} {
		b.Run("hook="+hook, func(b *testing.B) { benchmarkCreate(b, hook) })
	}
}

func benchmarkCreate(b *testing.B, hook string) {
	dir := b.TempDir()
	config := `
namespace: bench
collections:
- name: items
  permissions: {public: {methods: {post: true}}, user: {methods: {get: true, post: true}}}
  fields: [{name: title, type: string, validator: required}, {name: slug, type: string}, {name: n, type: number}, {name: tags, type: "string[]"}]
`
	text := "module.exports = (ctx) => {\n  ctx.MEMBER.slug = ctx.MEMBER.title.toLowerCase();\n  ctx.MEMBER.n = ctx.MEMBER.n + 1;\n};\n"
	member := "data"
	switch hook {
	case "bind":
		config += "  hooks: {post: {bind: {type: javascript, file: hook.js}}}\n"
	case "create":
		member = "doc"
		config += "  hooks: {post: {create: {type: javascript, file: hook.js}}}\n"
	case "db":
		config += "  hooks: {post: {create: {type: javascript, file: hook.js}}}\n"
		text = "module.exports = async (ctx) => {\n  if (await db.collection('items').count({title: 'none'})) throw ctx.error(409, 'x');\n};\n"
	}
	for name, text := range map[string]string{"project.yaml": config, "hook.js": strings.ReplaceAll(text, "MEMBER", member)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
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
	service := records.New(s, time.Now, audit.New(audit.Options{Store: s, Now: time.Now, SystemDatabase: "svc"}), runner, nil)
	who := &access.Principal{Kind: access.KindUser, ID: alice.Hex(), Name: "alice"}
	var n atomic.Int64
	create := func(ctx context.Context) error {
		c := &records.Call{Project: p, Collection: p.Collections["items"], Principal: who}
		i := n.Add(1)
		_, err := service.Create(ctx, c, bson.D{
			{Key: "title", Value: fmt.Sprint("A Title of Some Words ", i)}, {Key: "n", Value: i}, {Key: "tags", Value: bson.A{"a", "b"}},
		})
		return err
	}
	before := processorTime(b)
	b.ResetTimer()
	var wg sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(b.N))
	for range 16 {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := create(b.Context()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-us/op")
}

// processorTime is what the process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
