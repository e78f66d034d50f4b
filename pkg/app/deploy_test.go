package app_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/embedding"
)

const measuredConfig = `
namespace: measured
collections:
  - name: items
    fields: [{name: title, type: string}]
    hooks: {post: {bind: {type: javascript, file: hook.js}}}
    search:
      - {name: main, mode: text, fields: [title], autoRegenerate: true}
      - {name: near, mode: vector, vector: {group: texts, fields: [title]}, autoRegenerate: true}
    permissions: {public: {methods: {get: true, post: true}}, user: {methods: {}}}
jobs:
  - {name: fine, type: javascript, file: fine.js}
  - {name: broken, type: javascript, file: broken.js}
snapshots:
  - {name: daily, enabled: true, schedule: "0 3 1 1 *"}
`

// measuredService is a service that has something to tell by every metric.
func measuredService(t *testing.T) *service {
	t.Helper()
	s := run(t, func(c *app.Config) {
		c.Embedding = embedding.Config{
			Providers: []embedding.ProviderConfig{{Name: "demo", Type: "hash", Dimensions: 8}},
			Groups:    []embedding.GroupConfig{{Name: "texts", Members: []string{"demo"}}},
		}
	})
	for name, text := range map[string]string{
		"hook.js":   "module.exports = (ctx) => { if (ctx.data.title === 'broken') null.x }\n",
		"fine.js":   "module.exports = () => 1\n",
		"broken.js": "module.exports = (ctx) => { if (ctx) null.x }\n",
	} {
		path := filepath.Join(s.dir, "measured", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.register("measured", measuredConfig)
	const at = "/api/v1/_/measured/"
	s.do("POST", at+"items", text(`{"title": "a stone"}`)).want(t, 201)
	if broken := s.do("POST", at+"items", text(`{"title": "broken"}`)); broken.status < 400 {
		t.Fatalf("a hook that fails: %s", broken.body)
	}
	s.do("GET", at+"items?q=stone&qName=main").want(t, 200)
	s.do("POST", at+"_/jobs/broken/run", admin).want(t, 202)
	s.do("POST", at+"_/jobs/fine/run", admin).want(t, 202)
	taken := s.do("POST", at+"_/admin/snapshots", admin, text(`{"profile": "daily"}`))
	taken.want(t, 202)
	end := s.ended(taken.header.Get("Location"), admin)
	id := regexp.MustCompile(`"snapshot":"([^"]+)"`).FindStringSubmatch(end)
	if !strings.Contains(end, `"status":"succeeded"`) || id == nil {
		t.Fatal(end)
	}
	s.do("POST", "/api/v1/mcp", session(s.agentToken()), text(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"projects_list","arguments":{}}}`)).want(t, 200)
	for _, soon := range []string{
		`svc_job_runs_total{job="broken",namespace="measured",status="failed"} 1`, `svc_snapshot_last_success_timestamp_seconds{namespace="measured",profile="daily"}`,
		`svc_embedding_calls_total{group="texts",member="demo",outcome="ok"}`, `svc_projects{state="ready"} 1`, `svc_run_duration_seconds_count{kind="snapshot"} 1`,
	} {
		s.shows("/metrics", soon)
	}
	s.shows("/metrics", `svc_job_last_success_timestamp_seconds{job="fine",namespace="measured"}`)
	s.do("POST", at+"_/admin/snapshots/"+id[1]+"/verify", admin, text(`{}`)).want(t, 202)
	s.shows("/metrics", `svc_snapshot_last_verified_timestamp_seconds{namespace="measured",profile="daily"}`)
	return s
}

// TestMetricsOfWhatIsGone: where projects come and go, their series go with them, and come back with them.
func TestMetricsOfWhatIsGone(t *testing.T) {
	s := run(t, nil)
	s.file("brief", "h.js", "module.exports = () => 1")
	const config = `
namespace: brief
collections: [{name: items, fields: [{name: title, type: string}], search: [{name: main, mode: text, fields: [title]}], permissions: {public: {methods: {get: true, post: true}}, user: {methods: {}}}}]
actions: [{name: act, hooks: {handle: {type: javascript, file: h.js}}, permissions: {public: {methods: {get: true}}, user: {methods: {}}}}]
jobs: [{name: yearly, cron: "@yearly", type: javascript, file: h.js}]
snapshots: [{name: daily, retention: {keepLast: 3}}]
`
	id := s.register("brief", config)
	s.do("POST", "/api/v1/_/brief/items", text(`{"title": "a"}`)).want(t, http.StatusCreated)
	s.do("GET", "/api/v1/_/brief/_/actions/act").want(t, http.StatusOK)
	for _, soon := range []string{`svc_request_duration_seconds_count{collection="items",method="POST",namespace="brief",status="201"} 1`, `svc_script_runs_total{namespace="brief",outcome="ok"} 1`,
		`svc_snapshots{namespace="brief",profile="daily"}`, `svc_job_slots_skipped_total{job="yearly",namespace="brief"`} {
		s.shows("/metrics", soon)
	}
	s.do("DELETE", "/api/v1/project/"+id, admin).want(t, http.StatusOK)
	if all := s.do("GET", "/metrics"); strings.Contains(all.body, "brief") || !strings.Contains(all.body, `svc_request_duration_seconds_count{collection="",method="GET",namespace="",status="200"}`) {
		t.Errorf("after the project: %s", all.body)
	}
}

// exposed are the metrics of a service, by the names that queries have: those of a histogram's parts, too.
type exposed map[string]*dto.MetricFamily

func scrape(t *testing.T, s *service) exposed {
	t.Helper()
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(strings.NewReader(s.do("GET", "/metrics").body))
	if err != nil {
		t.Fatal(err)
	}
	out := exposed{}
	for name, f := range families {
		out[name] = f
		switch f.GetType() {
		case dto.MetricType_HISTOGRAM, dto.MetricType_SUMMARY:
			out[name+"_count"], out[name+"_sum"] = f, f
			if f.GetType() == dto.MetricType_HISTOGRAM {
				out[name+"_bucket"] = f
				delete(out, name) // there is no series of that name
			}
		default:
		}
	}
	return out
}

// labels are those of a metric's series, with those that Prometheus adds.
func (e exposed) labels(metric string) map[string][]string {
	out := map[string][]string{"instance": nil, "job": nil}
	f := e[metric]
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			out[l.GetName()] = append(out[l.GetName()], l.GetValue())
		}
	}
	switch {
	case strings.HasSuffix(metric, "_bucket"):
		out["le"] = nil
	case f.GetType() == dto.MetricType_SUMMARY:
		for _, q := range f.GetMetric()[0].GetSummary().GetQuantile() {
			out["quantile"] = append(out["quantile"], model.SampleValue(q.GetQuantile()).String())
		}
	default:
	}
	return out
}

// wantedOf is what an expression asks for: metrics, and labels of them or of what was made of them.
type wantedOf struct {
	metrics []string
	labels  []string
}

// wrong tells what an expression asks for that no service exposes.
func (e exposed) wrong(expr parser.Expr) (problems []string, of wantedOf) {
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			of.metrics = append(of.metrics, n.Name)
			if e[n.Name] == nil {
				problems = append(problems, "no metric "+n.Name)
				return nil
			}
			has := e.labels(n.Name)
			for _, m := range n.LabelMatchers {
				if m.Name == model.MetricNameLabel {
					continue
				}
				if values, ok := has[m.Name]; !ok {
					problems = append(problems, n.Name+" has no label "+m.Name)
				} else if why := e[n.Name].GetHelp(); m.Value != ".*" && m.Name != "status" && m.Name != "code" && m.Name != "profile" && m.Value != "" {
					for value := range strings.SplitSeq(m.Value, "|") {
						if !slices.Contains(values, value) && !regexp.MustCompile(`\b`+regexp.QuoteMeta(value)+`\b`).MatchString(why) {
							problems = append(problems, n.Name+" has no "+m.Name+" of "+value+", nor is it in its text")
						}
					}
				}
			}
		case *parser.AggregateExpr:
			of.labels = append(of.labels, n.Grouping...)
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				of.labels = append(of.labels, n.VectorMatching.MatchingLabels...)
			}
		}
		return nil
	})
	known := map[string]bool{"le": true}
	for _, m := range of.metrics {
		for l := range e.labels(m) {
			known[l] = true
		}
	}
	for _, l := range of.labels {
		if !known[l] {
			problems = append(problems, "a label "+l+" that none of its metrics has")
		}
	}
	return problems, of
}

var labelInText = regexp.MustCompile(`\{\{ *(?:\$labels\.)?([a-z_]+)`)

// named is which labels a text in which they are replaced names.
func named(text string) (out []string) {
	for _, m := range labelInText.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// left says whether a label is there in what an expression gives.
func (e exposed) left(expr parser.Expr, label string) bool {
	switch n := expr.(type) {
	case *parser.ParenExpr:
		return e.left(n.Expr, label)
	case *parser.AggregateExpr:
		if n.Op == parser.TOPK {
			return e.left(n.Expr, label)
		}
		return !n.Without && slices.Contains(n.Grouping, label)
	case *parser.BinaryExpr:
		return e.left(n.LHS, label) || e.left(n.RHS, label)
	case *parser.Call:
		return slices.ContainsFunc(n.Args, func(a parser.Expr) bool { return e.left(a, label) })
	case *parser.MatrixSelector:
		return e.left(n.VectorSelector, label)
	case *parser.StepInvariantExpr:
		return e.left(n.Expr, label)
	case *parser.VectorSelector:
		_, ok := e.labels(n.Name)[label]
		return ok && label != "le"
	}
	return false
}

// TestDeploy holds the alerts and the dashboard of deploy/ against what a service exposes: as Prometheus itself parses them, each metric, label, and value of a
// label is there, and each label that a text names is left in what the expression gives.
func TestDeploy(t *testing.T) {
	t.Parallel()
	there := scrape(t, measuredService(t))
	promql := parser.NewParser(parser.Options{})

	content, err := os.ReadFile("../../deploy/prometheus/svc.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(content, false, model.LegacyValidation, promql, slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Fatal(err)
	}
	used, names := map[string]bool{}, map[string]bool{}
	check := func(where, query string, texts ...string) {
		t.Helper()
		expr, err := promql.ParseExpr(query)
		if err != nil {
			t.Errorf("%s: %v", where, err)
			return
		}
		problems, of := there.wrong(expr)
		for _, problem := range problems {
			t.Errorf("%s: %s: %s", where, problem, query)
		}
		for _, m := range of.metrics {
			used[m] = true
		}
		for _, label := range named(strings.Join(texts, " ")) {
			if !there.left(expr, label) {
				t.Errorf("%s: the label %s is not left by %s", where, label, query)
			}
		}
	}
	alerts := 0
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			alerts++
			if severity := r.Labels["severity"]; r.Annotations["summary"] == "" || names[r.Alert] || severity != "page" && severity != "ticket" {
				t.Errorf("%s needs a name of its own, a summary, and a severity of page or ticket", r.Alert)
			}
			names[r.Alert] = true
			check(r.Alert, r.Expr, r.Annotations["summary"], r.Annotations["description"])
		}
	}
	if alerts < 20 {
		t.Errorf("%d alerts: where are the others?", alerts)
	}
	checkDashboard(t, check)

	told, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range there {
		if strings.HasPrefix(name, "svc_") && !strings.Contains(string(told), f.GetName()) {
			t.Errorf("docs/operations.md does not tell of %s", f.GetName())
		}
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count"), "_sum")
		of := f.GetName()
		if strings.HasPrefix(of, "svc_") && !used[of] && !used[base+"_bucket"] && !used[base+"_count"] && !slices.Contains(undrawn, of) {
			t.Errorf("neither the dashboard nor an alert has %s", of)
		}
	}
}

// undrawn are metrics that are for other eyes.
var undrawn = []string{"svc_embedding_texts_total", "svc_picture_seconds_total", "svc_job_slots_skipped_total"}

// checkDashboard checks the expressions of the dashboard, and that its panels have places of their own.
func checkDashboard(t *testing.T, check func(where, query string, texts ...string)) {
	t.Helper()
	content, err := os.ReadFile("../../deploy/grafana/svc.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		UID, Title string
		Templating struct {
			List []struct{ Name, Definition string }
		}
		Panels []struct {
			ID          int
			Type, Title string
			GridPos     struct{ H, W, X, Y int }
			Targets     []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(content, &board); err != nil || board.UID == "" || board.Title == "" {
		t.Fatalf("no dashboard: %v", err)
	}
	fill := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$namespace", ".*")
	for _, v := range board.Templating.List {
		if inside, ok := strings.CutPrefix(v.Definition, "label_values("); ok {
			metric, label, _ := strings.Cut(strings.TrimSuffix(inside, ")"), ", ")
			check("the variable "+v.Name, "count by ("+label+") ("+metric+")")
		}
	}
	seen, places, queries := map[int]bool{}, map[[2]int]string{}, 0
	for _, p := range board.Panels {
		if seen[p.ID] || p.Title == "" {
			t.Errorf("panel %d %q has no id or title of its own", p.ID, p.Title)
		}
		seen[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := places[[2]int{x, y}]; other != "" || x > 23 {
					t.Fatalf("panel %q lies over %q", p.Title, other)
				}
				places[[2]int{x, y}] = p.Title
			}
		}
		for _, target := range p.Targets {
			queries++
			if strings.Contains(fill.Replace(target.Expr), "$") {
				t.Errorf("panel %q has a variable that is not there: %s", p.Title, target.Expr)
			}
			check(p.Title, fill.Replace(target.Expr), target.LegendFormat)
		}
	}
	if queries < 40 {
		t.Errorf("%d queries: where are the others?", queries)
	}
}

// agentToken gives a personal access token that sees projects.
func (s *service) agentToken() string {
	s.t.Helper()
	s.do("POST", "/api/v1/user", admin, text(`{"username": "agent-owner", "password": "`+password+`", "isAdmin": true}`)).want(s.t, 201)
	jwt := s.do("POST", "/api/v1/login", text(`{"username": "agent-owner", "password": "`+password+`"}`)).field("token")
	return s.do("POST", "/api/v1/token", session(jwt), text(`{"name": "agent", "scopes": ["project.read"]}`)).field("token")
}
