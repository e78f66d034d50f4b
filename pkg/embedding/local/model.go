package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"

	"github.com/svcctl/svc/pkg/errs"
)

const (
	weightsFile = "model.safetensors"

	defaultMaxBytes = 2 << 30
	groupTokens     = 256 // tokens that go through the network together, when texts are shorter than that
)

// Options say how a model is loaded and run. The zero value is what most want.
type Options struct {
	Concurrency int   // texts or groups of short texts that are encoded at a time, each on one core; 0: as many as there are cores
	MaxBytes    int64 // of the file of weights; 0: 2 GiB. As many are held in memory, twice that for weights of 16 bits
}

// Model computes vectors of texts. It is safe for concurrent use, and does not change.
type Model struct {
	*folder
	encoder *encoder
	free    chan *scratch // as many as may run; one that has not been needed yet is nil
	rows    int
}

// Load reads a sentence-transformers folder. A folder that can't be served is refused with code embedding_model_invalid and
// says why; one that can't be read, with embedding_model_unreadable. Links are followed, for a downloaded model is a folder of
// links: dir must come from who runs the service.
func Load(dir string, o Options) (*Model, error) {
	m, err := load(os.DirFS(dir), o)
	if err == nil {
		return m, nil
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, errs.New(errs.Invalid, "embedding_model_unreadable",
			"the embedding model in %s can't be read: %s: %v; modelPath must name a sentence-transformers folder with config.json, "+
				"tokenizer.json or vocab.txt, and %s", dir, path.Path, path.Err, weightsFile).With(err)
	}
	return nil, errs.New(errs.Invalid, "embedding_model_invalid", "the embedding model in %s can't be used: %v", dir, err).With(err)
}

func load(dir fs.FS, o Options) (*Model, error) {
	if o.Concurrency < 0 || o.MaxBytes < 0 {
		return nil, fmt.Errorf("a concurrency of %d and %d bytes: neither may be below 0", o.Concurrency, o.MaxBytes)
	}
	if o.Concurrency == 0 {
		o.Concurrency = runtime.GOMAXPROCS(0)
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultMaxBytes
	}
	f, err := readFolder(dir)
	if err != nil {
		return nil, err
	}
	m := &Model{folder: f, free: make(chan *scratch, o.Concurrency), rows: max(groupTokens, f.tokenizer.limit)}
	for range o.Concurrency {
		m.free <- nil
	}
	m.encoder, err = readWeights(dir, f.config, o.MaxBytes)
	return m, err
}

func readWeights(dir fs.FS, c config, limit int64) (*encoder, error) {
	file, err := dir.Open(weightsFile)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // only read
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	at, ok := file.(io.ReaderAt)
	if !ok || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", weightsFile)
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s has %d bytes: the most is %d", weightsFile, info.Size(), limit)
	}
	t, err := openTensors(at, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", weightsFile, err)
	}
	e, err := newEncoder(c, t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", weightsFile, err)
	}
	return e, nil
}

// Dimensions is how many values a vector has.
func (m *Model) Dimensions() int { return m.config.Hidden }

// MaxTokens is how many tokens of a text count, with the two around it. What a text has beyond is left out.
func (m *Model) MaxTokens() int { return m.tokenizer.limit }

// Tokens gives the ids of the tokens of a text, as the network gets them.
func (m *Model) Tokens(text string) []int32 { return m.tokenizer.tokens(text) }

// Encode gives a vector for each text, in their order. It runs on one core, and waits while Options.Concurrency others run;
// it ends with the error of ctx soon after ctx does. An empty text has a vector, too.
func (m *Model) Encode(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, 0, len(texts))
	var group [][]int32
	rows := 0
	for _, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		ids := m.Tokens(text)
		if rows+len(ids) > m.rows {
			var err error
			if vectors, err = m.encode(ctx, vectors, group); err != nil {
				return nil, err
			}
			group, rows = group[:0], 0
		}
		group = append(group, ids)
		rows += len(ids)
	}
	return m.encode(ctx, vectors, group)
}

// encode appends the vectors of sequences that fit into a scratch together.
func (m *Model) encode(ctx context.Context, vectors [][]float32, sequences [][]int32) ([][]float32, error) {
	if len(sequences) == 0 {
		return vectors, nil
	}
	var s *scratch
	select {
	case s = <-m.free:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s == nil {
		s = newScratch(m.config, m.rows, m.tokenizer.limit)
	}
	defer func() { m.free <- s }()
	tokens, err := m.encoder.run(ctx, s, sequences)
	if err != nil {
		return nil, err
	}
	from := 0
	for _, ids := range sequences {
		vector := m.pooling.pool(tokens.part(from, len(ids), 0, tokens.cols))
		if m.normalize {
			normalize(vector)
		}
		for _, v := range vector {
			if v-v != 0 {
				return nil, errs.Wrap(errors.New("a value is not finite: the weights are those of no working model"), "embed a text")
			}
		}
		vectors = append(vectors, vector)
		from += len(ids)
	}
	return vectors, nil
}
