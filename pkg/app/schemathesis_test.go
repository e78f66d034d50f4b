package app_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/randtest"
)

// TestOpenAPIHolds has schemathesis ask for what the OpenAPI documents of the samples promise, and for what they rule out, and hold every answer against them:
// all of its checks, all of its phases. By itself it takes one collection of each sample, which the seed chooses, and a walk through all of them from record to
// record; with SCHEMATHESIS=10m it takes all of everything, for that long. A failure tells the seed, and the requests for curl. It is in the directory that
// MCP_CLIENTS names, which make agents fills; what OpenAPI has no words for is in testdata/openapi/hooks.py.
func TestOpenAPIHolds(t *testing.T) {
	clients := os.Getenv("MCP_CLIENTS")
	if clients == "" {
		t.Skip("MCP_CLIENTS names no directory that has schemathesis: make agents fills one")
	}
	program, err := filepath.Abs(filepath.Join(clients, "venv", "bin", "schemathesis"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Skip("there is no schemathesis in MCP_CLIENTS: make agents installs it")
	}
	var long time.Duration
	if text := os.Getenv("SCHEMATHESIS"); text != "" {
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	random := randtest.Of(t)
	samples := []string{"blog", "shop"}
	s := run(t, func(c *app.Config) { c.MaxBodySize = 4 << 20 })
	for _, name := range samples {
		if err := os.CopyFS(filepath.Join(s.dir, name), os.DirFS("../../projects/"+name)); err != nil {
			t.Fatal(err)
		}
		s.do("POST", "/api/v1/project", admin, json1(map[string]any{"name": name, "configFile": name})).want(t, http.StatusCreated)
		s.samples(name, 15)
	}
	_, owner := s.user("owner", map[string]any{"isAdmin": true})
	_, token := s.pat(owner, "namespace.blog", "namespace.shop")
	for _, name := range samples {
		t.Run(name, func(t *testing.T) {
			ask := asker{t: t, program: program, document: s.url + "/api/v1/_openapi/" + name, token: token, seed: random.Uint32()}
			if long > 0 {
				seconds := strconv.Itoa(int(long.Seconds()) / len(samples))
				ask.run("examples coverage fuzzing stateful", "--max-time", seconds, "--max-examples", "50")
				return
			}
			ask.run("examples coverage fuzzing", append([]string{"--max-examples", "6"}, s.someOf(name, random)...)...)
			ask.run("stateful", "--max-examples", "20")
		})
	}
}

// samples creates the first records of each file of a sample's content; of those that name others, some may be refused.
func (s *service) samples(project string, most int) {
	s.t.Helper()
	files, err := filepath.Glob("../../projects/" + project + "/content/*.ndjson")
	if err != nil || len(files) == 0 {
		s.t.Fatal(files, err)
	}
	for _, file := range files {
		_, collection, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".ndjson"), "-")
		content, err := os.Open(file) //nolint:gosec // of ours
		if err != nil {
			s.t.Fatal(err)
		}
		lines := bufio.NewScanner(content)
		lines.Buffer(nil, 4<<20)
		made := 0
		for n := 0; n < most && lines.Scan(); n++ {
			if s.do("POST", "/api/v1/_/"+project+"/"+collection, admin, text(lines.Text())).status == http.StatusCreated {
				made++
			}
		}
		if err := content.Close(); err != nil || lines.Err() != nil {
			s.t.Fatal(err, lines.Err())
		}
		if made == 0 && collection != "orders" { // these name products
			s.t.Fatalf("no record of %s could be created", file)
		}
	}
}

// someOf chooses one of the collections that have lists, and all that is small: singletons, actions, assets.
func (s *service) someOf(project string, random *rand.Rand) (arguments []string) {
	s.t.Helper()
	var document struct {
		Tags  []struct{ Name string }
		Paths map[string]map[string]struct {
			OperationID string
			Tags        []string
		}
	}
	if err := json.Unmarshal([]byte(s.do("GET", "/api/v1/_openapi/"+project, admin).body), &document); err != nil {
		s.t.Fatal(err)
	}
	var large []string
	for _, path := range document.Paths {
		if get := path["get"]; strings.HasPrefix(get.OperationID, "list_") {
			large = append(large, get.Tags...)
		}
	}
	slices.Sort(large)
	chosen := large[random.IntN(len(large))]
	for _, tag := range document.Tags {
		if tag.Name == chosen || !slices.Contains(large, tag.Name) {
			arguments = append(arguments, "--include-tag", tag.Name)
		}
	}
	return arguments
}

// asker runs schemathesis.
type asker struct {
	t                        *testing.T
	program, document, token string
	seed                     uint32
}

var linksCovered = regexp.MustCompile(`API Links: +(\d+) covered`)

// run holds the phases, each of which has to have its turn.
func (a asker) run(phases string, arguments ...string) {
	a.t.Helper()
	dir := a.t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/openapi")); err != nil {
		a.t.Fatal(err)
	}
	arguments = append([]string{
		"run", a.document, "--no-color", "--seed", fmt.Sprint(a.seed), "--phases", strings.ReplaceAll(phases, " ", ","), "--generation-database", "none",
		"--output-sanitize", "false", "--report-json-path", "report.json",
	}, arguments...)
	cmd := exec.CommandContext(a.t.Context(), a.program, arguments...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TOKEN="+a.token)
	out, err := cmd.CombinedOutput()
	text := string(out)
	if err != nil {
		if at := strings.Index(text, "= FAILURES ="); at > 0 {
			text = text[at:]
		}
		a.t.Fatalf("schemathesis %s: %v\n%s", strings.Join(arguments, " "), err, text)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "report.json")) //nolint:gosec // of ours
	if err != nil {
		a.t.Fatal(err)
	}
	var report struct {
		Phases map[string]struct{ Status string }
		Cases  struct{ Generated int } `json:"test_cases"`
	}
	if err := json.Unmarshal(raw, &report); err != nil {
		a.t.Fatal(err)
	}
	for phase := range strings.FieldsSeq(phases) {
		if report.Phases[phase].Status != "success" {
			a.t.Errorf("%s: %q\n%s", phase, report.Phases[phase].Status, text)
		}
	}
	links := linksCovered.FindStringSubmatch(text)
	if strings.Contains(phases, "stateful") && (links == nil || links[1] == "0") {
		a.t.Errorf("no answer has led to another request:\n%s", text)
	}
	a.t.Logf("%s with seed %d: %d requests", phases, a.seed, report.Cases.Generated)
}
