// Package report is what a run of a project's own tests tells, as lines of JSON: svcd writes them, svcctl shows them.
//
// What does not live here: running the tests (pkg/trial), and what people see of it (cli/project).
package report

// Protocol is the version of this form. Who reads another one refuses it.
const Protocol = 1

// Event is one line. One of its members is there.
type Event struct {
	Begin *Begin `json:"begin,omitempty"`
	Case  *Case  `json:"case,omitempty"`
	End   *End   `json:"end,omitempty"`
}

// Begin is the first event.
type Begin struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"` // of svcd
}

// Statuses of a case.
const (
	Passed  = "passed"
	Failed  = "failed"
	Skipped = "skipped"
)

// Case is a case that has ended. Files are relative to the project's directory.
type Case struct {
	File           string      `json:"file"`
	Line           int         `json:"line"`
	Column         int         `json:"column"`
	Suite          string      `json:"suite"`
	Name           string      `json:"name"`
	Status         string      `json:"status"`
	Reason         string      `json:"reason,omitempty"` // why it was skipped
	Milliseconds   float64     `json:"milliseconds"`
	Golden         *Golden     `json:"golden,omitempty"` // of golden queries
	Failures       []Failure   `json:"failures,omitempty"`
	ScriptFailures []Script    `json:"scriptFailures,omitempty"` // of a case that failed
	Logs           []ScriptLog `json:"logs,omitempty"`           // of a case that failed
}

// Golden is how well a search answers golden queries.
type Golden struct {
	Collection string  `json:"collection"`
	Search     string  `json:"search"`
	Queries    int     `json:"queries"`
	NDCG10     float64 `json:"ndcg10"`
	Recall100  float64 `json:"recall100"`
	Gates      Gates   `json:"gates"`
	Text       string  `json:"text"` // the measures and their gates, for people
}

// Gates are what a search has to reach; 0 is none.
type Gates struct {
	NDCG10    float64 `json:"ndcg10,omitempty"`
	Recall100 float64 `json:"recall100,omitempty"`
}

// Failure is one expectation that did not hold.
type Failure struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Path     string `json:"path"` // of what was looked at: body.items[0].title
	Message  string `json:"message"`
	Expected string `json:"expected,omitempty"`
	Actual   string `json:"actual,omitempty"`
}

// Script is where a script failed.
type Script struct {
	At      string `json:"at"` // file:line:column
	Message string `json:"message"`
}

// ScriptLog is a line that a script has logged.
type ScriptLog struct {
	Level  string `json:"level"`
	Script string `json:"script"`
	Text   string `json:"text"`
}

// End is the last event.
type End struct {
	Passed       int       `json:"passed"`
	Failed       int       `json:"failed"`
	Skipped      int       `json:"skipped"`
	Milliseconds float64   `json:"milliseconds"`
	Coverage     *Coverage `json:"coverage,omitempty"` // of all cases; absent when some were left out
	Problems     []Problem `json:"problems,omitempty"` // why nothing was run
}

// Problem is something that keeps the tests from being run.
type Problem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
}

// Coverage is what of a project its tests have used.
type Coverage struct {
	Rules   []Rule  `json:"rules"`
	Scripts []Usage `json:"scripts"`
}

// Rule is a method that a permission set allows.
type Rule struct {
	Of     string `json:"of"` // a collection, or actions.<name>
	Set    string `json:"set"`
	Method string `json:"method"`
	Count  int    `json:"count"` // how often it let somebody in
}

// Usage is a script in one of its places.
type Usage struct {
	Kind  string `json:"kind"`            // hook, action, job, filter, eval, validator or search
	Of    string `json:"of"`              // a collection, an action or a job
	Place string `json:"place,omitempty"` // a stage
	File  string `json:"file"`
	Count int    `json:"count"`
}

// Covered gives how much was used, of how much.
func (c *Coverage) Covered() (used, of int) {
	for _, r := range c.Rules {
		if of++; r.Count > 0 {
			used++
		}
	}
	for _, s := range c.Scripts {
		if of++; s.Count > 0 {
			used++
		}
	}
	return used, of
}
