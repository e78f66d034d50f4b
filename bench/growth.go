package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	fewNotes     = 10_000  // what the largest collection is held against
	facetNotes   = 100_000 // whose facets are asked for
	noteLength   = 300     // of a body, for records of about 0.5 KB
	noteSections = 50
	noteAuthors  = 20 // whose records are looked up
	growthRounds = 15
)

// measureGrowth compares reads of a large collection with those of a small one, and lists with lookups with those
// without, and measures facets.
func measureGrowth(ctx context.Context, o options) (err error) {
	s, err := newServer(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	sizes := []int{fewNotes, facetNotes, o.records}
	names := []string{"small", "middle", "large"}
	for _, name := range names {
		if err := s.addCollection("notes", name, nil); err != nil {
			return err
		}
	}
	if err := s.start(ctx, "/readyz"); err != nil {
		return err
	}
	a, err := seed(ctx, s, 1)
	if err != nil {
		return err
	}
	notes := make([]articles, len(names))
	for i, name := range names {
		began := time.Now()
		notes[i] = *a
		notes[i].collection = name
		if notes[i].ids, err = a.fill(ctx, s, name, sizes[i], a.note); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%d records created in %.0f s\n", sizes[i], time.Since(began).Seconds())
	}
	small, middle, large := &notes[0], &notes[1], &notes[2]
	beside := [][]operation{
		{small.noteRead(), large.noteRead()},
		{small.noteList(), large.noteList()},
		{small.noteHundred(""), small.noteHundred("&lookup=author")},
	}
	for _, ops := range beside {
		if err := printGrowth(ctx, s, ops, o); err != nil {
			return err
		}
	}
	return printFacets(ctx, s, middle, o)
}

// note is the i-th record of about 0.5 KB.
func (a *articles) note(i int) map[string]any {
	at := time.Date(2023, time.January, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(a.rng.Int64N(int64(3 * 365 * 24 * time.Hour))))
	return map[string]any{
		"title": a.text(45), "body": a.text(noteLength), "n": i,
		"status":  []string{"published", "published", "published", "draft", "archived"}[a.rng.IntN(5)],
		"section": noteSection(a.rng.IntN(noteSections)), "lang": []string{"en", "de", "fr"}[a.rng.IntN(3)],
		"author": a.authors[a.rng.IntN(noteAuthors)], "publishedAt": at.Format("2006-01-02T15:04:05.000Z"),
	}
}

func noteSection(i int) string { return fmt.Sprintf("section-%02d", i) }

func (a *articles) path() string { return "/api/v1/_/bench/" + a.collection }

// noteRead reads any record by its id.
func (a *articles) noteRead() operation {
	return operation{
		fmt.Sprintf("read-one of %d", len(a.ids)), http.StatusOK, noteLength, "",
		func(rng *rand.Rand) (string, string, string) {
			return http.MethodGet, a.path() + "/" + a.ids[rng.IntN(len(a.ids))], ""
		},
	}
}

// noteList lists the newest records of any section, by an index.
func (a *articles) noteList() operation {
	return operation{
		fmt.Sprintf("list of %d", len(a.ids)), http.StatusOK, 20 * noteLength, "",
		func(rng *rand.Rand) (string, string, string) {
			filter := url.QueryEscape(fmt.Sprintf(`{"section":%q}`, noteSection(rng.IntN(noteSections))))
			return http.MethodGet, a.path() + "?limit=20&sort=-publishedAt&filter=" + filter, ""
		},
	}
}

// noteHundred lists 100 records in order from anywhere on.
func (a *articles) noteHundred(more string) operation {
	return operation{
		"list of 100 rows" + strings.Replace(more, "&", ", ", 1), http.StatusOK, 100 * noteLength, "",
		func(rng *rand.Rand) (string, string, string) {
			filter := url.QueryEscape(fmt.Sprintf(`{"n":{"$gte":%d}}`, rng.IntN(len(a.ids)-100)))
			return http.MethodGet, a.path() + "?limit=100&sort=n&filter=" + filter + more, ""
		},
	}
}

// printGrowth runs operations by turns, and prints what each costs beside the first.
func printGrowth(ctx context.Context, s *server, ops []operation, o options) error {
	runs, err := compare(ctx, s, ops, growthRounds, o.duration/8, nil)
	if err != nil {
		return err
	}
	var w strings.Builder
	w.WriteString("\trequests/s\tp50 ms\tp99 ms\tCPU µs/request\ttimes, by CPU (target: 1.5)\tby p50\t\n")
	for i, op := range ops {
		cpu, p50 := column(runs[i], cpuOf), column(runs[i], p50Of)
		fmt.Fprintf(&w, "%s\t%.0f\t%.2f\t%.2f\t%.0f\t%.2f\t%.2f\t\n", op.name,
			median(column(runs[i], perSecondOf)), median(p50), median(column(runs[i], p99Of)), median(cpu),
			median(ratios(cpu, column(runs[0], cpuOf))), median(ratios(p50, column(runs[0], p50Of))))
	}
	return printTable(w.String() + "\n")
}

// printFacets measures facets of three fields, one request after the other.
func printFacets(ctx context.Context, s *server, a *articles, o options) error {
	path := a.path() + "/_facet?fields=status,section,lang"
	op := operation{"facet", http.StatusOK, noteSections * 20, "", func(*rand.Rand) (string, string, string) { return http.MethodGet, path, "" }}
	var ms, cpu []float64
	for range growthRounds + 1 {
		one, err := load(ctx, s, op, 1, o.duration/8, nil)
		if err != nil {
			return err
		}
		ms, cpu = append(ms, one.P50), append(cpu, one.CPU/1000)
	}
	ms, cpu = ms[1:], cpu[1:] // the first is a warm-up
	return printTable(fmt.Sprintf("\tms (target: 150)\tleast\tCPU ms\t\nfacet of 3 fields of %d\t%.0f\t%.0f\t%.0f\t\n",
		len(a.ids), median(ms), slices.Min(ms), median(cpu)))
}
