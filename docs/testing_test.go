package docs_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/svcctl/svc/pkg/trial"
	"github.com/svcctl/svc/pkg/trial/report"
)

// TestTestingExample runs the suite of testing.md against its project.
func TestTestingExample(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testing.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, block := range regexp.MustCompile("(?s)```(?:yaml|js)\n(?:#|//) ([^\n]+)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		writeFiles(t, dir, map[string]string{block[1]: block[2]})
	}
	var end *report.End
	err = trial.Run(t.Context(), trial.Options{Dir: dir, Entry: "project.yaml", Emit: func(e report.Event) error {
		if e.Case != nil && e.Case.Status != report.Passed {
			t.Errorf("%+v", *e.Case)
		}
		end = e.End
		return nil
	}})
	if err != nil || end == nil || len(end.Problems) > 0 || end.Passed != 8 {
		t.Errorf("%v: %+v", err, end)
	}
}
