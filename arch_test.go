package svc_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/svcctl/svc"

// layers is who may import whom among our own packages, from the bottom up: a package imports what its row lists, and
// what the rows list is never above it, and some file does import it. ARCHITECTURE.md shows the same table. pkg/ is left
// out of names.
//
// Before you add a word here, ask whether the import belongs there: a package that needs much has become two.
var layers = []layer{
	{"L0", rooms{
		"errs": "", "status": "", "api": "", "schedule": "", "dirwatch": "", "trial/report": "", "folder": "", "jsonyaml": "", "randtest": "",
		"document": "errs", "tracing": "errs", "tracing/tracetest": "",
	}},
	{"L1", rooms{
		"schedule/slots":             "schedule",
		"mql":                        "mql/pattern document errs",
		"mql/expr":                   "mql/pattern document errs",
		"mql/pattern":                "errs",
		"mql/pipeline":               "mql mql/expr document errs",
		"fieldtype":                  "document errs",
		"schema":                     "fieldtype schedule errs",
		"access":                     "schema mql document api errs",
		"imagefilter":                "schema errs",
		"media":                      "folder imagefilter errs",
		"script":                     "script/guard document errs",
		"script/guard":               "",
		"script/traced":              "script tracing",
		"script/fetch":               "tracing errs",
		"script/files":               "errs",
		"script/cache":               "document errs",
		"script/embeddings":          "embedding errs",
		"assets":                     "errs",
		"embedding":                  "errs",
		"embedding/remote":           "embedding",
		"embedding/hash":             "embedding",
		"embedding/local":            "embedding errs",
		"embedding/local/minilm":     "",
		"embedding/ollama":           "embedding embedding/remote",
		"embedding/openai":           "embedding embedding/remote errs",
		"embedding/tei":              "embedding embedding/remote",
		"embedding/all":              "embedding embedding/hash embedding/local embedding/ollama embedding/openai embedding/tei",
		"embedding/embeddingtest":    "embedding embedding/hash errs",
		"store":                      "mql mql/pipeline document errs",
		"store/barrier":              "store store/gate mql errs",
		"store/embedded":             "store store/embedded/plan mql mql/pipeline document errs",
		"store/embedded/plan":        "store mql document",
		"store/fieldnames":           "store mql mql/pipeline document",
		"store/gate":                 "store mql mql/pipeline errs",
		"store/lease":                "store mql errs",
		"store/mongo":                "store mql mql/pipeline document errs",
		"store/mongotest":            "",
		"store/mongotest/startmongo": "store/mongotest",
		"store/storetest":            "store mql mql/pipeline mql/mqltest document errs",
		"store/teststore":            "store store/embedded store/mongo store/mongotest",
		"store/traced":               "store tracing mql mql/pipeline",
		"store/wire":                 "store mql mql/pipeline document errs",
		"store/wire/outside":         "",
		"store/storetest/differ":     "store mql mql/mqltest document errs",
		"mql/mqltest":                "mql",
		"search/analysis":            "",
		"search/index":               "",
		"search/quality":             "",
		"snapshot/archive":           "errs",
	}},
	{"L2", rooms{
		"query":       "fieldtype store mql mql/pipeline document errs",
		"project":     "query search schedule schema script media imagefilter fieldtype mql access document errs",
		"audit":       "query fieldtype access store store/lease mql document errs",
		"idempotency": "store mql errs",
		"search":      "mql document errs",

		"snapshot/retention": "schema errs",
	}},
	{"L3", rooms{
		"jobs":          "operation project schedule/slots store mql errs",
		"search/engine": "project search search/analysis search/index embedding store store/fieldnames store/lease fieldtype mql document errs",
		"search/runs":   "search/engine operation project errs",
		"plan":          "project search search/quality schema fieldtype access store mql document api",
		"operation":     "store tracing mql document errs",
		"snapshot":      "snapshot/retention project schema media folder store store/fieldnames store/gate store/lease snapshot/archive mql document errs",
		"snapshot/due":  "snapshot snapshot/runs operation project schedule schedule/slots store mql errs",
		"snapshot/runs": "snapshot snapshot/archive snapshot/retention operation project store mql document api errs",
		"system":        "audit query fieldtype store access mql document api errs",
		"auth":          "system audit access errs",
		"hooks":         "project script schema access errs",
		"openapi":       "project fieldtype access schema document api errs",
		"mcp":           "access api document",
	}},
	{"L4", rooms{
		"actions": "project hooks operation script schema access audit fieldtype document errs",
		"records": "hooks project search search/engine script schema audit query access media imagefilter fieldtype mql mql/pipeline store store/fieldnames document errs",
	}},
	{"L5", rooms{
		"catalog":      "actions hooks openapi records project fieldtype schema access api errs",
		"httpapi":      "actions assets catalog embedding hooks mcp records query search/runs snapshot snapshot/runs auth system audit idempotency jobs operation project schema fieldtype access jsonyaml openapi status tracing api document errs",
		"client":       "api",
		"controller":   "tracing errs",
		"/controllers": "controller jobs search search/engine operation snapshot snapshot/due plan status dirwatch folder project schema system store store/fieldnames store/lease mql api errs",
	}},
	{"L6", rooms{
		"app": "httpapi actions assets embedding embedding/all media access hooks records search search/engine search/runs snapshot snapshot/due snapshot/runs auth system audit idempotency jobs operation plan project script script/cache script/embeddings script/fetch script/files script/traced schema status controller /controllers dirwatch store " +
			"store/barrier store/embedded store/gate store/lease store/mongo store/traced store/wire tracing mql document api errs",
		"trial": "app trial/report hooks access operation project search/quality script schema mql document api errs",
		"/cli": "/cli/access /cli/action /cli/asset /cli/audit /cli/auth /cli/backup /cli/collection /cli/command /cli/config /cli/doc /cli/embedding /cli/file /cli/index /cli/job /cli/manual /cli/mcp /cli/metrics /cli/openapi /cli/org /cli/output /cli/plugin /cli/project /cli/recordtypes /cli/search " +
			"/cli/server /cli/service /cli/snapshot /cli/team /cli/token /cli/tui /cli/user client api schema",
		"/cli/access":              "/cli/command /cli/output api",
		"/cli/action":              "/cli/command /cli/output /cli/runs client api",
		"/cli/asset":               "/cli/command /cli/output client",
		"/cli/audit":               "/cli/command /cli/output client api",
		"/cli/auth":                "/cli/command /cli/output /cli/settings client api",
		"/cli/backup":              "/cli/command /cli/output /cli/runs /cli/snapshot client api",
		"/cli/collection":          "/cli/command /cli/index /cli/output api",
		"/cli/command":             "/cli/output /cli/settings client api",
		"/cli/command/commandtest": "/cli/command",
		"/cli/config":              "/cli/command /cli/output /cli/settings client",
		"/cli/embedding":           "/cli/command /cli/output api",
		"/cli/doc":                 "/cli/command /cli/output client api",
		"/cli/file":                "/cli/command /cli/output client api",
		"/cli/index":               "/cli/command /cli/output client api",
		"/cli/job":                 "/cli/command /cli/output /cli/runs client api",
		"/cli/manual":              "/cli/command /cli/output",
		"/cli/mcp":                 "/cli/command /cli/output client api",
		"/cli/metrics":             "/cli/command /cli/output client",
		"/cli/openapi":             "/cli/command /cli/output",
		"/cli/org":                 "/cli/command /cli/output client api",
		"/cli/output":              "jsonyaml",
		"/cli/project":             "/cli/command /cli/output /cli/tree client api trial/report dirwatch hooks project schema script errs",
		"/cli/runs":                "/cli/command /cli/output client api",
		"/cli/search":              "/cli/command /cli/doc /cli/output /cli/runs client api project schema search/quality",
		"/cli/server":              "/cli/command /cli/output",
		"/cli/plugin":              "/cli/command /cli/output",
		"/cli/service":             "/cli/command /cli/output /cli/settings client api",
		"/cli/settings":            "/cli/output",
		"/cli/snapshot":            "/cli/command /cli/output /cli/runs client api",
		"/cli/team":                "/cli/command /cli/output client api",
		"/cli/token":               "/cli/command /cli/output client api",
		"/cli/tree":                "/cli/output client api",
		"/cli/tui":                 "/cli/audit /cli/collection /cli/command /cli/doc /cli/output /cli/runs /cli/snapshot /cli/token /cli/tree /cli/tui/frame /cli/tui/widget client api",
		"/cli/tui/frame":           "/cli/output /cli/tui/widget client api jsonyaml",
		"/cli/tui/frame/frametest": "/cli/tui/frame",
		"/cli/tui/widget":          "/cli/output",
		"/cli/recordtypes":         "/cli/command",
		"/cli/user":                "/cli/command /cli/output client api",
	}},
	{"L7", rooms{
		"/cmd/svcd":          "app trial trial/report auth embedding errs /controllers project schema script /cli/output",
		"/cmd/svcctl":        "/cli /cli/command script",
		"/":                  "",
		"/bench":             "",
		"/scripts/samples":   "",
		"/scripts/typecheck": "",
	}},
}

// libraries is where each third-party library may be imported; a room covers what is below it. One library has one room
// wherever that can be, so that replacing it means changing one package. Tests may import what they need.
var libraries = map[string]string{
	"go.mongodb.org/mongo-driver/v2/bson": "* the value model of documents",

	"go.mongodb.org/mongo-driver/v2":        "store/mongo",
	"github.com/cockroachdb/pebble/v2":      "store/embedded search/index",
	"github.com/blevesearch/bleve/v2":       "search/analysis",
	"github.com/cockroachdb/apd/v3":         "document mql/expr mql/pipeline",
	"github.com/xdg-go/scram":               "store/wire",
	"github.com/go-chi/chi/v5":              "httpapi",
	"github.com/klauspost/compress":         "httpapi snapshot snapshot/archive",
	"github.com/prometheus/client_golang":   "httpapi hooks controller jobs operation search/engine snapshot/due tracing app",
	"github.com/prometheus/client_model":    "app /cli/metrics",
	"github.com/prometheus/common":          "/cli/metrics",
	"github.com/fsnotify/fsnotify":          "dirwatch",
	"github.com/netresearch/go-cron":        "schedule",
	"github.com/dop251/goja":                "script",
	"github.com/gabriel-vasile/mimetype":    "media",
	"golang.org/x/text":                     "media embedding/local",
	"github.com/dlclark/regexp2/v2":         "script",
	"github.com/evanw/esbuild":              "script",
	"github.com/go-sourcemap/sourcemap":     "script",
	"github.com/tailscale/hujson":           "schema",
	"github.com/goccy/go-yaml":              "schema /cli /cmd/svcd",
	"github.com/getkin/kin-openapi":         "/cli/openapi",
	"github.com/golang-jwt/jwt/v5":          "auth",
	"golang.org/x/crypto":                   "auth",
	"k8s.io/client-go":                      "controller /cli/output",
	"github.com/itchyny/gojq":               "/cli/output",
	"github.com/google/renameio/v2":         "app",
	"github.com/KimMachineGun/automemlimit": "app",
	"github.com/gofrs/flock":                "/cli store/mongotest embedding/local/minilm snapshot",
	"github.com/olekukonko/tablewriter":     "/cli/output",
	"github.com/spf13/cobra":                "/cli /cmd",
	"charm.land/bubbletea/v2":               "/cli/tui",
	"charm.land/bubbles/v2":                 "/cli/tui",
	"charm.land/lipgloss/v2":                "/cli/tui",
	"github.com/charmbracelet/x/ansi":       "/cli/tui /cli/output",
	"github.com/charmbracelet/x/vt":         "/cli/tui/frame/frametest",
	"github.com/charmbracelet/ultraviolet":  "/cli/tui/frame/frametest",
	"github.com/charmbracelet/colorprofile": "/cli/tui",
	"github.com/creack/pty":                 "/cli/tui/frame/frametest",
	"github.com/spf13/pflag":                "/cli /cmd",
	"github.com/spf13/viper":                "/cmd",
	"golang.org/x/term":                     "/cli /cmd",
	"golang.org/x/sys":                      "search/index embedding/local folder",
	"go.opentelemetry.io/otel":              "tracing",
	"go.opentelemetry.io/proto/otlp":        "tracing",
	"google.golang.org/protobuf":            "tracing",
	"golang.org/x/sync":                     "* of the Go project",
	"golang.org/x/image":                    "imagefilter",
	"github.com/HugoSmits86/nativewebp":     "imagefilter",
	"github.com/chai2010/webp":              "imagefilter",
	"github.com/google/go-cmp":              "store/storetest /cli/command/commandtest",
}

// namesRefused say nothing about what is inside.
var namesRefused = []string{"util", "utils", "common", "base", "types", "helpers", "helper", "misc", "shared", "lib"}

type layer struct {
	name  string
	rooms rooms
}

// rooms maps a package to what it may import.
type rooms map[string]string

// ours is one of our packages as it is on disk.
type ours struct {
	name     string            // as the table has it: without pkg/, with a leading / elsewhere
	imports  map[string]string // import path -> file that has it; of files that are no tests
	doc      bool
	onlyTest bool
}

func TestLayers(t *testing.T) {
	t.Parallel()
	allowed, level := map[string][]string{}, map[string]int{}
	for i, l := range layers {
		for name, list := range l.rooms {
			allowed[name], level[name] = strings.Fields(list), i
		}
	}
	for name, list := range allowed {
		for _, to := range list {
			if at, ok := level[to]; !ok || at > level[name] {
				t.Errorf("the table lets %s import %s, which is above it or not in the table", name, to)
			}
		}
	}
	packages := readPackages(t)
	for _, p := range packages {
		list, ok := allowed[p.name]
		if !ok && !p.onlyTest {
			t.Errorf("package %s is not in the table of layers in arch_test.go: give it a row", p.name)
			continue
		}
		used := map[string]bool{}
		for imported, file := range p.imports {
			to, own := roomOf(imported)
			used[to] = own
			if own && !slices.Contains(list, to) {
				t.Errorf("%s imports %s: the table of layers does not let %s do that", file, imported, p.name)
			}
		}
		for _, to := range list {
			if !used[to] {
				t.Errorf("the table of layers lets %s import %s, and no file of it does: take it out", p.name, to)
			}
		}
	}
	for name := range allowed {
		if !slices.ContainsFunc(packages, func(p ours) bool { return p.name == name }) {
			t.Errorf("the table of layers has a row for %s, which is not there", name)
		}
	}
}

func TestLibraries(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, p := range readPackages(t) {
		for imported, file := range p.imports {
			first, _, _ := strings.Cut(imported, "/")
			if _, own := roomOf(imported); own || !strings.Contains(first, ".") {
				continue
			}
			library := libraryOf(imported)
			if library == "" {
				t.Errorf("%s imports %s: give the library a room in arch_test.go", file, imported)
				continue
			}
			used[library] = true
			if list := libraries[library]; list[0] != '*' && !slices.ContainsFunc(strings.Fields(list), func(room string) bool {
				return p.name == room || strings.HasPrefix(p.name, room+"/")
			}) {
				t.Errorf("%s imports %s, which only %s may", file, imported, list)
			}
		}
	}
	for library := range libraries {
		if !used[library] && libraries[library][0] != '*' {
			t.Errorf("the table of libraries has %s, which nothing imports", library)
		}
	}
}

func TestPackages(t *testing.T) {
	t.Parallel()
	for _, p := range readPackages(t) {
		if !p.doc && !p.onlyTest {
			t.Errorf("package %s has no doc comment: say what lives there, what does not, and where to start reading", p.name)
		}
		if slices.Contains(namesRefused, path.Base(p.name)) {
			t.Errorf("package %s: the name says nothing about what is inside", p.name)
		}
	}
}

// TestMap keeps the table of ARCHITECTURE.md true: it names every package but those inside cli.
func TestMap(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.SplitSeq(string(text), "\n") {
		name, rest, ok := strings.Cut(line, "<-")
		if !ok {
			continue
		}
		fields := strings.Fields(strings.TrimPrefix(name, "L"))
		if len(fields) > 0 && len(fields[0]) == 1 && strings.ContainsAny(fields[0], "01234567") {
			fields = fields[1:]
		}
		rows = append(rows, fields[0]+" <- "+strings.Join(strings.Fields(strings.ReplaceAll(rest, ",", " ")), " "))
	}
	for _, l := range layers {
		for name, list := range l.rooms {
			if strings.HasPrefix(name, "/cli/") || name == "/" || name == "/bench" || strings.HasPrefix(name, "/scripts") {
				continue
			}
			want := strings.TrimPrefix(name, "/") + " <- " + strings.TrimSpace(strings.ReplaceAll(" "+withoutCLI(list), " /", " "))
			if !slices.Contains(rows, want) {
				t.Errorf("ARCHITECTURE.md has no row %q", want)
			}
		}
	}
}

func withoutCLI(list string) string {
	words := strings.Fields(list)
	words = slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, "/cli/") })
	if len(words) == 0 {
		return "-"
	}
	return strings.Join(words, " ")
}

// roomOf gives the name that the table has for an import of our own.
func roomOf(imported string) (room string, own bool) {
	rest, own := strings.CutPrefix(imported, module)
	if !own {
		return "", false
	}
	if below, ok := strings.CutPrefix(rest, "/pkg/"); ok {
		return below, true
	}
	return "/" + strings.TrimPrefix(rest, "/"), true
}

// libraryOf gives the longest entry of libraries that an import belongs to.
func libraryOf(imported string) string {
	best := ""
	for library := range maps.Keys(libraries) {
		if (imported == library || strings.HasPrefix(imported, library+"/")) && len(library) > len(best) {
			best = library
		}
	}
	return best
}

// notOurs says whether a directory holds no packages of this module.
func notOurs(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod")) // a module of its own
	return err == nil || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata"
}

// readPackages reads the imports and the doc comments of every package of the module.
func readPackages(t *testing.T) []ours {
	t.Helper()
	found := map[string]*ours{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != "." && notOurs(file, d.Name()):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, ".go"):
			return nil
		}
		return readFile(found, filepath.ToSlash(file))
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 20 {
		t.Fatalf("found %d packages: is this test run in the root of the module?", len(found))
	}
	out := make([]ours, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, *found[name])
	}
	return out
}

func readFile(found map[string]*ours, file string) error {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return err
	}
	dir := path.Dir(file)
	if dir == "." {
		dir = ""
	}
	name, _ := roomOf(module + "/" + dir)
	p := found[name]
	if p == nil {
		p = &ours{name: name, imports: map[string]string{}, onlyTest: true}
		found[name] = p
	}
	if strings.HasSuffix(file, "_test.go") {
		return nil
	}
	p.onlyTest = false
	p.doc = p.doc || hasDoc(f)
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		p.imports[imported] = file
	}
	return nil
}

// hasDoc takes a sentence for a comment, not the name alone.
func hasDoc(f *ast.File) bool { return f.Doc != nil && len(f.Doc.Text()) > 40 }
