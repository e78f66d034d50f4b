package quality

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Depth is how many of what a search finds are looked at: recall is that of the first hundred.
const Depth = 100

// Judged is a query, and what answers it: ids with their grades, of which 1 is the least that is relevant. Binary judgements have no other.
type Judged struct {
	Query    string
	Relevant map[string]int
}

// Scored is a query with what came of it.
type Scored struct {
	Judged

	Found  []string // the best first, Depth of them at most
	NDCG10 float64
	Recall float64 // of the first Depth
}

// Report is the means over queries; each is from 0 to 1.
type Report struct {
	Queries int
	NDCG10  float64  // nDCG@10
	Recall  float64  // of the first Depth
	Each    []Scored // in the order of the queries, without those that nothing answers
}

// Measure asks search for each query that has any answers; it gives ids, the best first, at least Depth where there are so many.
func Measure(queries []Judged, search func(query string) ([]string, error)) (Report, error) {
	var r Report
	for _, q := range queries {
		if len(q.Ideal()) == 0 {
			continue
		}
		ids, err := search(q.Query)
		if err != nil {
			return r, err
		}
		one := Score(q, ids)
		r.Queries++
		r.NDCG10 += one.NDCG10
		r.Recall += one.Recall
		r.Each = append(r.Each, one)
	}
	if r.Queries > 0 {
		r.NDCG10 /= float64(r.Queries)
		r.Recall /= float64(r.Queries)
	}
	return r, nil
}

// Found puts together the first Depth or more of what a search gives page by page, for Measure. page gives the names behind the first offset,
// and whether there are more.
func Found(page func(offset int) (names []string, more bool, err error)) (all []string, err error) {
	for more := true; more && len(all) < Depth; {
		var names []string
		if names, more, err = page(len(all)); err != nil {
			return nil, err
		}
		more = more && len(names) > 0 // or it would be asked for ever
		all = append(all, names...)
	}
	return all, nil
}

// Score measures what was found for one query.
func Score(q Judged, ids []string) Scored {
	ids = once(ids)
	ids = ids[:min(len(ids), Depth)]
	return Scored{Judged: q, Found: ids, NDCG10: NDCG(ids, q.Relevant, 10), Recall: Recall(ids, q.Relevant, Depth)}
}

// Text says how well the query is answered, behind its name.
func (s Scored) Text() string {
	return fmt.Sprintf("has nDCG@10 %.2f, recall@100 %.2f", s.NDCG10, s.Recall)
}

// Shown is how many of the worst people are shown of a search that does not reach its gates.
const Shown = 3

// Worst gives up to n queries that are not answered in full, the worst first.
func (r Report) Worst(n int) []Scored {
	list := slices.DeleteFunc(slices.Clone(r.Each), func(s Scored) bool { return s.NDCG10 >= 1 && s.Recall >= 1 })
	slices.SortStableFunc(list, func(a, b Scored) int { return cmp.Or(cmp.Compare(a.NDCG10, b.NDCG10), cmp.Compare(a.Recall, b.Recall)) })
	return list[:min(n, len(list))]
}

// Ideal gives the ids that answer the query, those of the highest grade first.
func (q Judged) Ideal() []string {
	var ids []string
	for id, grade := range q.Relevant {
		if grade > 0 {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(q.Relevant[b]-q.Relevant[a], cmp.Compare(a, b)) })
	return ids
}

// NDCG is the normalized discounted cumulated gain of the first at ids: the sum of (2^grade-1)/log2(rank+1), divided by that of the best
// order that there is. An id counts where it comes first.
func NDCG(ids []string, relevant map[string]int, at int) float64 {
	var gain, ideal float64
	discount := func(i int) float64 { return 1 / math.Log2(float64(i+2)) }
	ids = once(ids)
	for i, id := range ids[:min(at, len(ids))] {
		gain += gainOf(relevant[id]) * discount(i)
	}
	best := Judged{Relevant: relevant}.Ideal()
	for i, id := range best[:min(at, len(best))] {
		ideal += gainOf(relevant[id]) * discount(i)
	}
	if ideal == 0 {
		return 0
	}
	return gain / ideal
}

func gainOf(grade int) float64 { return math.Exp2(float64(max(grade, 0))) - 1 }

// Recall is the share of what is relevant that is among the first at ids.
func Recall(ids []string, relevant map[string]int, at int) float64 {
	ids = once(ids)
	all := Judged{Relevant: relevant}.Ideal()
	if len(all) == 0 {
		return 0
	}
	found := 0
	for _, id := range ids[:min(at, len(ids))] {
		if relevant[id] > 0 {
			found++
		}
	}
	return float64(found) / float64(len(all))
}

// once leaves out what comes again.
func once(ids []string) []string {
	seen := make(map[string]bool, len(ids))
	out := make([]string, 0, len(ids))
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}

// Gates are the least that a search has to reach; 0 is none.
type Gates struct {
	NDCG10    float64 `json:"ndcg10,omitempty"`
	Recall100 float64 `json:"recall100,omitempty"`
}

// A Gate is one measure, and what it has to be at least.
type Gate struct {
	Measure     string // nDCG@10 or recall@100
	Least, Got  float64
	Key         string // in a golden file
	Held, Asked bool
}

// Of gives both measures of a report with their gates.
func (g Gates) Of(r Report) []Gate {
	gate := func(measure, key string, least, got float64) Gate {
		// What is written with two digits and computed as a mean may differ in the last bit.
		return Gate{Measure: measure, Key: key, Least: least, Got: got, Asked: least > 0, Held: got >= least-1e-9}
	}
	return []Gate{gate("nDCG@10", "ndcg10", g.NDCG10, r.NDCG10), gate("recall@100", "recall100", g.Recall100, r.Recall)}
}

// Held says that a report passes all gates.
func (g Gates) Held(r Report) bool {
	return !slices.ContainsFunc(g.Of(r), func(one Gate) bool { return !one.Held })
}

// Rounded is a measure for people: with two digits, and with as many as it takes to tell it from the gate that it does not reach.
func (g Gate) Rounded() string {
	text := fmt.Sprintf("%.2f", g.Got)
	for digits := 3; !g.Held && digits < 8 && text >= fmt.Sprintf("%.*f", digits-1, g.Least); digits++ {
		text = fmt.Sprintf("%.*f", digits, g.Got)
	}
	return text
}

// String tells a measure and its gate in a few words.
func (g Gate) String() string {
	text := g.Measure + " " + g.Rounded()
	if g.Asked {
		text += " (gate " + g.LeastText() + ")"
	}
	return text
}

// LeastText is the gate as it was written, with two digits at least.
func (g Gate) LeastText() string {
	return fmt.Sprintf("%.*f", max(2, len(strconv.FormatFloat(g.Least, 'f', -1, 64))-len("0.")), g.Least)
}

// First shows the beginning of a list of ids.
func First(ids []string) string {
	const most = 10
	if len(ids) == 0 {
		return "nothing"
	}
	text := strings.Join(ids[:min(most, len(ids))], ", ")
	if len(ids) > most {
		text += fmt.Sprintf(", … (%d)", len(ids))
	}
	return text
}
