package ollama_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/embedding/embeddingtest"
	"github.com/svcctl/svc/pkg/embedding/ollama"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type question struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Truncate   bool     `json:"truncate"`
	Dimensions int      `json:"dimensions"`
}

// open gives a provider of a server that answers as Ollama does.
func open(t *testing.T, config embedding.ProviderConfig, last *atomic.Pointer[question]) embedding.Provider {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/embed", func(w http.ResponseWriter, r *http.Request) {
		var q question
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || q.Model != "all-minilm" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		last.Store(&q)
		var list [][]float32
		for _, v := range embeddingtest.Vectors(t, r, embedding.ProviderConfig{Dimensions: q.Dimensions}, q.Input) {
			list = append(list, v.Dense)
		}
		if err := json.NewEncoder(w).Encode(map[string]any{"model": q.Model, "embeddings": list, "total_duration": 14143917}); err != nil {
			t.Error(err)
		}
	})
	h := httptest.NewServer(mux)
	t.Cleanup(h.Close)
	config.Name, config.Model, config.BaseURL = "remote", "all-minilm", h.URL
	p, err := ollama.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func TestProvider(t *testing.T) {
	t.Parallel()
	embeddingtest.Run(t, func(t *testing.T) embedding.Provider {
		t.Helper()
		return open(t, embedding.ProviderConfig{Dimensions: 128}, &atomic.Pointer[question]{})
	})
}

func TestR11Servers(t *testing.T) {
	t.Parallel()
	embeddingtest.RunHTTP(t, ollama.New)
}

func TestQuestion(t *testing.T) {
	t.Parallel()
	var last atomic.Pointer[question]
	if _, err := open(t, embedding.ProviderConfig{Dimensions: 64}, &last).Embed(t.Context(), []string{"a", "b"}, embedding.Query); err != nil {
		t.Fatal(err)
	}
	want := question{Model: "all-minilm", Input: []string{"a", "b"}, Truncate: true, Dimensions: 64}
	if diff := cmp.Diff(want, *last.Load()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNoSparse(t *testing.T) {
	t.Parallel()
	if _, err := ollama.New(embedding.ProviderConfig{Name: "p", Model: "m", BaseURL: "http://127.0.0.1", Sparse: true}); err == nil {
		t.Error("sparse was taken")
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, answer string
		want         []embedding.Vector // nil: an error
	}{
		{"two", `{"embeddings":[[1,2],[3,4]]}`, []embedding.Vector{{Dense: []float32{1, 2}}, {Dense: []float32{3, 4}}}},
		{"one", `{"embeddings":[[1,2]]}`, nil},
		{"three", `{"embeddings":[[1],[2],[3]]}`, nil},
		{"the old API", `{"embedding":[1,2]}`, nil},
		{"null", `{"embeddings":[[1,2],null]}`, nil},
		{"null within", `{"embeddings":[[1,2],[null,1]]}`, nil},
		{"empty", `{"embeddings":[[1,2],[]]}`, nil},
		{"too large a number", `{"embeddings":[[1,2],[1e99]]}`, nil},
		{"an object", `{"embeddings":[[1,2],{}]}`, nil},
		{"cut", `{"embeddings":[[1,2],[1`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := ollama.Decode([]byte(tt.answer), 2)
			if diff := cmp.Diff(tt.want, got); diff != "" || (err == nil) != (tt.want != nil) {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"embeddings":[[1,2],[3,4]]}`), 2)
	f.Add([]byte(`{"embeddings":[null]}`), 1)
	f.Fuzz(func(t *testing.T, answer []byte, n int) {
		if n < 0 || n > 1000 {
			t.Skip("no number of texts")
		}
		got, err := ollama.Decode(answer, n)
		if err != nil {
			return
		}
		if len(got) != n {
			t.Fatalf("%d vectors for %d texts", len(got), n)
		}
		for _, v := range got {
			if len(v.Dense) == 0 || v.Sparse != nil {
				t.Fatalf("a vector is %v", v)
			}
		}
	})
}
