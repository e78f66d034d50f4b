package local_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/svcctl/svc/pkg/embedding/local"
	"github.com/svcctl/svc/pkg/errs"
)

// edit replaces text in one file of a folder.
func edit(tb testing.TB, dir fstest.MapFS, name, old, replaced string) fstest.MapFS {
	tb.Helper()
	text := string(dir[name].Data)
	if !strings.Contains(text, old) {
		tb.Fatalf("%s has no %q", name, old)
	}
	dir[name] = &fstest.MapFile{Data: []byte(strings.Replace(text, old, replaced, 1))}
	return dir
}

// TestFolderRefused has what a folder may ask for and would not get, so that none gives vectors of no meaning.
func TestFolderRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, old, replaced, want string }{
		{"another architecture", "config.json", `"bert"`, `"mpnet"`, `model_type "mpnet"`},
		{"another activation", "config.json", `"gelu"`, `"relu"`, `hidden_act "relu"`},
		{"relative positions", "config.json", `{`, `{"position_embedding_type": "relative_key",`, "position_embedding_type"},
		{"a decoder", "config.json", `{`, `{"is_decoder": true,`, "decoder"},
		{"no layers", "config.json", `"num_hidden_layers": 3`, `"num_hidden_layers": 0`, "num_hidden_layers 0"},
		{"too wide", "config.json", `"hidden_size": 16`, `"hidden_size": 1000000`, "hidden_size 1000000"},
		{"heads that do not fit", "config.json", `"num_attention_heads": 2`, `"num_attention_heads": 4`, "num_attention_heads 4"},
		{"an inner layer that does not fit", "config.json", `"intermediate_size": 24`, `"intermediate_size": 25`, "intermediate_size 25"},
		{"no room for text", "config.json", `"max_position_embeddings": 16`, `"max_position_embeddings": 2`, "max_position_embeddings 2"},
		{"an epsilon below 0", "config.json", `1e-12`, `-1`, "layer_norm_eps"},
		{"weights of another size", "config.json", `"max_position_embeddings": 16`, `"max_position_embeddings": 17`, "has shape"},
		{"layers that are not there", "config.json", `"num_hidden_layers": 3`, `"num_hidden_layers": 4`, "encoder.layer.3."},
		{"a vocabulary beyond the weights", "vocab.txt", `[PAD]`, "[PAD]\nmore", "vocab_size"},
		{"a dense layer", "modules.json", `models.Normalize`, `models.Dense`, "Dense"},
		{"no pooling", "modules.json", `models.Pooling`, `models.LSTM`, "LSTM"},
		{"a transformer elsewhere", "modules.json", `"path": ""`, `"path": "0_Transformer"`, "0_Transformer"},
		{"a pooling outside", "modules.json", `1_Pooling`, `../1_Pooling`, "no folder inside"},
		{"a pooling nowhere", "modules.json", `"1_Pooling"`, `""`, "no folder inside"},
		{"a pooling that is not there", "modules.json", `1_Pooling`, `3_Pooling`, "3_Pooling"},
		{"max pooling", "1_Pooling/config.json", `pooling_mode_mean_tokens`, `pooling_mode_max_tokens`, "max_tokens"},
		{"two poolings", "1_Pooling/config.json", `"pooling_mode_cls_token": false`, `"pooling_mode_cls_token": true`, "cls_token"},
		{"no pooling mode", "1_Pooling/config.json", `true`, `false`, "mean_tokens and cls_token"},
		{"settings that are no JSON", "1_Pooling/config.json", `{`, ``, "1_Pooling/config.json"},
		{"weights that are damaged", "model.safetensors", `"dtype"`, `"ctype"`, "model.safetensors"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := local.LoadFS(edit(t, tinyFolder("F32", 1), c.file, c.old, c.replaced), local.Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
	t.Run("limits", func(t *testing.T) {
		t.Parallel()
		dir := tinyFolder("F32", 1)
		size := int64(len(dir["model.safetensors"].Data))
		for _, o := range []local.Options{{MaxBytes: size - 1}, {MaxBytes: -1}, {Concurrency: -1}} {
			if _, err := local.LoadFS(dir, o); err == nil {
				t.Errorf("%+v: no error", o)
			}
		}
		if _, err := local.LoadFS(dir, local.Options{MaxBytes: size}); err != nil {
			t.Error(err)
		}
		dir["config.json"] = &fstest.MapFile{Data: make([]byte, 2<<20)}
		if _, err := local.LoadFS(dir, local.Options{}); err == nil || !strings.Contains(err.Error(), "larger than") {
			t.Errorf("config.json of 2 MiB: %v", err)
		}
	})
}

// TestFolderMissing takes away each file: those that may be absent, and those that a model needs.
func TestFolderMissing(t *testing.T) {
	t.Parallel()
	for name, optional := range map[string]bool{
		"config.json": false, "vocab.txt": false, "model.safetensors": false, "1_Pooling/config.json": false, "modules.json": true,
	} {
		dir := tinyFolder("F32", 1)
		delete(dir, name)
		if _, err := local.LoadFS(dir, local.Options{}); (err == nil) != optional {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// TestLoadErrors has what the person is told who has named the folder.
func TestLoadErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := local.Load(filepath.Join(dir, "nowhere"), local.Options{})
	if e := errs.From(err); e.Code != "embedding_model_unreadable" || e.Kind != errs.Invalid || !strings.Contains(e.Message, "config.json") {
		t.Errorf("no folder: %v", err)
	}
	for name, file := range edit(t, tinyFolder("F32", 1), "config.json", `"bert"`, `"t5"`) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), file.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err = local.Load(dir, local.Options{})
	if e := errs.From(err); e.Code != "embedding_model_invalid" || e.Kind != errs.Invalid || !strings.Contains(e.Message, `"t5"`) {
		t.Errorf("another architecture: %v", err)
	}
}

func TestMaxTokens(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]int{``: 16, `{}`: 16, `{"max_seq_length": null}`: 16, `{"max_seq_length": 7}`: 7, `{"max_seq_length": 512}`: 16, `{"max_seq_length": 2}`: 0} {
		dir := tinyFolder("F32", 1)
		if settings != "" {
			dir["sentence_bert_config.json"] = &fstest.MapFile{Data: []byte(settings)}
		}
		m, err := local.LoadFS(dir, local.Options{})
		if want == 0 {
			if err == nil {
				t.Errorf("%s is accepted", settings)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := len(m.Tokens(strings.Repeat("bread ", 40))); got != want || m.MaxTokens() != want {
			t.Errorf("%s: %d tokens, of %d at most: want %d", settings, got, m.MaxTokens(), want)
		}
	}
}

// TestWeightTypes loads the same weights in all their types, and as a file with a head for a task has them.
func TestWeightTypes(t *testing.T) {
	t.Parallel()
	const text = "the bakers bread"
	encode := func(dir fstest.MapFS) []float32 {
		out, err := loadTiny(t, dir, local.Options{}).Encode(t.Context(), []string{text})
		if err != nil {
			t.Fatal(err)
		}
		return out[0]
	}
	want := encode(tinyFolder("F32", 5))
	for dtype, least := range map[string]float64{"F16": 0.9999, "BF16": 0.99} {
		if c := cosine(want, encode(tinyFolder(dtype, 5))); c < least || c > 1-1e-12 {
			t.Errorf("%s: cosine %v", dtype, c)
		}
	}
	dir := tinyFolder("F32", 5)
	dir["model.safetensors"] = &fstest.MapFile{Data: tensorsOf("F32", tinyWeights("bert.", strings.Count(tinyVocab, "\n"), 5))}
	if c := cosine(want, encode(dir)); math.Abs(c-1) > 1e-12 {
		t.Errorf("with a prefix: cosine %v", c)
	}
}
