package tei_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/embedding/embeddingtest"
	"github.com/svcctl/svc/pkg/embedding/tei"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type question struct {
	Inputs   []string `json:"inputs"`
	Truncate bool     `json:"truncate"`
}

type token struct {
	Index int     `json:"index"`
	Value float32 `json:"value"`
}

// server answers as TEI does.
type server struct {
	last atomic.Pointer[question]
}

func (s *server) open(t *testing.T, sparse bool) embedding.Provider {
	t.Helper()
	mux := http.NewServeMux()
	answer := func(sparse bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			var q question
			if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
				w.WriteHeader(http.StatusUnprocessableEntity)
				return
			}
			s.last.Store(&q)
			out := []any{}
			for _, v := range embeddingtest.Vectors(t, r, embedding.ProviderConfig{Dimensions: 256}, q.Inputs) {
				if sparse {
					out = append(out, tokens(v.Dense))
				} else {
					out = append(out, v.Dense)
				}
			}
			if err := json.NewEncoder(w).Encode(out); err != nil {
				t.Error(err)
			}
		}
	}
	mux.HandleFunc("POST /embed", answer(false))
	mux.HandleFunc("POST /embed_sparse", answer(true))
	h := httptest.NewServer(mux)
	t.Cleanup(h.Close)
	p, err := tei.New(embedding.ProviderConfig{Name: "remote", Model: "small", BaseURL: h.URL, Sparse: sparse})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func tokens(dense []float32) []token {
	out := []token{}
	for i, x := range dense {
		if x != 0 {
			out = append(out, token{i, x})
		}
	}
	slices.Reverse(out)
	return out
}

func TestProvider(t *testing.T) {
	t.Parallel()
	for name, sparse := range map[string]bool{"dense": false, "sparse": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			embeddingtest.Run(t, func(t *testing.T) embedding.Provider { t.Helper(); return (&server{}).open(t, sparse) })
		})
	}
}

func TestR11Servers(t *testing.T) {
	t.Parallel()
	for name, sparse := range map[string]bool{"dense": false, "sparse": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			embeddingtest.RunHTTP(t, func(c embedding.ProviderConfig) (embedding.Provider, error) {
				c.Sparse = sparse
				return tei.New(c)
			})
		})
	}
}

func TestQuestion(t *testing.T) {
	t.Parallel()
	s := &server{}
	if _, err := s.open(t, false).Embed(t.Context(), []string{"a", "b"}, embedding.Query); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(question{Inputs: []string{"a", "b"}, Truncate: true}, *s.last.Load()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, answer string
		sparse       bool
		want         []embedding.Vector // nil: an error
	}{
		{"dense", `[[1,2],[3,4]]`, false, []embedding.Vector{{Dense: []float32{1, 2}}, {Dense: []float32{3, 4}}}},
		{"dense, one", `[[1,2]]`, false, nil},
		{"dense, null", `[[1,2],null]`, false, nil},
		{"dense, what was NaN", `[[1,2],[null,1]]`, false, nil},
		{"dense, empty", `[[1,2],[]]`, false, nil},
		{"dense, by token", `[[[1,2]],[[1,2]]]`, false, nil},
		{"dense, sparse form", `[[{"index":1,"value":2}],[]]`, false, nil},
		{"sparse", `[[{"index":4294967295,"value":0.5},{"index":0,"value":2}],[]]`, true, []embedding.Vector{{Sparse: map[string]float32{"4294967295": 0.5, "0": 2}}, {Sparse: map[string]float32{}}}},
		{"sparse, dense form", `[[1,2],[3,4]]`, true, nil},
		{"sparse, null", `[[],null]`, true, nil},
		{"sparse, one", `[[]]`, true, nil},
		{"sparse, below 0", `[[{"index":-1,"value":0.5}],[]]`, true, nil},
		{"sparse, without a value", `[[{"index":1}],[]]`, true, nil},
		{"sparse, what was NaN", `[[{"index":1,"value":null}],[]]`, true, nil},
		{"sparse, without an index", `[[{"value":1}],[]]`, true, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			decode := tei.DecodeDense
			if tt.sparse {
				decode = tei.DecodeSparse
			}
			got, err := decode([]byte(tt.answer), 2)
			if diff := cmp.Diff(tt.want, got); diff != "" || (err == nil) != (tt.want != nil) {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func FuzzDecodeDense(f *testing.F) {
	f.Add([]byte(`[[1,2],[3,4]]`), 2)
	fuzz(f, tei.DecodeDense, func(v embedding.Vector) bool { return len(v.Dense) > 0 && v.Sparse == nil })
}

func FuzzDecodeSparse(f *testing.F) {
	f.Add([]byte(`[[{"index":1,"value":0.5}],[]]`), 2)
	fuzz(f, tei.DecodeSparse, func(v embedding.Vector) bool { return v.Sparse != nil && v.Dense == nil })
}

func fuzz(f *testing.F, decode func([]byte, int) ([]embedding.Vector, error), valid func(embedding.Vector) bool) {
	f.Helper()
	f.Add([]byte(strings.Repeat("[", 100)), 1)
	f.Fuzz(func(t *testing.T, answer []byte, n int) {
		if n < 0 || n > 1000 {
			t.Skip("no number of texts")
		}
		got, err := decode(answer, n)
		if err != nil {
			return
		}
		if len(got) != n {
			t.Fatalf("%d vectors for %d texts", len(got), n)
		}
		for _, v := range got {
			if !valid(v) {
				t.Fatalf("a vector is %v", v)
			}
		}
	})
}
