package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// serve starts a server and a client of it that does not wait between attempts.
func serve(t *testing.T, o client.Options, h http.HandlerFunc) *client.Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	o.Server = srv.URL
	o.HTTPClient = srv.Client()
	o.Backoff = func(int) time.Duration { return 0 }
	c, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNewRefusesBadOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []client.Options{
		{},
		{Server: "127.0.0.1:8080"},
		{Server: "ftp://host"},
		{Server: "http://"},
		{Server: "http://user:secret@host"},
		{Server: "http://user:secret%@host"},
		{Server: "user:secret@host"},
		{Server: "http://host?x=secret"},
		{Server: "http://host", Token: "a", AdminToken: "b"},
		{Server: "http://host", AdminToken: "a", CollectionToken: "b"},
	} {
		if _, err := client.New(o); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// Connections are kept for the next request, until nobody asks any more.
func TestCloseIdle(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{}, 1)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"version":"1.2.3"}`) }))
	srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	srv.Start()
	defer srv.Close()
	c, err := client.New(client.Options{Server: srv.URL, HTTPClient: &http.Client{Transport: &http.Transport{}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Version(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.CloseIdle()
	<-closed
}

func TestCredentialHeaders(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		o      client.Options
		header string
	}{
		{client.Options{Token: "secret"}, "X-Auth-Token"},
		{client.Options{AdminToken: "secret"}, "X-Admin-Token"},
		{client.Options{CollectionToken: "secret"}, "Token"},
	} {
		c := serve(t, tc.o, func(w http.ResponseWriter, r *http.Request) {
			for _, h := range []string{"X-Auth-Token", "X-Admin-Token", "Token"} {
				want := ""
				if h == tc.header {
					want = "secret"
				}
				if got := r.Header.Get(h); got != want {
					t.Errorf("%s: got %q, want %q", h, got, want)
				}
			}
			fmt.Fprint(w, `{"version":"1.2.3"}`)
		})
		v, err := c.Version(t.Context())
		if err != nil || v.Version != "1.2.3" {
			t.Errorf("got %+v, %v", v, err)
		}
	}
}

// Each method sends the method, path, query and body that its route has.
func TestRoutes(t *testing.T) {
	t.Parallel()
	rec := api.Record(`{"title":"Hi"}`)
	name := "New"
	for _, tc := range []struct {
		name string
		call func(context.Context, *client.Client) error
		want string
	}{
		{
			"login", func(ctx context.Context, c *client.Client) error { _, err := c.Login(ctx, "ann", "pw"); return err },
			`POST /api/v1/login {"username":"ann","password":"pw"}`,
		},
		{"logout", func(ctx context.Context, c *client.Client) error { return c.Logout(ctx) }, `POST /api/v1/logout`},
		{"rotate", func(ctx context.Context, c *client.Client) error { _, err := c.RotateKeys(ctx); return err }, `POST /api/v1/admin/keys/rotate`},
		{"shutdown", func(ctx context.Context, c *client.Client) error { return c.Shutdown(ctx) }, `POST /api/v1/admin/shutdown`},
		{"logout of all", func(ctx context.Context, c *client.Client) error { return c.LogoutAll(ctx) }, `POST /api/v1/logout?all=true`},
		{"me", func(ctx context.Context, c *client.Client) error { _, err := c.Me(ctx); return err }, `GET /api/v1/me`},
		{
			"password", func(ctx context.Context, c *client.Client) error { return c.ChangePassword(ctx, "a", "b") },
			`PUT /api/v1/me/password {"currentPassword":"a","newPassword":"b"}`,
		},
		{"ready", func(ctx context.Context, c *client.Client) error { return c.Ready(ctx) }, `GET /readyz`},
		{"health", func(ctx context.Context, c *client.Client) error {
			_, err := c.Health(ctx)
			return err
		}, `GET /healthz`},
		{"checks", func(ctx context.Context, c *client.Client) error {
			_, err := c.Checks(ctx)
			return err
		}, `GET /readyz?verbose=1`},
		{"users", func(ctx context.Context, c *client.Client) error {
			_, err := c.Users().List(ctx, client.Query{Limit: 5, Count: true})
			return err
		}, `GET /api/v1/user?count=true&limit=5`},
		{
			"user get", func(ctx context.Context, c *client.Client) error { _, err := c.Users().Get(ctx, "u1"); return err },
			`GET /api/v1/user/u1`,
		},
		{"user create", func(ctx context.Context, c *client.Client) error {
			_, err := c.Users().Create(ctx, api.UserWrite{Username: &name})
			return err
		}, `POST /api/v1/user {"username":"New"}`},
		{"user update", func(ctx context.Context, c *client.Client) error {
			_, err := c.Users().Update(ctx, "u1", api.UserWrite{Name: &name})
			return err
		}, `PUT /api/v1/user/u1 {"name":"New"}`},
		{
			"user delete", func(ctx context.Context, c *client.Client) error { _, err := c.Users().Delete(ctx, "u1"); return err },
			`DELETE /api/v1/user/u1`,
		},
		{"projects", func(ctx context.Context, c *client.Client) error {
			_, err := c.Projects().List(ctx, client.Query{})
			return err
		}, `GET /api/v1/project`},
		{"register", func(ctx context.Context, c *client.Client) error {
			_, err := c.Projects().Create(ctx, api.ProjectWrite{Name: new("Blog"), ConfigFile: new("blog/project.yaml"), Enabled: new(true)})
			return err
		}, `POST /api/v1/project {"name":"Blog","configFile":"blog/project.yaml","enabled":true}`},
		{
			"project get", func(ctx context.Context, c *client.Client) error { _, err := c.Projects().Get(ctx, "p1"); return err },
			`GET /api/v1/project/p1`,
		},
		{"project update", func(ctx context.Context, c *client.Client) error {
			_, err := c.Projects().Update(ctx, "p1", api.ProjectWrite{Name: &name})
			return err
		}, `PUT /api/v1/project/p1 {"name":"New"}`},
		{"unregister", func(ctx context.Context, c *client.Client) error {
			_, err := c.Projects().Delete(ctx, "p1")
			return err
		}, `DELETE /api/v1/project/p1`},
		{
			"status", func(ctx context.Context, c *client.Client) error { _, err := c.ProjectStatus(ctx, "p1"); return err },
			`GET /api/v1/project/p1/status`,
		},
		{
			"embedding status", func(ctx context.Context, c *client.Client) error { _, err := c.EmbeddingStatus(ctx); return err },
			`GET /api/v1/admin/embedding/status`,
		},
		{
			"embedding status of a project", func(ctx context.Context, c *client.Client) error {
				_, err := c.ProjectEmbeddingStatus(ctx, "blog")
				return err
			},
			`GET /api/v1/_/blog/_/admin/embedding/status`,
		},
		{
			"drift", func(ctx context.Context, c *client.Client) error { _, err := c.Drift(ctx, "blog"); return err },
			`GET /api/v1/_/blog/_/admin/drift`,
		},
		{
			"sync of indexes", func(ctx context.Context, c *client.Client) error {
				_, err := c.SyncIndexes(ctx, "blog", "")
				return err
			},
			`POST /api/v1/_/blog/_/admin/indexes/sync`,
		},
		{
			"sync of indexes that drops", func(ctx context.Context, c *client.Client) error {
				_, err := c.SyncIndexes(ctx, "blog", api.RiskSlow)
				return err
			},
			`POST /api/v1/_/blog/_/admin/indexes/sync?allow=slow`,
		},
		{
			"reload", func(ctx context.Context, c *client.Client) error { _, err := c.Reload(ctx, "blog"); return err },
			`POST /api/v1/_/blog/_/admin/reload?wait=true`,
		},
		{
			"reload later", func(ctx context.Context, c *client.Client) error { return c.RequestReload(ctx, "blog") },
			`POST /api/v1/_/blog/_/admin/reload`,
		},
		{"collections", func(ctx context.Context, c *client.Client) error {
			_, err := c.ListCollections(ctx, "blog")
			return err
		}, `GET /api/v1/_/blog/_/collections`},
		{"collection", func(ctx context.Context, c *client.Client) error {
			_, err := c.DescribeCollection(ctx, "blog", "articles")
			return err
		}, `GET /api/v1/_/blog/_/collections/articles`},
		{"list", func(ctx context.Context, c *client.Client) error {
			_, err := c.ListRecords(ctx, "blog", "articles", client.Query{
				Filter: `{"a":1}`, Sort: "-a", Select: "a,b", Projection: "short", Limit: 2, Offset: 4, After: "c",
				Extra: url.Values{"lang": {"de"}},
			})
			return err
		}, `GET /api/v1/_/blog/articles?after=c&filter=%7B%22a%22%3A1%7D&lang=de&limit=2&offset=4&projection=short&select=a%2Cb&sort=-a`},
		{"get", func(ctx context.Context, c *client.Client) error {
			_, _, err := c.GetRecord(ctx, "blog", "articles", "r1", client.Query{Select: "a", Filter: "no"})
			return err
		}, `GET /api/v1/_/blog/articles/r1?select=a`},
		{"count", func(ctx context.Context, c *client.Client) error {
			_, err := c.CountRecords(ctx, "blog", "articles", "")
			return err
		}, `GET /api/v1/_/blog/articles/_count`},
		{"create", func(ctx context.Context, c *client.Client) error {
			_, err := c.CreateRecord(ctx, "blog", "articles", rec)
			return err
		}, `POST /api/v1/_/blog/articles {"title":"Hi"}`},
		{"update", func(ctx context.Context, c *client.Client) error {
			_, err := c.UpdateRecord(ctx, "blog", "articles", "r1", rec, client.WriteOptions{IfMatch: `"3"`})
			return err
		}, `PUT /api/v1/_/blog/articles/r1 If-Match:"3" {"title":"Hi"}`},
		{"replace", func(ctx context.Context, c *client.Client) error {
			_, err := c.UpdateRecord(ctx, "blog", "articles", "r1", rec, client.WriteOptions{Replace: true})
			return err
		}, `PUT /api/v1/_/blog/articles/r1?replace=true {"title":"Hi"}`},
		{"patch", func(ctx context.Context, c *client.Client) error {
			_, err := c.PatchRecord(ctx, "blog", "articles", "r1", api.MediaJSONPatch, []byte(`[]`), client.WriteOptions{})
			return err
		}, `PATCH /api/v1/_/blog/articles/r1 application/json-patch+json []`},
		{"delete", func(ctx context.Context, c *client.Client) error {
			_, err := c.DeleteRecord(ctx, "blog", "articles", "r1", client.WriteOptions{IfMatch: `"3"`})
			return err
		}, `DELETE /api/v1/_/blog/articles/r1 If-Match:"3"`},
		{"bulk create", func(ctx context.Context, c *client.Client) error {
			_, err := c.BulkCreate(ctx, "blog", "articles", []api.Record{rec})
			return err
		}, `POST /api/v1/_/blog/articles {"items":[{"title":"Hi"}]}`},
		{"bulk update", func(ctx context.Context, c *client.Client) error {
			_, err := c.BulkUpdate(ctx, "blog", "articles", `{}`, rec)
			return err
		}, `PUT /api/v1/_/blog/articles?filter=%7B%7D {"title":"Hi"}`},
		{"bulk delete", func(ctx context.Context, c *client.Client) error {
			_, err := c.BulkDelete(ctx, "blog", "articles", `{}`)
			return err
		}, `DELETE /api/v1/_/blog/articles?filter=%7B%7D`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var got string
			c := serve(t, client.Options{}, func(w http.ResponseWriter, r *http.Request) {
				got = r.Method + " " + r.URL.RequestURI()
				if m := r.Header.Get("If-Match"); m != "" {
					got += " If-Match:" + m
				}
				if m := r.Header.Get("Content-Type"); m != "" && m != "application/json" {
					got += " " + m
				}
				if body, _ := io.ReadAll(r.Body); len(body) > 0 {
					got += " " + string(body)
				}
				fmt.Fprint(w, `{}`)
			})
			if err := tc.call(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

func TestRecordKeepsNumbersAndOrder(t *testing.T) {
	t.Parallel()
	const body = `{"z":9223372036854775807,"a":1.50}`
	c := serve(t, client.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"7"`)
		fmt.Fprint(w, body)
	})
	rec, etag, err := c.GetRecord(t.Context(), "blog", "articles", "r1", client.Query{})
	if err != nil {
		t.Fatal(err)
	}
	if string(rec) != body || etag != `"7"` {
		t.Fatalf("got %s %s", rec, etag)
	}
}

func TestRefusalIsAnError(t *testing.T) {
	t.Parallel()
	c := serve(t, client.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"title":"Too Many Requests","status":429,"code":"throttled","detail":"wait","requestId":"r-1","errors":[{"path":"a","rule":"b","message":"c"}]}`)
	})
	_, err := c.Login(t.Context(), "ann", "pw")
	var e *client.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	want := &client.Error{
		Status: 429, RetryAfter: 7 * time.Second, Method: "POST", Path: "/api/v1/login",
		Problem: api.Problem{
			Title: "Too Many Requests", Status: 429, Code: "throttled", Detail: "wait", RequestID: "r-1",
			Errors: []api.FieldError{{Path: "a", Rule: "b", Message: "c"}},
		},
	}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Fatal(diff)
	}
	if !client.IsStatus(err, 429) || client.IsStatus(err, 404) || e.Code() != "throttled" || e.Error() != "wait" {
		t.Fatal("accessors disagree with the problem")
	}
}

func TestForeignAnswers(t *testing.T) {
	t.Parallel()
	t.Run("refusal without a problem", func(t *testing.T) {
		t.Parallel()
		c := serve(t, client.Options{}, func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "<html>gateway secret", http.StatusBadGateway)
		})
		_, err := c.Version(t.Context())
		if err == nil || err.Error() != "GET /api/v1/version: 502 Bad Gateway" {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("success that is no JSON", func(t *testing.T) {
		t.Parallel()
		calls := 0
		c := serve(t, client.Options{}, func(w http.ResponseWriter, _ *http.Request) {
			calls++
			fmt.Fprint(w, "<html>")
		})
		_, err := c.Version(t.Context())
		var un *client.UnreachableError
		if !errors.As(err, &un) || !strings.Contains(err.Error(), "is not the service's") || calls != 1 {
			t.Fatalf("got %v after %d calls", err, calls)
		}
	})
	t.Run("redirect is not followed", func(t *testing.T) {
		t.Parallel()
		other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			t.Errorf("a credential went to another host: %v", r.Header)
		}))
		t.Cleanup(other.Close)
		c := serve(t, client.Options{AdminToken: "secret"}, func(w http.ResponseWriter, _ *http.Request) {
			to := strings.Replace(other.URL, "http://", "http://ann:hunter2@", 1)
			w.Header().Set("Location", to+"/x")
			w.WriteHeader(http.StatusFound)
		})
		_, err := c.Version(t.Context())
		if err == nil || !strings.Contains(err.Error(), "moved to "+strings.Replace(other.URL, "http://", "http://ann:xxxxx@", 1)) {
			t.Fatalf("got %v", err)
		}
	})
}

func TestRetries(t *testing.T) {
	t.Parallel()
	version := func(ctx context.Context, c *client.Client) error { _, err := c.Version(ctx); return err }
	remove := func(ctx context.Context, c *client.Client) error {
		_, err := c.DeleteRecord(ctx, "blog", "articles", "r1", client.WriteOptions{})
		return err
	}
	create := func(ctx context.Context, c *client.Client) error {
		_, err := c.CreateRecord(ctx, "blog", "articles", api.Record(`{}`))
		return err
	}
	busy := func(after string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if after != "" {
				w.Header().Set("Retry-After", after)
			}
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	hangUp := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for _, tc := range []struct {
		name  string
		call  func(context.Context, *client.Client) error
		fail  http.HandlerFunc // for the first call
		tries int32
	}{
		{"read, connection lost", version, hangUp, 2},
		{"delete, connection lost", remove, hangUp, 1},
		{"create, connection lost", create, hangUp, 1},
		{"read, 503 without Retry-After", version, busy(""), 1},
		{"read, 503 for too long", version, busy("3600"), 1},
		{"create, 503", create, busy("1"), 1},
		{"read, 500", version, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var tries atomic.Int32
			c := serve(t, client.Options{}, func(w http.ResponseWriter, r *http.Request) {
				if tries.Add(1) == 1 {
					tc.fail(w, r)
					return
				}
				fmt.Fprint(w, `{}`)
			})
			err := tc.call(t.Context(), c)
			if tries.Load() != tc.tries || (err == nil) != (tc.tries == 2) {
				t.Fatalf("%d tries, %v", tries.Load(), err)
			}
		})
	}
}

// A read is sent again once the service said when; no write is, whatever the service says.
func TestRetryAfterIsObeyed(t *testing.T) {
	t.Parallel()
	rec := api.Record(`{"a":1}`)
	o := client.WriteOptions{IfMatch: `"3"`}
	for name, tc := range map[string]struct {
		call  func(context.Context, *client.Client) error
		tries int32
	}{
		"get": {func(ctx context.Context, c *client.Client) error { _, err := c.Version(ctx); return err }, 2},
		"create": {func(ctx context.Context, c *client.Client) error {
			_, err := c.CreateRecord(ctx, "b", "a", rec)
			return err
		}, 1},
		"update": {func(ctx context.Context, c *client.Client) error {
			_, err := c.UpdateRecord(ctx, "b", "a", "1", rec, client.WriteOptions{})
			return err
		}, 1},
		"update a tag": {func(ctx context.Context, c *client.Client) error {
			_, err := c.UpdateRecord(ctx, "b", "a", "1", rec, o)
			return err
		}, 1},
		"delete": {func(ctx context.Context, c *client.Client) error {
			_, err := c.DeleteRecord(ctx, "b", "a", "1", client.WriteOptions{})
			return err
		}, 1},
		"delete a tag": {func(ctx context.Context, c *client.Client) error {
			_, err := c.DeleteRecord(ctx, "b", "a", "1", o)
			return err
		}, 1},
		"bulk update": {func(ctx context.Context, c *client.Client) error {
			_, err := c.BulkUpdate(ctx, "b", "a", "{}", rec)
			return err
		}, 1},
		"bulk delete": {func(ctx context.Context, c *client.Client) error {
			_, err := c.BulkDelete(ctx, "b", "a", "{}")
			return err
		}, 1},
		"update a user": {func(ctx context.Context, c *client.Client) error {
			_, err := c.Users().Update(ctx, "1", api.UserWrite{})
			return err
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tries atomic.Int32
			c := serve(t, client.Options{}, func(w http.ResponseWriter, _ *http.Request) {
				if tries.Add(1) == 1 {
					w.Header().Set("Retry-After", "1")
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				fmt.Fprint(w, `{}`)
			})
			err := tc.call(t.Context(), c)
			if tries.Load() != tc.tries || (err == nil) != (tc.tries == 2) {
				t.Fatalf("%d tries, %v", tries.Load(), err)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	address := srv.URL
	srv.Close()
	c, err := client.New(client.Options{Server: address, Backoff: func(int) time.Duration { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Version(t.Context())
	var un *client.UnreachableError
	if !errors.As(err, &un) || un.Server != address || un.Permanent() {
		t.Fatalf("got %v", err)
	}
}

func TestCertificateIsNotRetried(t *testing.T) {
	t.Parallel()
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(srv.Close)
	c, err := client.New(client.Options{Server: srv.URL, Backoff: func(int) time.Duration {
		return time.Hour // a second attempt would hang
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Version(t.Context())
	var un *client.UnreachableError
	if !errors.As(err, &un) || !un.Permanent() {
		t.Fatalf("got %v", err)
	}
}

func TestTimeoutAndCancel(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	c := serve(t, client.Options{Timeout: 10 * time.Millisecond}, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(release) })
	if _, err := c.Version(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Version(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}

func TestRecordsFollowsCursors(t *testing.T) {
	t.Parallel()
	pages := map[string]string{
		"":   `{"items":[1,2],"hasMore":true,"next":"c1"}`,
		"c1": `{"items":[3,4],"hasMore":true,"next":"c2"}`,
		"c2": `{"items":[5],"hasMore":false}`,
	}
	var asked []string
	c := serve(t, client.Options{}, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery)
		fmt.Fprint(w, pages[r.URL.Query().Get("after")])
	})
	q := client.Query{Filter: "{}", Sort: "a", Limit: 2, Offset: 1, Count: true}
	var got []string
	for rec, err := range c.Records(t.Context(), "blog", "articles", q) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(rec))
	}
	if diff := cmp.Diff([]string{"1", "2", "3", "4", "5"}, got); diff != "" {
		t.Error(diff)
	}
	// The offset counts from the start, so it must not be applied to a page behind a cursor.
	if diff := cmp.Diff([]string{
		"count=true&filter=%7B%7D&limit=2&offset=1&sort=a",
		"after=c1&filter=%7B%7D&limit=2&sort=a",
		"after=c2&filter=%7B%7D&limit=2&sort=a",
	}, asked); diff != "" {
		t.Error(diff)
	}
	asked = nil
	for _, err := range c.Records(t.Context(), "blog", "articles", q) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	if len(asked) != 1 {
		t.Errorf("a caller that stops early still made %d requests", len(asked))
	}
}

func TestRecordsStopsOnError(t *testing.T) {
	t.Parallel()
	for _, second := range []string{`{"items":[2],"hasMore":true,"next":"c1"}`, `{"items":[],"hasMore":true}`} {
		n := 0
		c := serve(t, client.Options{}, func(w http.ResponseWriter, _ *http.Request) {
			if n++; n == 1 {
				fmt.Fprint(w, `{"items":[1],"hasMore":true,"next":"c1"}`)
				return
			}
			fmt.Fprint(w, second)
		})
		var last error
		for _, err := range c.Records(t.Context(), "blog", "articles", client.Query{}) {
			last = err
		}
		if last == nil || n != 2 {
			t.Errorf("%s: %d requests, error %v", second, n, last)
		}
	}
}

func TestDoIsRaw(t *testing.T) {
	t.Parallel()
	c := serve(t, client.Options{AdminToken: "secret", UserAgent: "svcctl/1"}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
		out := map[string]string{
			"uri": r.URL.RequestURI(), "accept": r.Header.Get("Accept"), "agent": r.Header.Get("User-Agent"), "body": string(body),
		}
		if err := json.NewEncoder(w).Encode(out); err != nil {
			t.Error(err)
		}
	})
	resp, err := c.Do(t.Context(), client.Request{
		Method: "POST", Path: "/x?a=1", Query: url.Values{"b": {"2"}},
		Header: http.Header{"accept": {"text/plain"}}, Body: strings.NewReader("hello"),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got map[string]string
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"uri": "/x?a=1&b=2", "accept": "text/plain", "agent": "svcctl/1", "body": "hello"}
	if diff := cmp.Diff(want, got); diff != "" || resp.StatusCode != http.StatusAccepted {
		t.Fatal(resp.Status, diff)
	}
}

func TestEmptySegmentsAreNotSent(t *testing.T) {
	t.Parallel()
	c := serve(t, client.Options{}, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("sent %s", r.URL) })
	if _, err := c.DeleteRecord(t.Context(), "blog", "articles", "", client.WriteOptions{}); err == nil {
		t.Error("an empty id was accepted")
	}
	if _, err := c.BulkDelete(t.Context(), "", "articles", "{}"); err == nil {
		t.Error("an empty namespace was accepted")
	}
}

// TestWrongScheme has it told when TLS is spoken where there is none, and the other way around, which no other try would mend.
func TestWrongScheme(t *testing.T) {
	t.Parallel()
	asked := func(http.ResponseWriter, *http.Request) { t.Error("a request has come through") }
	plain, secure := httptest.NewServer(http.HandlerFunc(asked)), httptest.NewUnstartedServer(http.HandlerFunc(asked))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer plain.Close()
	defer secure.Close()
	for server, want := range map[string]string{
		"https://" + plain.Listener.Addr().String(): "there is no TLS there: give the address with http://",
		"http://" + secure.Listener.Addr().String(): "it takes https alone there: give the address with https://",
	} {
		c, err := client.New(client.Options{Server: server, Token: "a"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Version(t.Context())
		unreachable, ok := errors.AsType[*client.UnreachableError](err)
		if !ok || !unreachable.Permanent() || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", server, err)
		}
		c.CloseIdle()
	}
}
