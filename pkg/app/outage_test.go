package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

// TestR10StoreOutage makes the database slow, breaks its connections, takes it away and has it stand still, while clients write.
// What was acknowledged is there, once; what was not is there once or not at all. Refusals say to come again, and nothing of
// where the database is. Readiness follows, and nothing is left of an outage.
func TestR10StoreOutage(t *testing.T) {
	proxy := mongotest.StartProxy(t, emptyMongo(t, "svc_shop"))
	s := runShop(t, func(c *app.Config) { // which has patience for seconds, and the test for less
		c.StoreURI = proxy.URI + "&serverSelectionTimeoutMS=500&connectTimeoutMS=500&heartbeatFrequencyMS=500"
	})
	ready := func(want int) time.Duration {
		t.Helper()
		start := time.Now()
		eventually(t, func() string {
			if got := s.do("GET", "/readyz"); got.status != want {
				return "readyz: " + got.String()
			}
			return ""
		})
		return time.Since(start)
	}
	w := &outageWriter{s: s, hosts: []string{strings.TrimPrefix(s.url, "http://"), "mongodb", "127.0.0.1"}, results: map[string]bool{}}
	w.start(t)
	rounds, _ := strconv.Atoi(os.Getenv("FAULTS"))
	settled := 0
	for round := range max(2, rounds) {
		proxy.Slow(100 * time.Millisecond)
		w.more(t, 5)
		proxy.Heal()
		proxy.Reset()
		w.more(t, 20)
		for name, harm := range map[string]func(){"refuses connections": proxy.Refuse, "stands still": proxy.Silence} {
			harm()
			gone := ready(http.StatusServiceUnavailable)
			w.refused(t)
			proxy.Heal()
			back := ready(http.StatusOK)
			w.more(t, 20)
			t.Logf("the database %s: not ready after %s, ready again after %s", name, gone.Round(time.Millisecond), back.Round(time.Millisecond))
		}
		if round == 0 {
			settled = runtime.NumGoroutine()
		}
	}
	w.stop()
	w.check(t)
	eventually(t, func() string {
		if n := runtime.NumGoroutine(); n > settled+20 { // connections come and go
			return fmt.Sprintf("%d goroutines, %d after the first outages", n, settled)
		}
		return ""
	})
}

// outageWriter creates records all the time.
type outageWriter struct {
	s     *service
	hosts []string // that no answer may name
	done  chan struct{}
	all   sync.WaitGroup

	mu       sync.Mutex
	results  map[string]bool // by title: whether it was acknowledged
	created  int
	refusals int
	wrong    []string
}

func (w *outageWriter) start(t *testing.T) {
	t.Helper()
	w.done = make(chan struct{})
	for i := range 4 {
		w.all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-w.done:
					return
				default:
					w.write(fmt.Sprintf("%d-%d", i, n))
				}
			}
		})
	}
	t.Cleanup(w.stop)
}

func (w *outageWriter) write(title string) {
	req, err := http.NewRequest(http.MethodPost, w.s.url+"/api/v1/_/shop/items", strings.NewReader(`{"title": "`+title+`"}`)) //nolint:noctx // as long as the service takes
	if err != nil {
		panic(err)
	}
	req.Header.Set("Content-Type", "application/json")
	admin(req)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.note(title, 0, err.Error())
		return
	}
	body, err := io.ReadAll(res.Body)
	if closed := res.Body.Close(); err == nil {
		err = closed
	}
	problem := ""
	switch text := string(body); {
	case err != nil:
		problem = err.Error()
	case res.StatusCode == http.StatusCreated:
	case res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, `"code":"store_unavailable"`):
		problem = fmt.Sprintf("%d %s", res.StatusCode, text)
	default:
		for _, host := range w.hosts {
			if strings.Contains(text, host) {
				problem = "it says where the database is: " + text
			}
		}
	}
	w.note(title, res.StatusCode, problem)
}

func (w *outageWriter) note(title string, status int, problem string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.results[title] = status == http.StatusCreated
	if status == http.StatusCreated {
		w.created++
	} else {
		w.refusals++
	}
	if problem != "" {
		w.wrong = append(w.wrong, problem)
	}
}

// more waits until so many more records are there.
func (w *outageWriter) more(t *testing.T, n int) {
	t.Helper()
	w.mu.Lock()
	want := w.created + n
	w.mu.Unlock()
	eventually(t, func() string {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.created < want {
			return fmt.Sprintf("%d were created, want %d; wrong: %v", w.created, want, w.wrong)
		}
		return ""
	})
}

// refused waits until a write is refused, and asks a read, too, which says when to come again.
func (w *outageWriter) refused(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	want := w.refusals + 1
	w.mu.Unlock()
	eventually(t, func() string {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.refusals < want {
			return "no write was refused"
		}
		return ""
	})
	if got := w.s.do("GET", "/api/v1/_/shop/items?limit=1", admin); got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
		t.Errorf("a read: %s %v", got, got.header)
	}
}

func (w *outageWriter) stop() {
	select {
	case <-w.done:
	default:
		close(w.done)
	}
	w.all.Wait()
}

// check compares what was acknowledged with what is there.
func (w *outageWriter) check(t *testing.T) {
	t.Helper()
	for _, problem := range w.wrong {
		t.Error(problem)
	}
	there := map[string]int{}
	for after := ""; ; {
		var page struct {
			Items []struct{ Title string }
			Next  string
		}
		at := "/api/v1/_/shop/items?limit=200&select=title"
		if after != "" {
			at += "&after=" + after
		}
		res := w.s.do("GET", at, admin)
		res.want(t, http.StatusOK)
		if err := json.Unmarshal([]byte(res.body), &page); err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			there[item.Title]++
		}
		if after = page.Next; after == "" {
			break
		}
	}
	for title, acknowledged := range w.results {
		if n := there[title]; acknowledged && n != 1 || n > 1 {
			t.Errorf("%s is there %d times, acknowledged: %v", title, n, acknowledged)
		}
	}
	t.Logf("%d created, %d refused", w.created, w.refusals)
}
