package embeddings_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/script/embeddings"
)

// model gives vectors as it is told.
type model struct {
	sparse bool
	embed  func(ctx context.Context, texts []string) error // nil: at once
}

func (m *model) Name() string    { return "model" }
func (m *model) Dimensions() int { return 2 }
func (m *model) Sparse() bool    { return m.sparse }
func (m *model) Close() error    { return nil }

func (m *model) Embed(ctx context.Context, texts []string, kind embedding.Kind) ([]embedding.Vector, error) {
	if m.embed != nil {
		if err := m.embed(ctx, texts); err != nil {
			return nil, err
		}
	}
	out := make([]embedding.Vector, len(texts))
	for i, text := range texts {
		switch {
		case m.sparse:
			out[i].Sparse = map[string]float32{text: 0.5, "a": 0.25}
		case kind == embedding.Query:
			out[i].Dense = []float32{0, 2}
		default:
			out[i].Dense = []float32{3, 4}
		}
	}
	return out, nil
}

// module has the groups dense and sparse, of these models.
func module(t *testing.T, dense, sparse *model) *embeddings.Module {
	t.Helper()
	provider := func(name string, sparse bool) embedding.ProviderConfig {
		return embedding.ProviderConfig{Name: name, Type: name, Model: "m", Sparse: sparse, TimeoutPerAttempt: time.Hour}
	}
	groups, err := embedding.Open(t.Context(), embedding.Config{
		Providers: []embedding.ProviderConfig{provider("dense", false), provider("sparse", true)},
		Groups:    []embedding.GroupConfig{{Name: "dense", Members: []string{"dense"}}, {Name: "sparse", Members: []string{"sparse"}}},
	}, embedding.Types{
		"dense":  func(embedding.ProviderConfig) (embedding.Provider, error) { return dense, nil },
		"sparse": func(embedding.ProviderConfig) (embedding.Provider, error) { sparse.sparse = true; return sparse, nil },
	}, embedding.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := groups.Close(); err != nil {
			t.Error(err)
		}
	})
	return embeddings.New(groups.Group)
}

func TestEmbeddings(t *testing.T) {
	t.Parallel()
	texts := func(n, length int) bson.A {
		out := make(bson.A, n)
		for i := range out {
			out[i] = strings.Repeat("x", length)
		}
		return out
	}
	m := module(t, &model{}, &model{})
	for _, x := range []struct {
		op   string
		args bson.A
		want any // a text is the code of an error
	}{
		{"query", bson.A{"dense", "b"}, bson.A{0.0, 1.0}},
		{"query", bson.A{"sparse", "b"}, bson.D{{Key: "a", Value: 0.25}, {Key: "b", Value: 0.5}}},
		{"documents", bson.A{"dense", bson.A{"b", " ", "c"}}, bson.A{bson.A{float64(float32(0.6)), float64(float32(0.8))}, nil, bson.A{float64(float32(0.6)), float64(float32(0.8))}}},
		{"documents", bson.A{"sparse", bson.A{"b"}}, bson.A{bson.D{{Key: "a", Value: 0.25}, {Key: "b", Value: 0.5}}}},
		{"documents", bson.A{"dense", bson.A{}}, bson.A{}},
		{"query", bson.A{"dense", " "}, "embedding_no_text"},
		{"query", bson.A{"none", "b"}, "embedding_offline"},
		{"query", bson.A{"dense"}, "embeddings_invalid"},
		{"query", bson.A{"dense", bson.A{"b"}}, "embeddings_invalid"},
		{"query", bson.A{"dense", int32(1)}, "embeddings_invalid"},
		{"query", bson.A{nil, "b"}, "embeddings_invalid"},
		{"query", bson.A{}, "embeddings_invalid"},
		{"query", bson.A{"dense", strings.Repeat("x", embeddings.MaxBytes+1)}, "embeddings_too_many"},
		{"documents", bson.A{"dense", "b"}, "embeddings_invalid"},
		{"documents", bson.A{"dense", bson.A{"b", nil}}, "embeddings_invalid"},
		{"documents", bson.A{"dense", texts(embeddings.MaxTexts+1, 1)}, "embeddings_too_many"},
		{"documents", bson.A{"dense", texts(65, 1<<14)}, "embeddings_too_many"},
		{"similarity", bson.A{"dense", "b"}, "no_module"},
	} {
		got, err := m.Call(t.Context(), "embeddings."+x.op, x.args)
		if err != nil {
			got = errs.From(err).Code
		}
		if diff := cmp.Diff(x.want, got); diff != "" {
			t.Errorf("%s %.60v: %v\n%s", x.op, fmt.Sprint(x.args), err, diff)
		}
	}
	for _, n := range []int{embeddings.MaxTexts, 64} {
		got, err := m.Call(t.Context(), "embeddings.documents", bson.A{"dense", texts(n, embeddings.MaxBytes/n)})
		if list, _ := got.(bson.A); err != nil || len(list) != n {
			t.Errorf("%d texts: %d vectors, %v", n, len(list), err)
		}
	}
}

// A project has few calls under way: searches ask the same groups. Who waits for a turn waits no longer than its run lasts.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		under := make(chan struct{}, 100)
		dense := &model{embed: func(ctx context.Context, texts []string) error {
			if texts[0] != "hold" {
				return nil
			}
			under <- struct{}{}
			select {
			case <-hold:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
		m := module(t, dense, &model{})
		done := make(chan error, 100)
		for range embeddings.MaxCalls + 2 {
			go func() {
				_, err := m.Call(t.Context(), "embeddings.query", bson.A{"dense", "hold"})
				done <- err
			}()
		}
		synctest.Wait()
		if len(under) != embeddings.MaxCalls {
			t.Errorf("%d calls at once, want %d", len(under), embeddings.MaxCalls)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := m.Call(ctx, "embeddings.query", bson.A{"dense", "b"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call without a turn: %v", err)
		}
		close(hold)
		for range embeddings.MaxCalls + 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		// One whose run ends gives its turn back.
		hold = make(chan struct{})
		for range embeddings.MaxCalls + 1 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := m.Call(ctx, "embeddings.query", bson.A{"dense", "hold"}); errs.From(err).Code != embedding.CodeTimeout {
				t.Errorf("a call whose time is over: %v", err)
			}
			cancel()
		}
	})
}
