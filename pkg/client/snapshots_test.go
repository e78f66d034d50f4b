package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// What goes out for each call of snapshots and backups.
func TestSnapshotRequests(t *testing.T) {
	t.Parallel()
	no := false
	for want, call := range map[string]func(ctx context.Context, c *client.Client) error{
		"GET snapshots/profiles": func(ctx context.Context, c *client.Client) error {
			_, err := c.SnapshotProfiles(ctx, "blog")
			return err
		},
		"GET snapshots?limit=2&offset=1&profile=daily": func(ctx context.Context, c *client.Client) error {
			_, err := c.ListSnapshots(ctx, "blog", "daily", client.Query{Limit: 2, Offset: 1})
			return err
		},
		"GET snapshots/a?files=true": func(ctx context.Context, c *client.Client) error {
			_, err := c.Snapshot(ctx, "blog", "a", true)
			return err
		},
		`PUT snapshots/a application/json {"pinned":false}`: func(ctx context.Context, c *client.Client) error {
			_, err := c.PinSnapshot(ctx, "blog", "a", false)
			return err
		},
		"DELETE snapshots/a": func(ctx context.Context, c *client.Client) error { return c.DeleteSnapshot(ctx, "blog", "a") },
		`POST snapshots application/json {"profile":"daily"}`: func(ctx context.Context, c *client.Client) error {
			_, err := c.CreateSnapshot(ctx, "blog", "daily")
			return err
		},
		`POST snapshots/a/verify application/json {"sample":0.5}`: func(ctx context.Context, c *client.Client) error {
			_, err := c.VerifySnapshot(ctx, "blog", "a", api.SnapshotVerify{Sample: 0.5})
			return err
		},
		"POST snapshots/a/drill": func(ctx context.Context, c *client.Client) error {
			_, err := c.DrillSnapshot(ctx, "blog", "a")
			return err
		},
		`POST snapshots/a/restore application/json {"collections":["x"],"media":false,"mode":"merge","into":"copy"}`: func(ctx context.Context, c *client.Client) error {
			_, err := c.RestoreSnapshot(ctx, "blog", "a", api.SnapshotRestore{Collections: []string{"x"}, Media: &no, Mode: api.RestoreMerge, Into: "copy"})
			return err
		},
		`POST snapshots/prune application/json {}`: func(ctx context.Context, c *client.Client) error {
			_, err := c.PruneSnapshots(ctx, "blog", "")
			return err
		},
		`POST snapshots/prune application/json {"profile":"daily","dryRun":true}`: func(ctx context.Context, c *client.Client) error {
			_, err := c.PlanPrune(ctx, "blog", "daily")
			return err
		},
		"GET snapshots/a/diff?collection=x&limit=3&with=b": func(ctx context.Context, c *client.Client) error {
			_, err := c.DiffSnapshot(ctx, "blog", "a", client.SnapshotDiffQuery{With: "b", Collection: "x", Limit: 3})
			return err
		},
		"GET snapshots/runs?kind=verify&limit=1&profile=daily&status=running": func(ctx context.Context, c *client.Client) error {
			_, err := c.ListSnapshotRuns(ctx, "blog", client.SnapshotRunsQuery{Status: "running", Kind: "verify", Profile: "daily", Limit: 1})
			return err
		},
		"POST snapshots/a/cancel": func(ctx context.Context, c *client.Client) error {
			_, err := c.CancelSnapshotRun(ctx, "blog", "a")
			return err
		},
		"POST snapshots/import?profile=p application/zstd zst": func(ctx context.Context, c *client.Client) error {
			_, err := c.ImportSnapshot(ctx, "blog", "p", strings.NewReader("zst"), 3)
			return err
		},
		"POST backup": func(ctx context.Context, c *client.Client) error {
			_, err := c.CreateBackup(ctx, "blog")
			return err
		},
		"GET backup/analyze-download?id=a": func(ctx context.Context, c *client.Client) error {
			_, err := c.AnalyzeBackup(ctx, "blog", "a")
			return err
		},
		"POST backup/restore?collections=x%2Cy&dryRun=true&media=false&mode=merge application/zstd zst": func(ctx context.Context, c *client.Client) error {
			_, err := c.RestoreBackup(ctx, "blog", api.SnapshotRestore{Collections: []string{"x", "y"}, Media: &no, Mode: "merge", DryRun: true}, strings.NewReader("zst"), -1)
			return err
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			var got string
			c := serve(t, client.Options{}, func(w http.ResponseWriter, r *http.Request) {
				got = r.Method + " " + strings.TrimPrefix(r.URL.RequestURI(), "/api/v1/_/blog/_/admin/")
				if media := r.Header.Get("Content-Type"); media != "" {
					got += " " + media
				}
				if body, _ := io.ReadAll(r.Body); len(body) > 0 {
					got += " " + string(body)
				}
				fmt.Fprint(w, `{}`)
			})
			if err := call(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An archive is read as it comes, under the name that the service proposes; one that breaks off is no whole one.
func TestSnapshotArchives(t *testing.T) {
	t.Parallel()
	broken := false
	c := serve(t, client.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/zstd")
		w.Header().Set("Content-Disposition", `attachment; filename="blog-daily-a.tar.zst"`)
		fmt.Fprint(w, "half")
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		if broken {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, " and half")
	})
	for _, broken = range []bool{false, true} {
		f, err := c.DownloadBackup(t.Context(), "blog", "")
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(f)
		if f.Name != "blog-daily-a.tar.zst" || f.Size != -1 || broken != (err != nil) || !broken && string(data) != "half and half" {
			t.Errorf("%+v: %q, %v", f, data, err)
		}
		_ = f.Close()
	}
}
