package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/embedding"
)

// faultyServer is a server of embeddings that fails in a way that can be changed.
type faultyServer struct {
	*httptest.Server

	fault atomic.Pointer[string]
	left  chan struct{} // closed when the test is over

	mu    sync.Mutex
	asked []string // texts of all calls
}

func newFaultyServer(t *testing.T) *faultyServer {
	t.Helper()
	f := &faultyServer{left: make(chan struct{})}
	f.set("")
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	t.Cleanup(func() { close(f.left) })
	return f
}

// texts is how often it was asked for texts that begin so.
func (f *faultyServer) texts(begin string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, text := range f.asked {
		if strings.HasPrefix(text, begin) {
			n++
		}
	}
	return n
}

func (f *faultyServer) set(fault string) { f.fault.Store(&fault) }

func (f *faultyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Input []string }
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &asked)
	f.mu.Lock()
	f.asked = append(f.asked, asked.Input...)
	f.mu.Unlock()
	length := 4
	switch fault := *f.fault.Load(); fault {
	case "down":
		panic(http.ErrAbortHandler)
	case "slow":
		select {
		case <-r.Context().Done():
		case <-f.left:
		}
		return
	case "garbage":
		_, _ = io.WriteString(w, "<html>what is this?</html>")
		return
	case "wrong dimension":
		length = 5
	case "429":
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	type one struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	var out struct {
		Data []one `json:"data"`
	}
	for i, text := range asked.Input {
		v := make([]float32, length)
		v[0] = 1
		v[1+len(text)%3] = 1
		out.Data = append(out.Data, one{i, v})
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(out); err != nil && r.Context().Err() == nil {
		panic(err) // numbers
	}
}

const vectorConfig = `
namespace: shop
collections:
  - name: items
    fields: [{name: title, type: string}]
    search:
      - {name: words, mode: text, fields: [title]}
      - {name: near, mode: vector, vector: {group: texts, fields: [title]}}
    permissions: {public: {methods: {get: true, post: {bulk: true}}}, user: {methods: {}}}
`

func faults() []string { return []string{"down", "slow", "garbage", "wrong dimension", "429"} }

// withFaultyServer runs a service whose vectors come from a server that can fail, on both stores.
func withFaultyServer(t *testing.T, test func(t *testing.T, s *service, f *faultyServer)) {
	t.Helper()
	for name, uri := range map[string]func(t *testing.T) string{
		"embedded": func(*testing.T) string { return "" }, "mongodb": func(t *testing.T) string { t.Helper(); return emptyMongo(t, "svc_shop") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFaultyServer(t)
			s := run(t, func(c *app.Config) {
				c.StoreURI = uri(t)
				c.Embedding = embedding.Config{
					Providers: []embedding.ProviderConfig{{Name: "far", Type: "openai", Model: "m", BaseURL: f.URL, Dimensions: 4, TimeoutPerAttempt: 300 * time.Millisecond}},
					Groups:    []embedding.GroupConfig{{Name: "texts", Members: []string{"far"}}}, CooldownAfterUnhealthy: 100 * time.Millisecond, CheckInterval: 100 * time.Millisecond,
				}
			})
			s.register("shop", vectorConfig)
			s.converged()
			test(t, s, f)
		})
	}
}

// R11: whatever the server of vectors does, records are written and found by their words, a search by vectors fails with a message that
// names the group, and all have their vectors when the server is back.
func TestR11WritesGoOn(t *testing.T) {
	withFaultyServer(t, func(t *testing.T, s *service, f *faultyServer) {
		records := 0
		write := func(fault string) {
			t.Helper()
			for i := range 20 {
				records++
				s.do("POST", "/api/v1/_/shop/items", json1(map[string]any{"title": fmt.Sprint(fault, " ", i, strings.Repeat("x", i))})).want(t, http.StatusCreated)
			}
		}
		write("before")
		s.embedded(records)
		for _, fault := range faults() {
			f.set(fault)
			write(fault)
			s.do("GET", "/api/v1/_/shop/items/_count?q="+strings.ReplaceAll(fault, " ", "+")+"&qName=words", noop).contains(t, http.StatusOK, `"count":`)
			eventually(t, func() string {
				got := s.do("GET", "/api/v1/_/shop/items?qName=near&q="+strconv.Itoa(records), noop)
				if got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "the embedding group texts is offline") || !strings.Contains(got.body, "embedding_offline") {
					return got.String()
				}
				return ""
			})
			s.shows("/api/v1/_/shop/items/_queue", "the embedding group texts is offline")
			eventually(t, func() string { return s.condition("EmbeddingReady", "GroupOffline") })
			f.set("")
			s.embedded(records)
			got := s.do("GET", "/api/v1/_/shop/items?qName=near&q=anything&count=true&limit=1", noop)
			got.contains(t, http.StatusOK, fmt.Sprintf(`"total":%d`, records))
		}
		eventually(t, func() string { return s.condition("EmbeddingReady", "Embedded") })
		s.condition("Ready", "Serving")
	})
}

// condition says what a condition of the project shop is, unless it has a reason.
func (s *service) condition(name, reason string) string {
	s.t.Helper()
	list := s.do("GET", "/api/v1/project", admin)
	var all struct{ Items []struct{ ID string } }
	if err := json.Unmarshal([]byte(list.body), &all); err != nil || len(all.Items) != 1 {
		s.t.Fatal(list, list.body, err)
	}
	got := s.do("GET", "/api/v1/project/"+all.Items[0].ID+"/status", admin)
	var status struct {
		Conditions []struct{ Type, Reason string }
	}
	if err := json.Unmarshal([]byte(got.body), &status); err != nil {
		s.t.Fatal(got, got.body, err)
	}
	for _, c := range status.Conditions {
		if c.Type == name && c.Reason == reason {
			return ""
		}
	}
	return got.body
}

// R11: writes are no slower for what the server of vectors does. It is measured when SOAK is set.
func TestR11WritesAreNotSlower(t *testing.T) {
	if os.Getenv("SOAK") == "" {
		t.Skip("set SOAK=1 to measure")
	}
	withFaultyServer(t, func(t *testing.T, s *service, f *faultyServer) {
		const writes, rounds = 150, 8
		measure := func(fault string) (half, most time.Duration) {
			f.set(fault)
			var all []time.Duration
			for i := range writes {
				began := time.Now()
				s.do("POST", "/api/v1/_/shop/items", json1(map[string]any{"title": fmt.Sprint(fault, i)})).want(t, http.StatusCreated)
				all = append(all, time.Since(began))
			}
			slices.Sort(all)
			return all[writes/2], all[writes*95/100]
		}
		measure("") // warms up
		for _, fault := range faults() {
			var well, ill, wellMost, illMost []time.Duration
			for range rounds {
				a, b := measure("")
				c, d := measure(fault)
				well, wellMost, ill, illMost = append(well, a), append(wellMost, b), append(ill, c), append(illMost, d)
			}
			middle := func(all []time.Duration) time.Duration { slices.Sort(all); return all[len(all)/2] }
			half, most := float64(middle(ill))/float64(middle(well)), float64(middle(illMost))/float64(middle(wellMost))
			t.Logf("%s: writes take %.2f times as long in the middle (%v), %.2f at the 95th percentile (%v)", fault, half, middle(ill), most, middle(illMost))
			if half > 1.1 {
				t.Errorf("%s: %.2f times", fault, half)
			}
		}
	})
}

// TestWhatWaitsTellsWhy: of an index that is made anew and gets no vectors, the condition says why, and so does the run that makes it.
func TestWhatWaitsTellsWhy(t *testing.T) {
	withFaultyServer(t, func(t *testing.T, s *service, _ *faultyServer) {
		s.do("POST", "/api/v1/_/shop/items", json1(map[string]any{"title": "a hat"})).want(t, http.StatusCreated)
		s.embedded(1)
		s.configure("shop", strings.Replace(vectorConfig, "{group: texts, fields: [title]}", "{group: txets, fields: [title]}", 1))
		s.do("POST", "/api/v1/_/shop/_/admin/reload?wait=true", admin).want(t, http.StatusOK)
		var run struct{ ID string }
		started := s.do("POST", regenerate+"?collection=items&search=near", admin)
		if err := json.Unmarshal([]byte(started.body), &run); err != nil || started.status != http.StatusAccepted {
			t.Fatal(started, started.body, err)
		}
		const why = "the embedding group txets is offline: it is not in embedding.groups"
		s.shows(regenerate+"/"+run.ID, "items/near: "+why)
		s.shows("/api/v1/project/"+s.projectID()+"/status", "items/near: 1 record wait for their vectors ("+why)
	})
}
