package openai_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/embedding/embeddingtest"
	"github.com/svcctl/svc/pkg/embedding/openai"
	"github.com/svcctl/svc/pkg/errs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// question is what a server reads.
type question struct {
	Model          string   `json:"model"`
	Input          []string `json:"input"`
	Dimensions     int      `json:"dimensions"`
	EncodingFormat string   `json:"encoding_format"`
}

type answer struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"`
}

// server answers as OpenAI does, last text first. A simple one gives lists whatever it is asked for; an old one refuses
// what it doesn't know; a fixed one has as many dimensions as it has.
type server struct {
	simple, old bool
	fixed       int
	asked       atomic.Int64
	last        atomic.Pointer[question]
}

func (s *server) open(t *testing.T, config embedding.ProviderConfig) embedding.Provider {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/embeddings", func(w http.ResponseWriter, r *http.Request) {
		var q question
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.asked.Add(1)
		s.last.Store(&q)
		if s.old && (q.Dimensions != 0 || q.EncodingFormat != "float") || q.Model != "small" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		dimensions := q.Dimensions
		if s.fixed != 0 {
			dimensions = s.fixed
		}
		var data []answer
		for i, v := range embeddingtest.Vectors(t, r, embedding.ProviderConfig{Dimensions: dimensions}, q.Input) {
			a := answer{"embedding", i, v.Dense}
			if q.EncodingFormat == "base64" && !s.simple {
				a.Embedding = encode(v.Dense)
			}
			data = append([]answer{a}, data...)
		}
		if err := json.NewEncoder(w).Encode(map[string]any{"object": "list", "model": q.Model, "data": data}); err != nil {
			t.Error(err)
		}
	})
	h := httptest.NewServer(mux)
	t.Cleanup(h.Close)
	config.Name, config.Model, config.BaseURL = "remote", "small", h.URL+"/v1/"
	p, err := openai.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func encode(dense []float32) string {
	var out []byte
	for _, x := range dense {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(out)
}

func TestProvider(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*server{"base64": {}, "float": {simple: true}, "old": {old: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			embeddingtest.Run(t, func(t *testing.T) embedding.Provider { t.Helper(); return s.open(t, embedding.ProviderConfig{}) })
		})
	}
}

func TestR11Servers(t *testing.T) {
	t.Parallel()
	embeddingtest.RunHTTP(t, openai.New)
}

func TestQuestion(t *testing.T) {
	t.Parallel()
	s := &server{}
	p := s.open(t, embedding.ProviderConfig{Dimensions: 64})
	got, err := p.Embed(t.Context(), []string{"a", "b"}, embedding.Document)
	if err != nil || len(got[1].Dense) != 64 {
		t.Fatal(got, err)
	}
	want := question{Model: "small", Input: []string{"a", "b"}, Dimensions: 64, EncodingFormat: "base64"}
	if diff := cmp.Diff(want, *s.last.Load()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOldServer knows neither dimensions nor base64: it is asked without from then on, if its vectors are as long as wanted.
func TestOldServer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		fixed   int
		wantErr string
		asked   int64 // for two calls
	}{
		{"as long", 64, "", 3},
		{"longer", 128, embedding.CodeRefused, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &server{old: true, fixed: tt.fixed}
			p := s.open(t, embedding.ProviderConfig{Dimensions: 64})
			for range 2 {
				_, err := p.Embed(t.Context(), []string{"a"}, embedding.Document)
				if code := codeOf(err); code != tt.wantErr {
					t.Fatalf("it gave %v, want %q", err, tt.wantErr)
				}
			}
			if got := s.asked.Load(); got != tt.asked {
				t.Errorf("it was asked %d times, want %d", got, tt.asked)
			}
		})
	}
}

func codeOf(err error) string {
	if err == nil {
		return ""
	}
	return errs.From(err).Code
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, answer string
		want         []embedding.Vector // nil: an error
	}{
		{"by index", `{"data":[{"index":1,"embedding":[3]},{"index":0,"embedding":[1,2]}]}`, []embedding.Vector{{Dense: []float32{1, 2}}, {Dense: []float32{3}}}},
		{"without index", `{"data":[{"embedding":[1]},{"embedding":[2]}]}`, []embedding.Vector{{Dense: []float32{1}}, {Dense: []float32{2}}}},
		{"mixed forms", `{"data":[{"embedding":"AACAPw=="},{"embedding":[2]}]}`, []embedding.Vector{{Dense: []float32{1}}, {Dense: []float32{2}}}},
		{"index twice", `{"data":[{"index":1,"embedding":[3]},{"index":1,"embedding":[1]}]}`, nil},
		{"index too large", `{"data":[{"index":2,"embedding":[3]},{"index":1,"embedding":[1]}]}`, nil},
		{"index below", `{"data":[{"index":-1,"embedding":[3]},{"index":1,"embedding":[1]}]}`, nil},
		{"too few", `{"data":[{"index":0,"embedding":[3]}]}`, nil},
		{"too many", `{"data":[{"embedding":[3]},{"embedding":[3]},{"embedding":[3]}]}`, nil},
		{"null within", `{"data":[{"embedding":[3,null]},{"embedding":[3]}]}`, nil},
		{"null", `{"data":[{"embedding":null},{"embedding":[3]}]}`, nil},
		{"missing", `{"data":[{},{"embedding":[3]}]}`, nil},
		{"empty", `{"data":[{"embedding":[]},{"embedding":[3]}]}`, nil},
		{"too large a number", `{"data":[{"embedding":[1e39]},{"embedding":[3]}]}`, nil},
		{"text", `{"data":[{"embedding":["1"]},{"embedding":[3]}]}`, nil},
		{"no base64", `{"data":[{"embedding":"!"},{"embedding":[3]}]}`, nil},
		{"base64 of 3 bytes", `{"data":[{"embedding":"AAAA"},{"embedding":[3]}]}`, nil},
		{"base64 of nothing", `{"data":[{"embedding":""},{"embedding":[3]}]}`, nil},
		{"base64 of no number", `{"data":[{"embedding":"` + encode([]float32{float32(math.NaN())}) + `"},{"embedding":[3]}]}`, nil},
		{"more after it", `{"data":[{"embedding":[1]},{"embedding":[2]}]} {}`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := openai.Decode([]byte(tt.answer), 2)
			if diff := cmp.Diff(tt.want, got); diff != "" || (err == nil) != (tt.want != nil) {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"data":[{"index":1,"embedding":[3]},{"index":0,"embedding":"AACAPw=="}]}`), 2)
	f.Add([]byte(`{"data":[{"embedding":[1e39]}]}`), 1)
	f.Add([]byte(`{"data":null}`), 0)
	f.Fuzz(func(t *testing.T, answer []byte, n int) {
		if n < 0 || n > 1000 {
			t.Skip(strconv.Itoa(n) + " texts")
		}
		got, err := openai.Decode(answer, n)
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
			for _, x := range v.Dense {
				if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
					t.Fatalf("%s has %v", strings.TrimSpace(string(answer)), x)
				}
			}
		}
	})
}
