package local_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/svcctl/svc/pkg/embedding/local"
)

// The smallest network that has all parts.
const (
	tinyHidden    = 16
	tinyInner     = 24
	tinyPositions = 16
)

const tinyVocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nbread\nbake\n##r\n##s\nthe\n.\n!\ncafe\n中\n文\na\n##b\nb\ni\nun\n##want\n##ed\nstraße\n1\n##2\n"

// tinyFolder gives the files of a model with weights that are drawn anew for each seed.
func tinyFolder(dtype string, seed uint64) fstest.MapFS {
	vocab := strings.Count(tinyVocab, "\n")
	return folderOf(map[string]string{
		"config.json": fmt.Sprintf(`{"model_type": "bert", "hidden_size": %d, "num_hidden_layers": 3, "num_attention_heads": 2,
			"intermediate_size": %d, "hidden_act": "gelu", "max_position_embeddings": %d, "type_vocab_size": 2, "vocab_size": %d,
			"layer_norm_eps": 1e-12}`, tinyHidden, tinyInner, tinyPositions, vocab),
		"vocab.txt": tinyVocab,
		"modules.json": `[{"path": "", "type": "sentence_transformers.models.Transformer"},
			{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
			{"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]`,
		"1_Pooling/config.json": `{"word_embedding_dimension": 16, "pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}`,
		"model.safetensors":     string(tensorsOf(dtype, tinyWeights("", vocab, seed))),
	})
}

func folderOf(files map[string]string) fstest.MapFS {
	dir := fstest.MapFS{}
	for name, text := range files {
		dir[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return dir
}

func loadTiny(tb testing.TB, dir fstest.MapFS, o local.Options) *local.Model {
	tb.Helper()
	m, err := local.LoadFS(dir, o)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// values are a tensor before it is written.
type values struct {
	shape []int
	data  []float32
}

func tinyWeights(prefix string, vocab int, seed uint64) map[string]values {
	rnd := rand.New(rand.NewPCG(seed, 1))
	all := map[string]values{}
	add := func(name string, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		v := values{shape, make([]float32, n)}
		for i := range v.data {
			v.data[i] = float32(rnd.NormFloat64()) / 2
			switch { // else tokens lose what makes them differ
			case strings.HasSuffix(name, "LayerNorm.weight"):
				v.data[i] = 1 + v.data[i]/5
			case strings.HasSuffix(name, "bias"):
				v.data[i] /= 5
			}
		}
		all[prefix+name] = v
	}
	h := tinyHidden
	add("embeddings.word_embeddings.weight", vocab, h)
	add("embeddings.position_embeddings.weight", tinyPositions, h)
	add("embeddings.token_type_embeddings.weight", 2, h)
	add("embeddings.LayerNorm.weight", h)
	add("embeddings.LayerNorm.bias", h)
	for i := range 3 {
		layer := fmt.Sprintf("encoder.layer.%d.", i)
		for _, name := range []string{"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"} {
			add(layer+name+".weight", h, h)
			add(layer+name+".bias", h)
		}
		add(layer+"intermediate.dense.weight", tinyInner, h)
		add(layer+"intermediate.dense.bias", tinyInner)
		add(layer+"output.dense.weight", h, tinyInner)
		add(layer+"output.dense.bias", h)
		for _, name := range []string{"attention.output.LayerNorm", "output.LayerNorm"} {
			add(layer+name+".weight", h)
			add(layer+name+".bias", h)
		}
	}
	return all
}

// tensorsOf writes a safetensors file.
func tensorsOf(dtype string, all map[string]values) []byte {
	header := map[string]any{"__metadata__": map[string]string{"format": "pt"}}
	var data []byte
	for _, name := range slices.Sorted(maps.Keys(all)) {
		from := len(data)
		for _, v := range all[name].data {
			switch dtype {
			case "F32":
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
			case "BF16":
				data = binary.LittleEndian.AppendUint16(data, uint16(math.Float32bits(v)>>16))
			case "F16":
				data = binary.LittleEndian.AppendUint16(data, half(v))
			}
		}
		header[name] = map[string]any{"dtype": dtype, "shape": all[name].shape, "data_offsets": []int{from, len(data)}}
	}
	text, err := json.Marshal(header)
	if err != nil {
		panic(err)
	}
	return withHeader(string(text), data)
}

func withHeader(header string, data []byte) []byte {
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(file, header...), data...)
}

// half cuts a number off to half precision. Those below the least normal one become 0.
func half(v float32) uint16 {
	bits := math.Float32bits(v)
	exponent := int(bits>>23&255) - 112
	if exponent <= 0 {
		return uint16(bits >> 16 & 0x8000)
	}
	return uint16(bits>>16&0x8000) | uint16(exponent<<10) | uint16(bits>>13&1023)
}
