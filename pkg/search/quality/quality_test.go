package quality_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/search/quality"
)

// Binary and graded judgements, by hand.
func TestMeasure(t *testing.T) {
	t.Parallel()
	second, third := 1/math.Log2(3), 0.5
	for _, tc := range []struct {
		name         string
		relevant     map[string]int
		found        string
		ndcg, recall float64
	}{
		{"first", map[string]int{"a": 1}, "a x", 1, 1},
		{"second", map[string]int{"a": 1}, "x a", second, 1},
		{"half", map[string]int{"a": 1, "b": 1}, "a", 1 / (1 + second), 0.5},
		{"none", map[string]int{"a": 1}, "x", 0, 0},
		{"nothing", map[string]int{"a": 1}, "", 0, 0},
		{"grades in order", map[string]int{"a": 3, "b": 2, "c": 1}, "a b c", 1, 1},
		{"grades in the other order", map[string]int{"a": 3, "b": 2, "c": 1}, "c b a", (1 + 3*second + 7*third) / (7 + 3*second + third), 1},
		{"what is judged as not relevant counts nothing", map[string]int{"a": 1, "x": 0}, "x a", second, 1},
		{"twice", map[string]int{"a": 1, "b": 1}, "a a b", 1, 1},
		{"more than ten", map[string]int{"a": 1}, "1 2 3 4 5 6 7 8 9 10 a", 0, 1},
		{"more than a hundred", map[string]int{"a": 1}, strings.Join(numbers(quality.Depth), " ") + " a", 0, 0},
	} {
		r, err := quality.Measure([]quality.Judged{{Query: tc.name, Relevant: tc.relevant}, {Query: "nobody judged this"}, {Query: "nor this", Relevant: map[string]int{"a": 0}}},
			func(query string) ([]string, error) {
				if query != tc.name {
					t.Errorf("%s was asked", query)
				}
				return strings.Fields(tc.found), nil
			})
		if err != nil || r.Queries != 1 || len(r.Each) != 1 || math.Abs(r.NDCG10-tc.ndcg) > 1e-9 || math.Abs(r.Recall-tc.recall) > 1e-9 {
			t.Errorf("%s: %+v, %v, want %v and %v", tc.name, r, err, tc.ndcg, tc.recall)
		}
	}
	failed := errors.New("no")
	if _, err := quality.Measure([]quality.Judged{{Query: "a", Relevant: map[string]int{"a": 1}}}, func(string) ([]string, error) { return nil, failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
}

func numbers(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = strings.Repeat("n", i+1)
	}
	return out
}

// The worst come first, and what is answered in full is none of them.
func TestWorst(t *testing.T) {
	t.Parallel()
	answers := map[string]string{"full": "b a", "half": "a", "late": "x b a", "none": "x"}
	var judged []quality.Judged
	for _, q := range []string{"full", "half", "late", "none"} {
		judged = append(judged, quality.Judged{Query: q, Relevant: map[string]int{"a": 1, "b": 2}})
	}
	r, err := quality.Measure(judged, func(q string) ([]string, error) { return strings.Fields(answers[q]), nil })
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range r.Worst(2) {
		got = append(got, s.Query+": "+strings.Join(s.Ideal(), " "))
	}
	if diff := cmp.Diff([]string{"none: b a", "half: b a"}, got); diff != "" {
		t.Error(diff)
	}
	if n := len(r.Worst(9)); n != 3 {
		t.Errorf("%d are not answered in full", n)
	}
}

// Gates hold from what they say on, and what is below one is never shown as if it held.
func TestGates(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		gates  quality.Gates
		report quality.Report
		held   bool
		want   string
	}{
		{quality.Gates{NDCG10: 0.8}, quality.Report{NDCG10: 0.8, Recall: 0.1}, true, "nDCG@10 0.80 (gate 0.80), recall@100 0.10"},
		{quality.Gates{NDCG10: 0.8}, quality.Report{NDCG10: (0.7 + 0.9 + 0.8) / 3, Recall: 1}, true, "nDCG@10 0.80 (gate 0.80), recall@100 1.00"},
		{quality.Gates{NDCG10: 0.8, Recall100: 0.5}, quality.Report{NDCG10: 0.7996, Recall: 0.5}, false, "nDCG@10 0.7996 (gate 0.80), recall@100 0.50 (gate 0.50)"},
		{quality.Gates{NDCG10: 0.805}, quality.Report{NDCG10: 0.804, Recall: 1}, false, "nDCG@10 0.80 (gate 0.805), recall@100 1.00"},
		{quality.Gates{Recall100: 1}, quality.Report{NDCG10: 0.3, Recall: 0.99}, false, "nDCG@10 0.30, recall@100 0.99 (gate 1.00)"},
	} {
		var got []string
		for _, g := range tc.gates.Of(tc.report) {
			got = append(got, g.String())
		}
		if text := strings.Join(got, ", "); text != tc.want || tc.gates.Held(tc.report) != tc.held {
			t.Errorf("%s, held %t; want %s", text, tc.gates.Held(tc.report), tc.want)
		}
	}
}

// Pages are asked for until there are enough names, or no more.
func TestFound(t *testing.T) {
	t.Parallel()
	refused, sixty := errors.New("refused"), strings.Join(numbers(60), " ")
	for _, tc := range []struct {
		name    string
		pages   []string // of names
		more    bool     // behind the last page
		err     error    // of what is behind the last page
		want    string
		offsets []int
	}{
		{name: "one page", pages: []string{"a b"}, want: "a b", offsets: []int{0}},
		{name: "two pages", pages: []string{"a b", "c"}, want: "a b c", offsets: []int{0, 2}},
		{name: "an empty page ends it", pages: []string{"a b", ""}, more: true, want: "a b", offsets: []int{0, 2}},
		{name: "enough", pages: []string{sixty, sixty}, more: true, want: sixty + " " + sixty, offsets: []int{0, 60}},
		{name: "an error", pages: []string{"a b"}, more: true, err: refused, offsets: []int{0, 2}},
	} {
		var offsets []int
		names, err := quality.Found(func(offset int) ([]string, bool, error) {
			offsets = append(offsets, offset)
			if i := len(offsets) - 1; i < len(tc.pages) {
				return strings.Fields(tc.pages[i]), i+1 < len(tc.pages) || tc.more, nil
			}
			return nil, false, tc.err
		})
		if !errors.Is(err, tc.err) || strings.Join(names, " ") != tc.want {
			t.Errorf("%s: %v, %v", tc.name, names, err)
		}
		if diff := cmp.Diff(tc.offsets, offsets); diff != "" {
			t.Errorf("%s: other pages were asked for: %s", tc.name, diff)
		}
	}
}
