// Package openai is the embedding provider of servers that have OpenAI's API, which most have: POST <baseURL>/embeddings.
//
// Questions name the dimensions and ask for base64, which is a third of the size. A server that refuses these is asked
// without them; what it answers then counts only if its vectors are as long as the settings say.
package openai

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/embedding/remote"
	"github.com/svcctl/svc/pkg/errs"
)

type provider struct {
	*remote.Client

	plain atomic.Bool // the server knows neither dimensions nor base64
}

// New makes a provider of the type openai.
func New(config embedding.ProviderConfig) (embedding.Provider, error) {
	client, err := remote.NewDense(config)
	if err != nil {
		return nil, err
	}
	return &provider{Client: client}, nil
}

type question struct {
	Model          string   `json:"model"`
	Input          []string `json:"input"`
	Dimensions     int      `json:"dimensions,omitempty"`
	EncodingFormat string   `json:"encoding_format"`
}

func (p *provider) Embed(ctx context.Context, texts []string, _ embedding.Kind) ([]embedding.Vector, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	plain := question{Model: p.Config.Model, Input: texts, EncodingFormat: "float"}
	if p.plain.Load() {
		return p.ask(ctx, plain)
	}
	full := plain
	full.Dimensions, full.EncodingFormat = p.Config.Dimensions, "base64"
	vectors, err := p.ask(ctx, full)
	if err == nil || errs.From(err).Code != embedding.CodeRefused {
		return vectors, err
	}
	vectors, plainErr := p.ask(ctx, plain)
	if plainErr != nil || p.Config.Dimensions != 0 && len(vectors[0].Dense) != p.Config.Dimensions {
		return nil, err
	}
	p.plain.Store(true)
	return vectors, nil
}

func (p *provider) ask(ctx context.Context, q question) ([]embedding.Vector, error) {
	return p.Ask(ctx, "embeddings", q, len(q.Input), decode)
}

// decode reads an answer to n texts. Its vectors may be in any order, and of either form.
func decode(answer []byte, n int) ([]embedding.Vector, error) {
	var list struct {
		Data []struct {
			Index     *int            `json:"index"`
			Embedding json.RawMessage `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return nil, err
	}
	if len(list.Data) != n {
		return nil, fmt.Errorf("%d vectors for %d texts", len(list.Data), n)
	}
	out := make([]embedding.Vector, n)
	for i, d := range list.Data {
		at := i
		if d.Index != nil {
			at = *d.Index
		}
		if at < 0 || at >= n || out[at].Dense != nil {
			return nil, fmt.Errorf("index %d is out of range, or there twice", at)
		}
		dense, err := numbers(d.Embedding)
		if err != nil {
			return nil, fmt.Errorf("data[%d].embedding: %w", i, err)
		}
		out[at].Dense = dense
	}
	return out, nil
}

// numbers reads a vector: a list of numbers, or little-endian float32 in base64.
func numbers(raw json.RawMessage) ([]float32, error) {
	if len(raw) == 0 || raw[0] != '"' {
		var list remote.Numbers
		err := json.Unmarshal(raw, &list)
		return list, err
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, err
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	if len(data) == 0 || len(data)%4 != 0 {
		return nil, fmt.Errorf("%d bytes are no list of float32", len(data))
	}
	out := make([]float32, len(data)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		if f := float64(out[i]); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, errors.New("it has what is no number")
		}
	}
	return out, nil
}
