package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

const (
	authorCount = 200
	batch       = 500
	bodyLength  = 2048
)

// articles are those in the store, and what makes more of them.
type articles struct {
	rng     *rand.Rand
	words   []string
	authors []string // ids
	ids     []string

	collection string // where they are
}

// seeded starts the service with articles in its store.
func seeded(ctx context.Context, o options, articles int) (*server, *articles, error) {
	s, err := newServer(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	if err = s.start(ctx, "/readyz"); err == nil {
		a, seedErr := seed(ctx, s, articles)
		if seedErr == nil {
			return s, a, nil
		}
		err = seedErr
	}
	return nil, nil, errors.Join(err, s.remove())
}

// seed registers the project and fills it by bulk creates.
func seed(ctx context.Context, s *server, n int) (*articles, error) {
	registration := map[string]any{"name": "bench", "configFile": "bench", "enabled": true}
	var project struct {
		ID string `json:"id"`
	}
	if err := s.want(ctx, http.MethodPost, "/api/v1/project", registration, http.StatusCreated, &project); err != nil {
		return nil, fmt.Errorf("%w (a store that is not empty can't be measured)", err)
	}
	if err := indexed(ctx, s, project.ID); err != nil {
		return nil, err
	}
	a := &articles{collection: "articles", rng: rand.New(rand.NewPCG(7, 42))}
	a.words = vocabulary(a.rng)
	var err error
	if a.authors, err = a.fill(ctx, s, "authors", authorCount, a.author); err != nil {
		return nil, err
	}
	a.ids, err = a.fill(ctx, s, "articles", n, a.article)
	return a, err
}

// indexed waits until the project's indexes are there.
func indexed(ctx context.Context, s *server, id string) error {
	for deadline := time.Now().Add(startLimit); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		var status struct {
			Conditions []struct{ Type, Status string } `json:"conditions"`
		}
		if err := s.want(ctx, http.MethodGet, "/api/v1/project/"+id+"/status", nil, http.StatusOK, &status); err != nil {
			return err
		}
		for _, c := range status.Conditions {
			if c.Type == "IndexesConverged" && c.Status == "True" {
				return nil
			}
		}
	}
	return errors.New("the indexes are not built after " + startLimit.String())
}

// fill creates n records and gives their ids.
func (a *articles) fill(ctx context.Context, s *server, collection string, n int, record func(i int) map[string]any) ([]string, error) {
	var ids []string
	for len(ids) < n {
		var items []any
		for i := len(ids); i < min(n, len(ids)+batch); i++ {
			items = append(items, record(i))
		}
		var answer struct {
			Items []struct {
				ID string `json:"id"`
			} `json:"items"`
		}
		if err := s.want(ctx, http.MethodPost, "/api/v1/_/bench/"+collection, map[string]any{"items": items}, http.StatusCreated, &answer); err != nil {
			return nil, err
		}
		for _, item := range answer.Items {
			ids = append(ids, item.ID)
		}
	}
	return ids, nil
}

func (a *articles) author(i int) map[string]any {
	return map[string]any{"name": a.text(20), "email": fmt.Sprintf("author%d@example.com", i), "bio": a.text(300)}
}

func (a *articles) article(i int) map[string]any {
	title, body := a.text(45), a.text(bodyLength)
	at := time.Date(2023, time.January, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(a.rng.Int64N(int64(3 * 365 * 24 * time.Hour))))
	return map[string]any{
		"title": title, "slug": fmt.Sprintf("article-%06d", i), "body": body,
		"tags":   []string{fmt.Sprintf("tag%02d", a.rng.IntN(20)), fmt.Sprintf("tag%02d", 20+a.rng.IntN(20))},
		"status": []string{"published", "published", "published", "draft", "archived"}[a.rng.IntN(5)],
		"author": a.authors[a.rng.IntN(len(a.authors))], "views": a.rng.IntN(100000), "active": a.rng.IntN(100) < 85,
		"publishedAt": at.Format("2006-01-02T15:04:05.000Z"), "lang": []string{"en", "de", "fr"}[a.rng.IntN(3)],
		"rating": float64(a.rng.IntN(500)) / 100,
		"seo":    map[string]any{"title": title, "description": body[:120], "noindex": a.rng.IntN(10) == 0},
	}
}

// text is words up to a length.
func (a *articles) text(length int) string {
	var b strings.Builder
	for b.Len() < length {
		b.WriteString(a.words[a.rng.IntN(len(a.words))])
		b.WriteByte(' ')
	}
	return b.String()[:length-1] + "."
}

func vocabulary(rng *rand.Rand) []string {
	syllables := strings.Fields("ba ce di fo gu ha je ki lo mu na pe qui ro su ta ve wi xo zu tri sta plo gre bran")
	words := make([]string, 3000)
	for i := range words {
		for range 2 + rng.IntN(3) {
			words[i] += syllables[rng.IntN(len(syllables))]
		}
	}
	return words
}
