package project

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/cli/command/commandtest"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/trial/report"
)

func TestParse(t *testing.T) {
	t.Parallel()
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	commandtest.Options(t, map[string]commandtest.Verb{
		"register":   commandtest.Of(newRegister),
		"unregister": commandtest.Of(newUnregister),
		"reload":     commandtest.Of(newReload),
		"events":     commandtest.Of(newEvents),
		"rollback":   commandtest.Of(newRollback),
		"status":     commandtest.Of(newStatus),
		"validate":   commandtest.Of(newValidate),
		"apply":      commandtest.Of(newApply),
		"wait":       commandtest.Of(newWait),
		"render":     commandtest.Of(newRender),
		"fmt":        commandtest.Of(newFmt),
		"test":       commandtest.Of(newTest),
	}, map[string]any{
		"register blog": registerOptions{ConfigFile: "blog", Name: "blog"},
		"register -f blog/project.yaml --disabled": registerOptions{ConfigFile: "blog/project.yaml", Name: "blog", Disabled: true},
		"register ./blog/project.yaml --name Blog": registerOptions{ConfigFile: filepath.Join(here, "blog", "project.yaml"), Name: "Blog"},
		"register .": registerOptions{ConfigFile: here, Name: filepath.Base(here)},
		"register /srv/projects/shop --description D": registerOptions{ConfigFile: "/srv/projects/shop", Name: "shop", Description: "D"},
		"register":                           nil,
		"register blog -f blog":              nil,
		"unregister blog -y":                 unregisterOptions{Namespace: "blog", Yes: true},
		"unregister -n blog":                 nil, // the name must be said
		"reload blog":                        reloadOptions{Namespace: "blog", Timeout: 2 * time.Minute},
		"reload -n blog --wait --timeout 5s": reloadOptions{Namespace: "blog", Wait: true, Timeout: 5 * time.Second},
		"events blog":                        eventsOptions{Namespace: "blog"},
		"events -n blog -w":                  eventsOptions{Namespace: "blog", Watch: true},
		"events":                             nil,
		"rollback blog --to 3":               rollbackOptions{Namespace: "blog", To: 3, Timeout: 2 * time.Minute},
		"rollback blog --to 3 -y --wait":     rollbackOptions{Namespace: "blog", To: 3, Yes: true, Wait: true, Timeout: 2 * time.Minute},
		"rollback blog":                      nil,
		"rollback blog --to 0":               nil,
		"status blog":                        statusOptions{Namespace: "blog", Timeout: 2 * time.Minute},
		"status blog --wait --timeout 0":     statusOptions{Namespace: "blog", Wait: true},
		"status":                             nil,
		"status blog -w":                     statusOptions{Namespace: "blog", Watch: true, Timeout: 2 * time.Minute},
		"wait project/blog":                  waitOptions{Namespace: "blog", For: "condition=Ready", Timeout: 2 * time.Minute},
		"wait blog --for condition=A=false":  waitOptions{Namespace: "blog", For: "condition=A=false", Timeout: 2 * time.Minute},
		"wait blog --for condition=A=maybe":  nil,
		"wait blog --for condition==True":    nil,
		"wait blog --for a":                  nil,
		"wait blog --for Stalled=False":      waitOptions{Namespace: "blog", For: "Stalled=False", Timeout: 2 * time.Minute},
		"apply a -f b":                       applyOptions{Dirs: []string{"b", "a"}, Wait: true, Timeout: 2 * time.Minute},
		"apply -f a --allow slow --dry-run":  applyOptions{Dirs: []string{"a"}, Allow: "slow", DryRun: true, Wait: true, Timeout: 2 * time.Minute},
		"apply -f a --prune -y":              applyOptions{Dirs: []string{"a"}, Prune: true, Yes: true, Wait: true, Timeout: 2 * time.Minute},
		"apply":                              nil,
		"render":                             renderOptions{Path: "."},
		"fmt a -w":                           fmtOptions{Path: "a", Write: true},
		"fmt --check":                        fmtOptions{Path: ".", Check: true},
		"render a --show-secrets":            renderOptions{Path: "a", ShowSecrets: true},
		"reload":                             nil,
		"validate":                           validateOptions{Paths: []string{"."}},
		"test":                               testOptions{Path: "."},
		"test a --run x --watch":             testOptions{Path: "a", Run: "x", Watch: true},
		"test a --junit f --coverage-min 9":  testOptions{Path: "a", JUnit: "f", CoverageMin: 9},
		"test a b":                           nil,
		"test a --coverage-min -1":           nil,
		"validate a b --strict":              validateOptions{Paths: []string{"a", "b"}, Strict: true},
	})
}

// What stands in a config can't begin another workflow command or escape its own.
func TestAnnotation(t *testing.T) {
	t.Parallel()
	got := annotation(schema.Problem{
		Position: schema.Position{File: "a,b:c\n.yaml", Line: 3, Column: 5},
		Path:     "fields[0]", Message: "100%\n::error::x\x1b", Warning: true,
	})
	if diff := cmp.Diff(`::warning file=a%2Cb%3Ac%0A.yaml,line=3,col=5::fields[0]: 100%25%0A::error::x\x1b`, got); diff != "" {
		t.Fatal(diff)
	}
}

// Of a long log the last lines are shown, and repetitions once.
func TestShowLogs(t *testing.T) {
	t.Parallel()
	var logs []report.ScriptLog
	for i := range 30 {
		logs = append(logs, report.ScriptLog{Level: "info", Script: "a.js", Text: strconv.Itoa(i)})
	}
	last := logs[29]
	var out lines
	showLogs(&out, append(logs, last, last))
	got := strings.Split(strings.TrimSuffix(out.text, "\n"), "\n")
	if len(got) != 21 || got[0] != "    log    … 10 lines before" || got[1] != "    log    a.js: info: 10" || got[20] != "    log    a.js: info: 29 (3 times)" {
		t.Errorf("%q", got)
	}
}
