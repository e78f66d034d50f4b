package local_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/embedding/local"
	"github.com/svcctl/svc/pkg/embedding/local/minilm"
)

var loaded struct {
	sync.Mutex

	model *local.Model
}

// miniLM gives all-MiniLM-L6-v2, one for all tests.
func miniLM(tb testing.TB) *local.Model {
	tb.Helper()
	dir := minilm.Dir(tb)
	loaded.Lock()
	defer loaded.Unlock()
	if loaded.model == nil {
		m, err := local.Load(dir, local.Options{Concurrency: 2})
		if err != nil {
			tb.Fatal(err)
		}
		loaded.model = m
	}
	return loaded.model
}

// reference is what testdata/reference.py has made of a text.
type reference struct {
	Text   string  `json:"text"`
	IDs    []int32 `json:"ids"`
	Vector []byte  `json:"vector"`
}

func references(tb testing.TB) []reference {
	tb.Helper()
	text, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		tb.Fatal(err)
	}
	var all []reference
	if err := json.Unmarshal(text, &all); err != nil {
		tb.Fatal(err)
	}
	if len(all) < 40 {
		tb.Fatalf("%d texts", len(all))
	}
	return all
}

func (r reference) vector() []float32 {
	out := make([]float32, len(r.Vector)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(r.Vector[4*i:]))
	}
	return out
}

func short(text string) string {
	if r := []rune(text); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return text
}

func TestReference(t *testing.T) {
	t.Parallel()
	m := miniLM(t)
	for _, r := range references(t) {
		t.Run(short(r.Text), func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(r.IDs, m.Tokens(r.Text)); diff != "" {
				t.Fatalf("tokens (-want +got):\n%s", diff)
			}
			got, err := m.Encode(t.Context(), []string{r.Text})
			if err != nil {
				t.Fatal(err)
			}
			want := r.vector()
			if len(got[0]) != len(want) {
				t.Fatalf("%d dimensions, want %d", len(got[0]), len(want))
			}
			if c := cosine(got[0], want); c < 0.9999999 {
				t.Errorf("cosine %.9f", c)
			}
			worst := 0.0
			for i := range want {
				worst = max(worst, math.Abs(float64(got[0][i]-want[i])))
			}
			if worst > 2e-6 {
				t.Errorf("a value is off by %g", worst)
			}
		})
	}
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

// TestPoolings has what comes after the network: the mean or the first token, with the length 1 or not.
func TestPoolings(t *testing.T) {
	t.Parallel()
	const text = "the bakers bread"
	encode := func(edits ...[3]string) []float32 {
		dir := tinyFolder("F32", 7)
		for _, e := range edits {
			edit(t, dir, e[0], e[1], e[2])
		}
		out, err := loadTiny(t, dir, local.Options{}).Encode(t.Context(), []string{text})
		if err != nil {
			t.Fatal(err)
		}
		return out[0]
	}
	length := func(v []float32) float64 {
		var sum float64
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		return math.Sqrt(sum)
	}
	raw := [3]string{"modules.json", `,
			{"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}`, ""}
	cls := [3]string{"1_Pooling/config.json", `"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true`, `"pooling_mode_cls_token": true`}
	mean, meanRaw, first, firstRaw := encode(), encode(raw), encode(cls), encode(cls, raw)
	if c := cosine(mean, first); c > 0.999 {
		t.Errorf("mean and first token are the same: %v", c)
	}
	for name, pair := range map[string][2][]float32{"mean": {mean, meanRaw}, "first": {first, firstRaw}} {
		if c := cosine(pair[0], pair[1]); c < 1-1e-9 {
			t.Errorf("%s: cosine with the raw vector %v", name, c)
		}
		if n, r := length(pair[0]), length(pair[1]); math.Abs(n-1) > 1e-6 || math.Abs(r-1) < 1e-3 {
			t.Errorf("%s: length %v, and raw %v", name, n, r)
		}
	}
}

// batch is texts of all lengths, so many that they need several runs of the network.
func batch() []string {
	words := []string{"bread", "baker", "the", "cafe", "中文", "unwanted", ".", "a b", "[MASK]", ""}
	var texts []string
	for i := range 90 {
		var text []string
		for j := range i % 23 {
			text = append(text, words[(i*7+j*j)%len(words)])
		}
		texts = append(texts, strings.Join(text, " "))
	}
	return texts
}

func TestBatch(t *testing.T) {
	t.Parallel()
	m := loadTiny(t, tinyFolder("F32", 3), local.Options{})
	texts := batch()
	together, err := m.Encode(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	if len(together) != len(texts) {
		t.Fatalf("%d vectors of %d texts", len(together), len(texts))
	}
	for i, text := range texts {
		alone, err := m.Encode(t.Context(), []string{text})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(alone[0], together[i]); diff != "" {
			t.Errorf("%q: alone and in a batch:\n%s", text, diff)
		}
	}
	none, err := m.Encode(t.Context(), nil)
	if err != nil || len(none) != 0 {
		t.Errorf("no texts: %v, %v", none, err)
	}
}

// TestBatchReal is TestBatch with a model as it is used.
func TestBatchReal(t *testing.T) {
	t.Parallel()
	m := miniLM(t)
	var texts []string
	for _, r := range references(t) {
		texts = append(texts, r.Text)
	}
	together, err := m.Encode(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range references(t) {
		alone, err := m.Encode(t.Context(), []string{r.Text})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(alone[0], together[i]); diff != "" {
			t.Errorf("%s: alone and in a batch:\n%s", short(r.Text), diff)
		}
	}
}

func TestConcurrent(t *testing.T) {
	t.Parallel()
	m := loadTiny(t, tinyFolder("F32", 3), local.Options{Concurrency: 3})
	texts := batch()
	want, err := m.Encode(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for range 3 {
				got, err := m.Encode(t.Context(), texts)
				if err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("-first +later:\n%s", diff)
				}
			}
		})
	}
	running.Wait()
}

// TestConcurrency has one place for encoding: who comes while it is taken waits for it, or for the end of its context.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := loadTiny(t, tinyFolder("F32", 3), local.Options{Concurrency: 1})
		giveBack := m.Hold()
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp, waited := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := m.Encode(ctx, []string{"bread"})
			gaveUp <- err
		}()
		go func() {
			_, err := m.Encode(t.Context(), []string{"bread"})
			waited <- err
		}()
		synctest.Wait()
		if len(gaveUp)+len(waited) > 0 {
			t.Error("a second one runs beside the first")
		}
		cancel()
		synctest.Wait()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) {
			t.Errorf("the one whose context ended: %v", err)
		}
		if len(waited) > 0 {
			t.Error("a second one runs beside the first")
		}
		giveBack()
		if err := <-waited; err != nil {
			t.Error(err)
		}
	})
}

// countdown is a context that ends when it has been asked so many times.
type countdown struct {
	context.Context
	left atomic.Int64
}

func (c *countdown) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestContext ends the context before each of the layers, and gives the place back each time.
func TestContext(t *testing.T) {
	t.Parallel()
	m := loadTiny(t, tinyFolder("F32", 3), local.Options{Concurrency: 1})
	for asked := range 20 {
		ctx := &countdown{Context: t.Context()}
		ctx.left.Store(int64(asked))
		_, err := m.Encode(ctx, []string{"bread"})
		if err == nil {
			if asked < 4 { // three layers, and the text
				t.Errorf("the context was asked %d times", asked)
			}
			return
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	t.Error("the context is asked more often than there are layers")
}

// TestOverflow has weights that no model has: they give an error, not a vector of NaN.
func TestOverflow(t *testing.T) {
	t.Parallel()
	weights := tinyWeights("", strings.Count(tinyVocab, "\n"), 1)
	for _, v := range weights {
		for i := range v.data {
			v.data[i] *= 1e30
		}
	}
	dir := tinyFolder("F32", 1)
	dir["model.safetensors"] = &fstest.MapFile{Data: tensorsOf("F32", weights)}
	if out, err := loadTiny(t, dir, local.Options{}).Encode(t.Context(), []string{"bread"}); err == nil {
		t.Errorf("a vector %v", out)
	}
}
