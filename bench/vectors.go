package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// vectorSearches are added to those of searched.yaml once these were measured.
const vectorSearches = `search:
  - { name: near, mode: vector, vector: { group: hash, fields: [title, body] } }
  - { name: fused, mode: rrf, rrf: { sources: [words, near] } }
`

// vectorSettings has a group whose vectors cost little to make, and as much to compare as those of small models.
func vectorSettings() error {
	if err := os.Setenv("EMBEDDING_PROVIDERS", `[{"name": "hash", "type": "hash", "dimensions": 384}]`); err != nil {
		return err
	}
	return os.Setenv("EMBEDDING_GROUPS", `[{"name": "hash", "members": ["hash"]}]`)
}

// vectors adds searches of mode vector, and measures them.
func (s *server) vectors(ctx context.Context, o options) error {
	file := filepath.Join(s.projectDir(), "searched.yaml")
	config, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(config), "search:\n", vectorSearches, 1)), 0o644); err != nil {
		return err
	}
	err = s.peak(ctx, "vectors of 384 dimensions, by hashing", func() (time.Duration, error) {
		began := time.Now()
		if err := s.want(ctx, http.MethodPost, "/api/v1/_/bench/_/admin/reload?wait=true", nil, http.StatusOK, nil); err != nil {
			return 0, err
		}
		for {
			var queue struct {
				Pending  int
				Searches []struct{ Name, State string }
			}
			if err := s.want(ctx, http.MethodGet, searchPath+"/_queue", nil, http.StatusOK, &queue); err != nil {
				return 0, err
			}
			made := queue.Pending == 0
			for _, one := range queue.Searches {
				made = made && (one.Name != "near" || one.State == "ready")
			}
			if made && len(queue.Searches) > 2 {
				return time.Since(began), nil
			}
			if err := wait(ctx, 50*time.Millisecond); err != nil {
				return 0, err
			}
		}
	}, o.searched)
	if err != nil {
		return err
	}
	fmt.Println()
	return s.measured(ctx, o, []sought{
		{operation: query("vector", "", searchPath+"?limit=20&qName=near&q="), target: ""},
		{operation: query("rrf of text and vector", "", searchPath+"?limit=20&qName=fused&q="), target: "30 ms of 1"},
		{operation: query("rrf, who sees a 200th", "Token: bench-search-token-of-an-author\r\n", searchPath+"?limit=20&qName=fused&q=")},
	})
}
