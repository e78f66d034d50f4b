package doc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

func TestRetry(t *testing.T) {
	t.Parallel()
	refusal := func(status int, after time.Duration) error {
		return &client.Error{Status: status, RetryAfter: after, Problem: api.Problem{Detail: "busy"}}
	}
	gone := &client.UnreachableError{Server: "s", Err: errors.New("gone")}
	for _, tc := range []struct {
		name   string
		limit  time.Duration
		errs   []error
		waits  []time.Duration
		failed bool
	}{
		{"works", time.Minute, nil, nil, false},
		{"429 says when", time.Minute, []error{refusal(429, 7*time.Second)}, []time.Duration{7 * time.Second}, false},
		{"503, 502, 504, no answer", time.Minute, []error{refusal(503, 0), refusal(502, 0), refusal(504, 0), gone}, []time.Duration{
			time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second,
		}, false},
		{"under way from before", time.Minute, []error{refusal(409, 2*time.Second)}, []time.Duration{2 * time.Second}, false},
		{"a conflict", time.Minute, []error{refusal(409, 0)}, nil, true},
		{"a refusal", time.Minute, []error{refusal(400, time.Second)}, nil, true},
		{"for too long", 4 * time.Second, []error{refusal(503, 0), refusal(503, 0), refusal(503, 0)}, []time.Duration{time.Second, 2 * time.Second}, true},
		{"once", 0, []error{refusal(429, 0)}, nil, true},
	} {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		var waits []time.Duration
		notes, calls := 0, 0
		r := &retrier{
			limit: tc.limit, now: func() time.Time { return now }, note: func(string) { notes++ },
			wait: func(_ context.Context, d time.Duration) error {
				now = now.Add(d)
				waits = append(waits, d)
				return nil
			},
		}
		err := r.do(t.Context(), func() error {
			if calls++; calls <= len(tc.errs) {
				return tc.errs[calls-1]
			}
			return nil
		})
		if diff := cmp.Diff(tc.waits, waits); diff != "" || (err != nil) != tc.failed || notes != len(waits) {
			t.Errorf("%s: %v, %d notes, %s", tc.name, err, notes, diff)
		}
	}
}

func TestImportState(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.ndjson.import")
	opts := &importOptions{place: place{"blog", "articles"}, State: path, Batch: 7}
	s, resumed, err := openImportState(opts, "http://s")
	if err != nil || resumed || s.key(1, 7) == "" {
		t.Fatal(resumed, err)
	}
	s.take(api.Record(`{"a":1}`))
	s.Records, s.Hash = 1, "other"
	if s.isThrough() {
		t.Error("other records are taken for those that were through")
	}
	if err := s.save(); err != nil {
		t.Fatal(err)
	}
	again, resumed, err := openImportState(opts, "http://s")
	if err != nil || !resumed || again.key(8, 7) != s.key(8, 7) || again.Records != 1 || again.Batch != 7 {
		t.Errorf("%+v, %v, %v", again, resumed, err)
	}
	for name, tc := range map[string]struct {
		change func(o *importOptions)
		server string
		want   string
	}{
		"server":     {func(*importOptions) {}, "http://t", "of an import to http://s"},
		"collection": {func(o *importOptions) { o.Collection = "pages" }, "http://s", "of an import into blog/articles"},
		"upsert":     {func(o *importOptions) { o.Upsert = "slug" }, "http://s", "of an import into blog/articles"},
	} {
		o := *opts
		tc.change(&o)
		if _, _, err := openImportState(&o, tc.server); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
		o.Restart = true
		if fresh, resumed, err := openImportState(&o, tc.server); err != nil || resumed || fresh.Run == s.Run {
			t.Errorf("%s: %v, %v", name, resumed, err)
		}
	}
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openImportState(opts, "http://s"); err == nil {
		t.Error("a file that is no state was taken for one")
	}
	if err := errors.Join(s.remove(), s.remove()); err != nil {
		t.Error(err)
	}
}
