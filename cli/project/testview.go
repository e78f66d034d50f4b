package project

import (
	"encoding/xml"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/trial/report"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// lines collects what is shown, and is written at once.
type lines struct{ text string }

func (l *lines) add(format string, args ...any) {
	l.text += output.Escape(fmt.Sprintf(format, args...)) + "\n"
}

// painted adds a line whose beginning has a color.
func (l *lines) painted(indent string, paint func(string) string, mark, format string, args ...any) {
	l.text += indent + paint(mark) + output.Escape(fmt.Sprintf(format, args...)) + "\n"
}

func (l *lines) writeTo(w io.Writer) error {
	_, err := io.WriteString(w, l.text)
	return err
}

// showCase shows a case that has ended, where people look on.
func (r *testResults) showCase(c report.Case) error {
	p := r.opts.st.Printer()
	var out lines
	switch {
	case p.Format == formatGitHub:
		for _, f := range c.Failures {
			out.text += annotation(schema.Problem{
				Position: schema.Position{File: f.File, Line: f.Line, Column: f.Column}, Message: c.Name + ": " + told(f),
			}) + "\n"
		}
		return out.writeTo(p.W)
	case !p.ForPeople():
		return nil
	}
	if n := len(r.Cases); n == 1 || r.Cases[n-2].File != c.File {
		if n > 1 {
			out.add("")
		}
		heading := c.File
		if !strings.HasSuffix(c.File, c.Suite) {
			heading += "  " + c.Suite
		}
		out.painted("", p.Style.Bold, output.Escape(heading), "")
	}
	name := c.Name
	if c.Golden != nil {
		name += ": " + c.Golden.Text
	}
	switch c.Status {
	case report.Passed:
		out.painted("  ", p.Style.Green, "✓", " %s (%.0fms)", name, c.Milliseconds)
	case report.Skipped:
		out.painted("  ", p.Style.Yellow, "-", " %s, skipped: %s", c.Name, c.Reason)
	default:
		out.painted("  ", p.Style.Red, "✗", " %s (%.0fms)", name, c.Milliseconds)
		showFailures(&out, p.Style, c)
	}
	return out.writeTo(p.W)
}

// told is a failure in one line.
func told(f report.Failure) string {
	text := strings.TrimSpace(f.Path + " " + f.Message)
	if f.Expected != "" {
		text += ", expected " + f.Expected
	}
	if f.Actual != "" {
		text += ", actual " + f.Actual
	}
	return text
}

func showFailures(out *lines, style output.Style, c report.Case) {
	const indent = "      "
	for _, f := range c.Failures {
		out.add("%s%s:%d:%d", "    ", f.File, f.Line, f.Column)
		out.add("%s%s", indent, strings.TrimSpace(f.Path+" "+f.Message))
		if f.Expected != "" {
			out.painted(indent, style.Green, "expected", "  %s", f.Expected)
		}
		if f.Actual != "" {
			out.painted(indent, style.Red, "actual", "    %s", f.Actual)
		}
	}
	for _, s := range c.ScriptFailures {
		out.painted("    ", style.Red, "script", " %s: %s", s.At, s.Message)
	}
	showLogs(out, c.Logs)
}

// maxLogs is how many lines of a script's log are shown: the last ones.
const maxLogs = 20

// showLogs shows the last lines of the log, those that repeat themselves once.
func showLogs(out *lines, logs []report.ScriptLog) {
	var shown []string
	for i := 0; i < len(logs); {
		first, times := logs[i], 0
		for ; i < len(logs) && logs[i] == first; i++ {
			times++
		}
		line := fmt.Sprintf("%s: %s: %s", first.Script, first.Level, first.Text)
		if times > 1 {
			line += fmt.Sprintf(" (%d times)", times)
		}
		shown = append(shown, line)
	}
	if left := len(shown) - maxLogs; left > 0 {
		out.add("    log    … %d lines before", left)
		shown = shown[left:]
	}
	for _, line := range shown {
		out.add("    log    %s", line)
	}
}

// showEnd shows the coverage and the sum.
func (r *testResults) showEnd() error {
	p := r.opts.st.Printer()
	switch p.Format {
	case output.FormatJSON, output.FormatYAML, output.FormatName:
		var names []string
		for _, c := range r.Cases {
			names = append(names, fmt.Sprintf("%s:%d:%d", c.File, c.Line, c.Column))
		}
		return p.Print(output.Result{Value: r, Names: names})
	}
	for _, problem := range r.Problems {
		line := output.Escape(problemOf(problem).String())
		if p.Format == formatGitHub {
			line = annotation(problemOf(problem))
		}
		if _, err := fmt.Fprintln(p.W, line); err != nil {
			return err
		}
	}
	if len(r.Problems) > 0 {
		r.opts.st.Notef("the tests were not run: problems: %d", len(r.Problems))
		return nil
	}
	if p.Format != formatGitHub && r.Coverage != nil {
		if err := showCoverage(p, r.Coverage); err != nil {
			return err
		}
	}
	return r.showSum(p)
}

func problemOf(p report.Problem) schema.Problem {
	return schema.Problem{Position: schema.Position{File: p.File, Line: max(p.Line, 1), Column: max(p.Column, 1)}, Path: p.Path, Message: p.Message}
}

func (r *testResults) showSum(p output.Printer) error {
	if len(r.Cases) == 0 {
		return nil
	}
	paint, parts := p.Style.Green, []string{fmt.Sprintf("%d passed", r.Passed)}
	if r.Failed > 0 {
		paint, parts = p.Style.Red, append(parts, fmt.Sprintf("%d failed", r.Failed))
	}
	if r.Skipped > 0 {
		parts = append(parts, fmt.Sprintf("%d skipped", r.Skipped))
	}
	covered := ""
	if r.Coverage != nil {
		used, of := r.Coverage.Covered()
		covered = fmt.Sprintf("; %d of %d rules and scripts covered, %d %%", used, of, r.percent())
	}
	var out lines
	out.add("")
	out.painted("", paint, strings.Join(parts, ", "), " in %.1fs%s", r.Milliseconds/1000, covered)
	return out.writeTo(p.W)
}

// unused marks what no case has used.
const unused = "✗"

// showCoverage shows how often each rule let somebody in, and each script ran.
func showCoverage(p output.Printer, c *report.Coverage) error {
	methods := []string{"get", "post", "put", "delete"}
	cell := func(n int) any {
		if n == 0 {
			return output.Painted{Text: unused, Paint: p.Style.Red}
		}
		return strconv.Itoa(n)
	}
	rules := output.NewTable("PERMISSIONS OF", "SET", "GET", "POST", "PUT", "DELETE")
	for i := 0; i < len(c.Rules); {
		first := c.Rules[i]
		row := []any{first.Of, first.Set}
		for _, m := range methods {
			if i < len(c.Rules) && c.Rules[i].Of == first.Of && c.Rules[i].Set == first.Set && c.Rules[i].Method == m {
				row = append(row, cell(c.Rules[i].Count))
				i++
			} else {
				row = append(row, "")
			}
		}
		rules.Row(row...)
	}
	scripts := output.NewTable("SCRIPT", "FOR", "RUNS")
	for _, s := range c.Scripts {
		scripts.Row(s.File, strings.TrimSuffix(s.Kind+" "+s.Of+"."+s.Place, "."), cell(s.Count))
	}
	for _, t := range []*output.Table{rules, scripts} {
		if t.Len() == 0 {
			continue
		}
		if _, err := fmt.Fprintln(p.W); err != nil {
			return err
		}
		if err := p.Print(output.Result{Table: t}); err != nil {
			return err
		}
	}
	return nil
}

// The elements of JUnit XML that all readers know.
type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	File    string        `xml:"file,attr"`
	Line    int           `xml:"line,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitFailure `xml:"failure"`
	Skipped *junitSkipped `xml:"skipped"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

// writeJUnit writes the results for programs that read JUnit XML.
func writeJUnit(name string, cases []report.Case) error {
	var all junitSuites
	for _, c := range cases {
		if n := len(all.Suites); n == 0 || all.Suites[n-1].Name != c.Suite {
			all.Suites = append(all.Suites, junitSuite{Name: c.Suite})
		}
		s := &all.Suites[len(all.Suites)-1]
		s.Tests++
		one := junitCase{Name: c.Name, Class: c.Suite, File: c.File, Line: c.Line, Time: fmt.Sprintf("%.3f", c.Milliseconds/1000)}
		switch c.Status {
		case report.Skipped:
			s.Skipped++
			one.Skipped = &junitSkipped{c.Reason}
		case report.Failed:
			s.Failures++
			var text lines
			showFailures(&text, output.Style{}, c)
			one.Failure = &junitFailure{told(c.Failures[0]), text.text}
		}
		s.Cases = append(s.Cases, one)
	}
	data, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Clean(name), append([]byte(xml.Header), append(data, '\n')...), 0o644) //nolint:gosec // for everybody
}
