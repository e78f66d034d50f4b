package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

func attach(field, name, content string, size int64) client.Attachment {
	return client.Attachment{Field: field, Name: name, Size: size, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(content)), nil
	}}
}

// What is sent is a form with the record first, and its length where that is known.
func TestUpload(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		size  int64
		sized bool
	}{"known": {5, true}, "unknown": {-1, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			c := serve(t, client.Options{Token: "t"}, func(w http.ResponseWriter, r *http.Request) {
				got = append(got, r.Method+" "+r.URL.String()+" "+r.Header.Get(api.HeaderIfMatch))
				if sized := r.ContentLength > 0; sized != tc.sized {
					t.Errorf("length %d", r.ContentLength)
				}
				parts, err := r.MultipartReader()
				if err != nil {
					t.Error(err)
					return
				}
				for {
					p, err := parts.NextPart()
					if err != nil {
						break
					}
					data, _ := io.ReadAll(p)
					got = append(got, fmt.Sprintf("%s %q %s", p.FormName(), p.FileName(), data))
				}
				fmt.Fprint(w, `{"id":"1"}`)
			})
			var sent []int64
			files := []client.Attachment{attach("pictures", `a "b" ü.txt`, "Hello", tc.size), attach("rooms.0.plan", "c.txt", "World", tc.size)}
			out, err := c.UpdateWithFiles(t.Context(), "blog", "medialib", "65f0c2a1b3d4e5f60718293a", api.Record(`{"alt":"x"}`), files,
				func(n int64) { sent = append(sent, n) }, client.WriteOptions{IfMatch: `"1"`})
			if err != nil || string(out) != `{"id":"1"}` {
				t.Fatalf("%s, %v", out, err)
			}
			want := []string{
				`PUT /api/v1/_/blog/medialib/65f0c2a1b3d4e5f60718293a "1"`, `data "" {"alt":"x"}`,
				`pictures "a \"b\" ü.txt" Hello`, `rooms.0.plan "c.txt" World`,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]int64{5, 10}, sent); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What goes wrong with a file is told as that, and not as a connection that broke off.
func TestUploadOfAFileThatFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is broken")
	for name, tc := range map[string]struct {
		file client.Attachment
		want string
	}{
		"open":   {client.Attachment{Field: "f", Name: "a", Size: 3, Open: func() (io.ReadCloser, error) { return nil, broken }}, "the disk is broken"},
		"read":   {client.Attachment{Field: "f", Name: "a", Size: 3, Open: func() (io.ReadCloser, error) { return io.NopCloser(errReader{broken}), nil }}, "read a: the disk is broken"},
		"shrunk": {attach("f", "a", "12", 3), "a has shrunk while it was sent: send it again"},
		"grown":  {attach("f", "a", "1234", 3), "a has grown while it was sent: send it again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, client.Options{}, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				fmt.Fprint(w, `{}`)
			})
			if _, err := c.CreateWithFiles(t.Context(), "blog", "medialib", api.Record(`{}`), []client.Attachment{tc.file}, nil); err == nil || err.Error() != tc.want {
				t.Errorf("%v", err)
			}
		})
	}
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }

// What is too large is refused before it is sent.
func TestUploadRefusedEarly(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", api.MediaProblem)
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		_ = json.NewEncoder(w).Encode(api.Problem{Code: "too_large", Detail: "too large"})
	}))
	t.Cleanup(srv.Close)
	c, err := client.New(client.Options{Server: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	sent := int64(0)
	file := client.Attachment{Field: "file", Name: "a.bin", Size: 1 << 40, Open: func() (io.ReadCloser, error) { return io.NopCloser(zeros{}), nil }}
	_, err = c.CreateWithFiles(t.Context(), "blog", "medialib", api.Record(`{}`), []client.Attachment{file}, func(n int64) { sent = n })
	if !client.IsStatus(err, http.StatusRequestEntityTooLarge) || sent > 1<<20 {
		t.Errorf("%v, %d bytes were sent", err, sent)
	}
}

// zeros never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// A large file goes through little memory.
func TestUploadStreams(t *testing.T) {
	const size = 256 << 20
	c := serve(t, client.Options{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, `{}`)
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	file := client.Attachment{Field: "file", Name: "a.bin", Size: size, Open: func() (io.ReadCloser, error) { return io.NopCloser(io.LimitReader(zeros{}, size)), nil }}
	if _, err := c.CreateWithFiles(t.Context(), "blog", "medialib", api.Record(`{}`), []client.Attachment{file}, nil); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > size/8 {
		t.Errorf("%d bytes were allocated for %d", got, size)
	}
}

// A create with an idempotency key is the same to the byte each time, as the service asks of one that is repeated; without a
// key, and with another one, it need not be.
func TestUploadAgain(t *testing.T) {
	t.Parallel()
	var bodies []string
	c := serve(t, client.Options{Token: "t"}, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		bodies = append(bodies, r.Header.Get("Content-Type")+"\n"+string(body))
		fmt.Fprint(w, `{"id":"1"}`)
	})
	for _, key := range []string{"a", "a", "b"} {
		files := []client.Attachment{attach("file", "a.txt", "Hello", 5)}
		if _, err := c.CreateWithFiles(t.Context(), "blog", "medialib", api.Record(`{}`), files, nil, client.WriteOptions{IdempotencyKey: key}); err != nil {
			t.Fatal(err)
		}
	}
	if len(bodies) != 3 || bodies[0] != bodies[1] || bodies[0] == bodies[2] {
		t.Errorf("the requests are %q", bodies)
	}
}

// A dry run with files sends them, and says that it is one.
func TestTryWithFiles(t *testing.T) {
	t.Parallel()
	var got []string
	c := serve(t, client.Options{Token: "t"}, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = append(got, fmt.Sprint(r.Method, " ", r.URL.RawQuery, " ", strings.Contains(string(body), "Hello")))
		fmt.Fprint(w, `{"dryRun":true}`)
	})
	files := []client.Attachment{attach("file", "a.txt", "Hello", 5)}
	if err := c.TryCreateWithFiles(t.Context(), "blog", "medialib", api.Record(`{}`), files, nil, client.WriteOptions{}); err != nil {
		t.Error(err)
	}
	if err := c.TryUpdateWithFiles(t.Context(), "blog", "medialib", "65f0c2a1b3d4e5f60718293a", api.Record(`{}`), files, nil, client.WriteOptions{}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"POST dryRun=true true", "PUT dryRun=true true"}, got); diff != "" {
		t.Error(diff)
	}
}
