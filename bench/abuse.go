package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	abuseRounds = 5
	abusers     = 16 // connections of the one caller who asks for much
)

// abuse is queries of one kind, at the limits of what a query may ask for. All read every record, by no index.
type abuse struct {
	name  string
	paths []string
}

// measureAbuse reads at a fixed rate, by turns alone and while one caller sends the most expensive queries there are.
func measureAbuse(ctx context.Context, o options) (err error) {
	s, err := newServer(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	if err := s.addCollection("notes", "middle", nil); err != nil {
		return err
	}
	if err := s.start(ctx, "/readyz"); err != nil {
		return err
	}
	a, err := seed(ctx, s, 1)
	if err != nil {
		return err
	}
	notes := *a
	notes.collection = "middle"
	if notes.ids, err = a.fill(ctx, s, notes.collection, facetNotes, a.note); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d records created\n", facetNotes)
	var floods []*flood
	all := abuse{name: "all of them"}
	for _, kind := range append(notes.abuses(), all) {
		if kind.name == all.name {
			kind = all
		}
		all.paths = append(all.paths, kind.paths...)
		for _, path := range kind.paths { // what is refused at once would measure nothing
			status, answer, err := s.call(ctx, http.MethodGet, path, nil)
			if err != nil || status != http.StatusOK && !bytes.Contains(answer, []byte(`"query_too_slow"`)) {
				return errors.Join(fmt.Errorf("%s: status %d: %.300s", kind.name, status, answer), err)
			}
		}
		floods = append(floods, &flood{name: kind.name + " (target: 2)", sent: new(atomic.Int64), blow: func(ctx context.Context, f *flood) {
			kind.blow(ctx, s.addr, f)
		}})
	}
	return weather(ctx, s, notes.noteRead(), floods, abuseRounds, o.duration)
}

// blow sends queries until ctx ends, over all connections.
func (k abuse) blow(ctx context.Context, addr string, f *flood) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: abusers}}
	defer client.CloseIdleConnections()
	var wg sync.WaitGroup
	for i := range abusers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 3))
			for ctx.Err() == nil {
				status, err := ask(ctx, client, "http://"+addr+k.paths[rng.IntN(len(k.paths))])
				if err == nil {
					f.sent.Add(1)
					tally(&f.answers, status)
				}
				if err != nil || status == http.StatusTooManyRequests { // told to go away: a refusal costs nothing to speak of
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
}

// ask sends one query and gives the status of the answer.
func ask(ctx context.Context, client *http.Client, address string) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("X-Admin-Token", adminToken)
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, errors.Join(err, resp.Body.Close())
}

// abuses are the kinds.
func (a *articles) abuses() []abuse {
	list := func(more, filter string) string {
		return a.path() + "?limit=1&filter=" + url.QueryEscape(filter) + more
	}
	const slow = `{"body":{"$regex":"(a|e|i|o|u)+x[a-z]* .*zzzz","$options":"i"}}`
	deep := slow
	for range 3 { // $or and $and: the 8 levels that are allowed
		deep = `{"$or":[{"title":"nothing"},{"$and":[{"status":{"$ne":"x"}},` + deep + `]}]}`
	}
	var clauses, values []string
	for i := range 98 {
		clauses = append(clauses, fmt.Sprintf(`{"title":{"$regex":"zz%d"}}`, i))
	}
	for i := range 400 { // as long as a filter may be
		values = append(values, fmt.Sprintf("%q", "nothing "+a.words[i%len(a.words)]))
	}
	var heavy []string
	for range 17 {
		heavy = append(heavy, `{"$addFields":{"t":{"$toUpper":{"$concat":["$title","$body"]}}}}`)
	}
	heavy = append(heavy, `{"$group":{"_id":{"$substrCP":["$t",0,2]},"n":{"$sum":1},"t":{"$max":"$t"}}}`, `{"$sort":{"t":1}}`, `{"$limit":1}`)
	pipeline := func(stages []string) string {
		return a.path() + "?limit=1&aggregate=" + url.QueryEscape("["+strings.Join(stages, ",")+"]")
	}
	return []abuse{
		{"lists and counts", []string{
			list("", slow), list("", deep), list("", `{"$or":[`+strings.Join(clauses, ",")+`]}`), list("", `{"body":{"$in":[`+strings.Join(values, ",")+`]}}`),
			list("&count=true", slow), list("&sort=body,title", `{}`), a.path() + "?limit=1000&lookup=author&sort=title",
		}},
		{"aggregates and facets", []string{
			pipeline([]string{`{"$match":` + slow + `}`}), pipeline(heavy), a.path() + "/_facet?fields=status,section,lang,author",
		}},
	}
}
