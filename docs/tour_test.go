package docs_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestTour runs the lines of tour.md against the samples, and holds what they print against what the page says.
func TestTour(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.sample("blog", "medialib", "authors", "articles", "pages", "settings")
	d.sample("shop", "medialib", "categories", "products", "orders")
	text, err := os.ReadFile("tour.md")
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	var answers []string
	for _, block := range regexp.MustCompile("(?s)\n```(sh|json|)\n(.*?\n)```\n").FindAllStringSubmatch(string(text), -1) {
		if block[1] == "sh" {
			lines.WriteString(block[2])
			continue
		}
		answers = append(answers, block[2])
		fmt.Fprintf(&lines, "echo; echo answer %d ends\n", len(answers))
	}
	if len(answers) < 8 {
		t.Fatalf("the page has %d answers", len(answers))
	}
	rest := d.run("exec 2>/dev/null\n" + lines.String())
	for i, want := range answers {
		printed, after, _ := strings.Cut(rest, fmt.Sprintf("answer %d ends\n", i+1))
		rest = after
		for line := range strings.Lines(want) {
			for part := range strings.SplitSeq(strings.TrimSpace(line), "…") {
				_, behind, found := strings.Cut(printed, part)
				if !found {
					t.Fatalf("%s\n%q is not in the rest of what the lines print: %s", want, part, printed)
				}
				printed = behind
			}
		}
	}
}
