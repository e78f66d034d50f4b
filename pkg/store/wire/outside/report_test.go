package outside_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tally is what became of the tests of one suite.
type tally struct{ passed, worded, failed, skipped int }

func (t *tally) add(o *tally) {
	t.passed, t.worded, t.failed, t.skipped = t.passed+o.passed, t.worded+o.worded, t.failed+o.failed, t.skipped+o.skipped
}

// row is the line of a sum. What was skipped is not in its share.
func (t *tally) row(name string) string {
	ran := max(t.passed+t.worded+t.failed, 1)
	return fmt.Sprintf("| %s | %d | %d | %d (%.1f %%) | %d |\n", name, t.passed, t.worded, t.failed, 100*float64(t.failed)/float64(ran), t.skipped)
}

// otherWords is the reason of failures that are of the text of an error alone, whose code is that of MongoDB.
const otherWords = "our own words: the code of the error is MongoDB's, the text is ours"

// report makes the table of docs/store.md, and the list of what fails.
func report(results []result) (table, remainder string) {
	tallies := map[string]*tally{}
	reasons, skips := map[string][]string{}, map[string]int{}
	for _, r := range results {
		one := tallies[r.Suite]
		if one == nil {
			one = &tally{}
			tallies[r.Suite] = one
		}
		switch reason := reasonOf(r); {
		case r.Outcome == passed:
			one.passed++
		case r.Outcome == skipped:
			one.skipped++
			skips[reason]++
		case reason == otherWords:
			one.worded++
		default:
			one.failed++
			reasons[reason] = append(reasons[reason], r.Suite+": "+r.Name)
		}
	}
	var b strings.Builder
	b.WriteString("| Suite | Passed | Other words | Failed | Skipped |\n|---|---|---|---|---|\n")
	var specifications, ferret, all tally
	for _, name := range slices.Sorted(maps.Keys(tallies)) {
		one := tallies[name]
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", name, one.passed, one.worded, one.failed, one.skipped)
		all.add(one)
		if strings.HasPrefix(name, "FerretDB") {
			ferret.add(one)
		} else {
			specifications.add(one)
		}
	}
	b.WriteString(specifications.row("the specifications together") + ferret.row("FerretDB together") + all.row("all together"))
	b.WriteString("\n| Failed, because | |\n|---|---|\n")
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(&b, "| %s | %d |\n", reason, len(reasons[reason]))
	}
	b.WriteString("\n| Skipped, because | |\n|---|---|\n")
	for _, reason := range slices.Sorted(maps.Keys(skips)) {
		fmt.Fprintf(&b, "| %s | %d |\n", reason, skips[reason])
	}
	var list strings.Builder
	list.WriteString("What fails of the tests of other projects, and why. Written by make outside UPDATE=1.\n")
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(&list, "\n## %s\n\n%s\n", reason, strings.Join(reasons[reason], "\n"))
	}
	return b.String(), list.String()
}

// rule says why a test fails, or is skipped: by its name and by what it prints.
type rule struct{ suite, name, text, reason string }

// reasonOf gives the reason of the first rule that a result meets; "" if there is none.
func reasonOf(r result) string {
	if r.Outcome == failed && strings.HasPrefix(r.Suite, "FerretDB") && onlyWords(r.Text) {
		return otherWords
	}
	rules := failRules()
	if r.Outcome == skipped {
		rules = skipRules()
	}
	for _, one := range rules {
		if matches(one.suite, r.Suite) && matches(one.name, r.Name) && matches(one.text, r.Text) {
			return one.reason
		}
	}
	if r.Outcome == skipped {
		return "the suite's own reasons"
	}
	return ""
}

func matches(pattern, text string) bool {
	return pattern == "" || regexp.MustCompile(pattern).MatchString(text)
}

// onlyWords says whether a failed test of FerretDB has found the code and the name of an error right.
func onlyWords(text string) bool {
	errs := regexp.MustCompile(`mongo\.(?:Command|Write)Error\{(?:Index:0, )?Code:(\d+), Message:`).FindAllStringSubmatch(text, -1)
	if len(errs) < 2 || strings.Count(text, "Error Trace:") != 1 {
		return false
	}
	return errs[0][1] == errs[1][1]
}

const (
	docsFile      = "../../../../docs/store.md"
	remainderFile = "remainder.txt"
	begins        = "<!-- outside: written by make outside UPDATE=1 -->\n"
	ends          = "<!-- end of outside -->\n"
)

// write keeps the table and the list.
func write(t *testing.T, table, remainder string) {
	t.Helper()
	name := filepath.FromSlash(docsFile)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), begins)
	_, after, ok2 := strings.Cut(rest, ends)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", name)
	}
	for file, content := range map[string]string{name: before + begins + table + ends + after, remainderFile: remainder} {
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil { // part of the repository
			t.Fatal(err)
		}
	}
}
