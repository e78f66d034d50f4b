package embedding_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/errs"
)

// TestGroupSettings has settings that can't work: the group is offline and says why, and the service starts.
func TestGroupSettings(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(w *world)
		want   string // in the group's error, or its first member's
		live   bool   // by its second member
	}{
		{"no members", func(w *world) { w.config.Groups[0].Members = nil }, "it has no members", false},
		{"member twice", func(w *world) { w.config.Groups[0].Members = []string{"a", "a"} }, "its member a is there twice", false},
		{"unknown member", func(w *world) { w.config.Groups[0].Members = []string{"x", "a"} }, "there is no embedding provider x", false},
		{"onSingleQuery", func(w *world) { w.config.Groups[0].OnSingleQuery = "spread" }, `onSingleQuery is first or race, not "spread"`, false},
		{"onBulkWrite", func(w *world) { w.config.Groups[0].OnBulkWrite = "race" }, `onBulkWrite is first or spread, not "race"`, false},
		{"health", func(w *world) { w.config.Groups[0].Health.Interval = -1 }, "health.interval", false},
		{"other dimensions", func(w *world) { w.config.Providers[1].Dimensions = 128 }, "differ in dimensions", false},
		{"other form", func(w *world) { w.config.Providers[1].Sparse = true }, "differ in sparse", false},
		{"other documentPrefix", func(w *world) { w.config.Providers[1].DocumentPrefix = "x" }, "differ in documentPrefix", false},
		{"other queryPrefix", func(w *world) { w.config.Providers[1].QueryPrefix = "x" }, "differ in queryPrefix", false},
		{"other revision", func(w *world) { w.config.Providers[1].Revision = "2" }, "differ in revision", false},
		{"other model", func(w *world) { w.config.Providers[1].Model = "n" }, "have different models: give the group a golden file", false},
		{"goldenPath", func(w *world) { w.config.GoldenPath = filepath.Join(w.TempDir(), "nowhere") }, "goldenPath can't be read: no such file", false},
		{"golden file", func(w *world) { w.golden("{") }, "its golden file is not valid", false},
		{"type", func(w *world) { w.config.Providers[0].Type = "magic" }, `embedding provider a: there is no type "magic"`, true},
		{"dimensions", func(w *world) {
			w.config.Providers[0].Dimensions, w.config.Providers[1].Dimensions = -1, -1
		}, "dimensions is 0 to 65536", false},
		{"timeout", func(w *world) { w.config.Providers[0].TimeoutPerAttempt = -1 }, "can't be negative", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "a", "b")
				tt.change(w)
				g := w.open()
				s := g.Status(false)
				if text := s.Error + first(s); !strings.Contains(text, tt.want) {
					t.Errorf("its status says %q", text)
				}
				_, err := g.Documents(t.Context(), []string{"text"})
				if tt.live != (err == nil) || tt.live != (s.State == embedding.Live) {
					t.Errorf("it is %s and gave %v", s.State, err)
				}
				if err != nil && !strings.HasPrefix(errs.From(err).Message, "the embedding group texts is offline: ") {
					t.Errorf("the error is %q", errs.From(err).Message)
				}
				if !tt.live && s.State != embedding.Offline {
					t.Errorf("it is %s", s.State)
				}
			})
		})
	}
}

func first(s embedding.GroupStatus) string {
	if len(s.Members) == 0 {
		return ""
	}
	return s.Members[0].Error
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		config embedding.Config
		want   string
	}{
		{"no name", embedding.Config{Providers: []embedding.ProviderConfig{{}}}, "embedding.providers[0].name"},
		{"twice", embedding.Config{Providers: []embedding.ProviderConfig{{Name: "a"}, {Name: "a"}}}, "embedding.providers[1].name: a is there twice"},
		{"group outside", embedding.Config{Groups: []embedding.GroupConfig{{Name: "../a"}}}, "embedding.groups[0].name"},
		{"hidden", embedding.Config{Groups: []embedding.GroupConfig{{Name: ".a"}}}, "embedding.groups[0].name"},
		{"cooldown", embedding.Config{CooldownAfterUnhealthy: -1}, "can't be negative"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := embedding.Open(t.Context(), tt.config, nil, embedding.Options{})
			if e := errs.From(err); err == nil || e.Kind != errs.Invalid || !strings.Contains(e.Message, tt.want) {
				t.Errorf("it gave %v", err)
			}
		})
	}
}

func TestUnknownGroup(t *testing.T) {
	t.Parallel()
	groups, err := embedding.Open(t.Context(), embedding.Config{}, nil, embedding.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := groups.Close(); err != nil {
			t.Error(err)
		}
	}()
	_, err = groups.Group("x")
	if e := errs.From(err); e.Code != embedding.CodeOffline || !strings.HasPrefix(e.Message, "the embedding group x is offline: ") {
		t.Errorf("it gave %v", err)
	}
}

// TestReference names whatever changes vectors, and can't be the same for two that differ.
func TestReference(t *testing.T) {
	for _, tt := range []struct {
		config embedding.ProviderConfig
		want   string
	}{
		{embedding.ProviderConfig{Type: "tei", Model: "bge"}, `model "bge"`},
		{embedding.ProviderConfig{Type: "ollama", Model: "bge"}, `model "bge"`},
		{embedding.ProviderConfig{Type: "tei", Model: "bge", Dimensions: 384}, `model "bge", dimensions 384`},
		{embedding.ProviderConfig{Type: "tei", Model: "splade", Sparse: true}, `model "splade", sparse`},
		{embedding.ProviderConfig{Type: "local", ModelPath: "/models/minilm"}, `model "minilm"`},
		{embedding.ProviderConfig{Type: "hash", Model: "bge"}, `model "hash/bge"`},
		{embedding.ProviderConfig{Type: "hash"}, `model "hash"`},
		{
			embedding.ProviderConfig{Type: "tei", Model: "e5", DocumentPrefix: "passage: ", QueryPrefix: "query: ", Revision: "2"},
			`model "e5", documentPrefix "passage: ", queryPrefix "query: ", revision "2"`,
		},
		{embedding.ProviderConfig{Type: "tei", Model: `e5", revision "2`}, `model "e5\", revision \"2"`},
	} {
		t.Run(tt.want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "a")
				tt.config.Name = "a"
				w.config.Providers[0] = tt.config
				if g := w.open(); g.Reference() != tt.want {
					t.Errorf("it is %s, want %s", g.Reference(), tt.want)
				}
			})
		})
	}
}

func TestGoldenFile(t *testing.T) {
	const dense = `[1,0,0,0]`
	for _, tt := range []struct {
		name, text string
		want       string // "" is a valid one
	}{
		{"valid", `{"texts":[{"text":"a","vector":` + dense + `},{"text":"b","kind":"query","vector":[0.5,1e-3,0,2]}]}`, ""},
		{"no texts", `{}`, "texts has 0 entries"},
		{"too many", `{"texts":[{"text":"a"}` + strings.Repeat(`,{"text":"a"}`, 256) + `]}`, "texts has 257 entries"},
		{"unknown key", `{"texts":[{"text":"a","vektor":` + dense + `}]}`, "vektor"},
		{"no vector", `{"texts":[{"text":"a"}]}`, "texts[0]: vector"},
		{"no text", `{"texts":[{"vector":` + dense + `}]}`, "texts[0]: text is missing"},
		{"kind", `{"texts":[{"text":"a","kind":"title","vector":` + dense + `}]}`, `kind is document or query, not "title"`},
		{"other length", `{"texts":[{"text":"a","vector":[1]}]}`, "1 dimensions instead of 4"},
		{"no direction", `{"texts":[{"text":"a","vector":[0,0,0,0]}]}`, "no direction"},
		{"sparse", `{"texts":[{"text":"a","vector":{"a":1}}]}`, "texts[0]: vector"},
		{"null", `{"texts":[{"text":"a","vector":null}]}`, "not dense"},
		{"more behind it", `{"texts":[{"text":"a","vector":` + dense + `}]}{}`, "after its end"},
		{"not JSON", "texts:", "invalid character"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := embedding.DecodeGolden([]byte(tt.text), false, 4)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("it gave %v, want %q", err, tt.want)
			}
		})
	}
}

// TestGoldenFileStaysInside has the file be a link to elsewhere.
func TestGoldenFileStaysInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.golden("{}")
		path := filepath.Join(w.config.GoldenPath, "texts.json")
		outside := filepath.Join(t.TempDir(), "secret.json")
		if err := errors.Join(os.WriteFile(outside, []byte("{}"), 0o600), os.Remove(path), os.Symlink(outside, path)); err != nil {
			t.Fatal(err)
		}
		if s := w.open().Status(false); s.State != embedding.Offline || !strings.Contains(s.Error, "can't be read") || strings.Contains(s.Error, outside) {
			t.Errorf("its status is %+v", s)
		}
	})
}

// TestGoldenOfOtherModels has a golden file show that two servers that name a model differently have the same one.
func TestGoldenOfOtherModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		raw, err := w.open().Golden(t.Context(), []string{"one", "two"}, []string{"three"})
		if err != nil {
			t.Fatal(err)
		}
		w = newWorld(t, "a", "b")
		w.config.Providers[1].Model = "org/m"
		w.golden(string(raw))
		g := w.open()
		wantStates(t, g, "a live closed; b live closed; ")
		if g.Reference() != `model "m", dimensions 64` || g.Status(false).Golden != 3 {
			t.Errorf("its status is %+v", g.Status(false))
		}
		if _, err := g.Golden(t.Context(), []string{" "}, nil); errs.KindOf(err) != errs.Invalid {
			t.Errorf("white space as a golden text gave %v", err)
		}
	})
}

func FuzzGolden(f *testing.F) {
	f.Add([]byte(`{"texts":[{"text":"a","vector":[1,0,0,0]},{"text":"b","kind":"query","vector":[0.5,1e-3,0,2]}]}`), false)
	f.Add([]byte(`{"texts":[{"text":"a","vector":{"b":0.5}}]}`), true)
	f.Fuzz(func(_ *testing.T, raw []byte, sparse bool) {
		_ = embedding.DecodeGolden(raw, sparse, 4) // it does not panic
	})
}
