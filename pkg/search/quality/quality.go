package quality

import "math"

// Judged is a query, and the ids of what answers it.
type Judged struct {
	Query    string
	Relevant map[string]bool
}

// Report is the means over queries; each is from 0 to 1.
type Report struct {
	Queries int
	NDCG10  float64 // nDCG@10
	Recall  float64 // of the first 100
}

// Measure asks search for each query that has any answers; it gives ids, the best first, at least 100 where there are so many.
func Measure(queries []Judged, search func(query string) ([]string, error)) (Report, error) {
	var r Report
	for _, q := range queries {
		if len(q.Relevant) == 0 {
			continue
		}
		ids, err := search(q.Query)
		if err != nil {
			return r, err
		}
		r.Queries++
		r.NDCG10 += ndcg(ids, q.Relevant, 10)
		r.Recall += recall(ids, q.Relevant, 100)
	}
	if r.Queries > 0 {
		r.NDCG10 /= float64(r.Queries)
		r.Recall /= float64(r.Queries)
	}
	return r, nil
}

func ndcg(ids []string, relevant map[string]bool, at int) float64 {
	var gain, ideal float64
	for i := range at {
		discount := 1 / math.Log2(float64(i+2))
		if i < len(ids) && relevant[ids[i]] {
			gain += discount
		}
		if i < len(relevant) {
			ideal += discount
		}
	}
	return gain / ideal
}

func recall(ids []string, relevant map[string]bool, at int) float64 {
	found := 0
	for _, id := range ids[:min(at, len(ids))] {
		if relevant[id] {
			found++
		}
	}
	return float64(found) / float64(len(relevant))
}
