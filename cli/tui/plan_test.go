package tui_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
)

// giveFiles answers what is asked of a project's files, and of what it is made of.
func (s *service) giveFiles(give func(pattern string, fn func(r *http.Request) any)) {
	give("POST /_/{p}/_/admin/plan", func(*http.Request) any { return s.plan })
	give("GET /_/{p}/_/admin/drift", func(*http.Request) any { return s.drift })
	give("GET /_/{p}/_/actions", func(*http.Request) any {
		return api.List[api.ActionDescription]{Items: []api.ActionDescription{{Name: "publish"}}}
	})
	give("GET /_/{p}/_/assets", func(*http.Request) any {
		return api.List[api.Asset]{Items: []api.Asset{{Name: "site", Path: "public"}}}
	})
}

func samplePlan() api.Plan {
	return api.Plan{
		Namespace: "blog", Generation: 4, Hash: strings.Repeat("a1", 16), Risk: api.RiskDestructive,
		Items: []api.PlanItem{
			{Kind: "collection", Object: "notes", Action: api.PlanCreate, Risk: api.RiskSafe, Detail: "a new collection with 3 fields"},
			{Kind: "field", Object: "articles.subtitle", Action: api.PlanDelete, Risk: api.RiskDestructive, Detail: "240 of 240 records have a value, which is out of reach afterwards", Samples: []string{"6b017e0468e809827a40da57", "6b017e0468e809827a40da58"}},
			{Kind: "index", Object: "articles/slug_1", Action: api.PlanUpdate, Risk: api.RiskSlow, Detail: "is made anew for 240 records"},
		},
		Warnings: []api.ConfigProblem{{File: "project.yaml", Line: 3, Column: 1, Path: "legacy", Message: "no effect", Warning: true}},
	}
}

func sampleDrift() api.Drift {
	return api.Drift{
		Namespace: "blog", Generation: 4,
		Items: []api.DriftItem{
			{Kind: api.DriftConfig, Object: "blog", Action: api.DriftDiffers, Detail: "the files on disk are not what is served"},
			{Kind: api.DriftIndex, Object: "articles/by_hand", Action: api.DriftUnexpected, Detail: "others made it, and it is left alone", Foreign: true},
		},
		Pending: []api.DriftItem{{Kind: api.DriftIndex, Object: "articles/minutes_-1", Action: api.DriftMissing, Detail: "is being made"}},
	}
}

// invalidFiles is the refusal of files that are not valid.
func invalidFiles() map[string]api.Problem {
	return map[string]api.Problem{"/_/blog/_/admin/plan": {
		Status: 422, Code: "invalid_config", Detail: "the config is not valid: pages.yaml:29:17: it is said below (and 1 more)", Problems: sampleBroken().Problems,
	}}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	s := sample()
	s.fail = invalidFiles()
	inTerminal(t, s, "", false, func(t *testing.T, term terminal) {
		term.Press("v")
		term.shows(t, "Projects › Validate blog\n", "The files of blog are not valid", "A reload is refused; what is served stays as it is.",
			"error    pages.yaml:29:17: collections[3].meta.defaultSort[0]: there is no field", "warning  project.yaml:3:1: legacy: no effect")
		term.hides(t, "error:") // it is no failure of the question
		term.Press("D")         // there is no plan of such files
		term.shows(t, "Diff blog\n", "The files of blog are not valid")
		term.Press("v")
		term.change(func() { term.fail = nil })
		term.Press("ctrl+r")
		term.shows(t, "The files of blog are valid", "D shows what a reload would change: 3 changes.", "warning  project.yaml:3:1")
		term.change(func() { term.service.plan = api.Plan{Namespace: "blog", Empty: true} })
		term.Press("ctrl+r")
		term.shows(t, "They are what is served")
		term.Press("7") // of the project that it is about
		term.shows(t, "Projects › blog › Search\n")
		if got, want := term.requests(), strings.TrimSpace(strings.Repeat("POST /_/blog/_/admin/plan\n", 3)); got != want {
			t.Errorf("it asks %s, want %s", got, want)
		}
	})
}

func TestDiffOfFiles(t *testing.T) {
	t.Parallel()
	s := sample()
	s.projects[0].ConfigFile = "elsewhere"
	inTerminal(t, s, "blog", false, func(t *testing.T, term terminal) {
		term.Resize(80, 20)
		term.Press("D")
		term.shows(t, "Projects › blog › Diff blog\n", "3 changes, the greatest risk is destructive.",
			"+ collection notes  safe\n  a new collection", "- field articles.subtitle  destructive\n  240 of 240", "such as 6b017e0468e809827a40da57, 6b01", "~ index articles/slug_1  slow\n",
			"— more below")
		term.Press("G")
		term.shows(t, "What is not as it is declared\n! index articles/by_hand unexpected\n  others made it", "What the service is at now\n! index articles/minutes_-1 missing")
		term.hides(t, "the files on disk are not what is served")
		term.Press("r", "y")
		term.shows(t, "blog: generation 5 is served")
		want := "POST /_/blog/_/admin/plan\nPOST /_/blog/_/admin/reload?wait=true\nPOST /_/blog/_/admin/plan" // again, behind the reload
		if got := term.requests(); got != want {
			t.Errorf("it asks %s, want %s", got, want)
		}
		// Who may not know what has drifted has the plan all the same.
		term.change(func() {
			term.service.plan = api.Plan{Empty: true}
			term.fail = map[string]api.Problem{"/_/blog/_/admin/drift": {Status: 403, Detail: "permission denied"}}
		})
		term.Press("ctrl+r", "g")
		term.shows(t, "Nothing: the files are what is served.")
		term.hides(t, "declared", "error")
		term.Press("esc")
		term.shows(t, "Projects › blog\n")
	})
}

func TestTree(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Press("tab")
		term.shows(t, "Projects › blog › Tree\n", "▸ project/blog", "Ready", "generation 4", "├── collection/articles", "6 fields", "│   ├── index/slug_1", "ready",
			"│   └── search/both", "rrf of main, means", "├── collection/authors", "action/publish", "job/cleanup", "asset/site", "└── profile/orders", "not enabled")
		term.hides(t, "before-restore")
		term.Press("j", "j", "enter")
		term.shows(t, "index slug_1", "Of      articles", "Status  ready")
		term.Press("esc", "k", "enter")
		term.shows(t, "Projects › blog › Collections › articles\n")
		term.Press("2", "tab", "j", "j", "4") // that which has the index with the cursor
		term.shows(t, "Projects › blog › Collections › articles\n")
		term.Press("2", "tab")
		term.change(func() { term.service.collections = nil })
		term.Wait(5 * time.Second)
		term.hides(t, "collection/articles")
		term.Press("end", "enter")
		term.shows(t, "Projects › blog › Snapshots\n")
		term.Press("2", "tab", "tab")
		term.shows(t, "Projects › blog\n", "Conditions")
	})
}
