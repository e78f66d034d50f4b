package embedding

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// The limits of a golden file.
const (
	maxGoldenFile  = 16 << 20
	maxGoldenTexts = 256
)

// goldenFile is goldenPath/<group>.json: texts, without prefixes, and the vectors that each member has to give for them.
type goldenFile struct {
	Texts []goldenText `json:"texts"`
}

type goldenText struct {
	Text   string          `json:"text"`
	Kind   string          `json:"kind,omitempty"` // "document", which is the default, or "query"
	Vector json.RawMessage `json:"vector"`         // a list of numbers, or weights by token

	vector Vector
}

func (g goldenText) kind() Kind {
	if g.Kind == Query.String() {
		return Query
	}
	return Document
}

// readGolden reads a group's golden file. A group that has none has no golden texts.
func readGolden(directory, group string, sparse bool, dimensions int) ([]goldenText, error) {
	if directory == "" {
		return nil, nil
	}
	root, err := os.OpenRoot(directory)
	if err != nil {
		return nil, withCause("goldenPath can't be read", err)
	}
	defer func() { _ = root.Close() }() // it was only read
	file, err := root.Open(group + ".json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, withCause("its golden file can't be read", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	raw, err := io.ReadAll(io.LimitReader(file, maxGoldenFile+1))
	if err != nil {
		return nil, withCause("its golden file can't be read", err)
	}
	texts, err := decodeGolden(raw, sparse, dimensions)
	if err != nil {
		return nil, withCause("its golden file is not valid", err)
	}
	return texts, nil
}

func withCause(text string, err error) error {
	return Misconfigured("%s: %s", text, reason(err))
}

// reason is what went wrong with a file, without its path.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return err.Error()
}

func decodeGolden(raw []byte, sparse bool, dimensions int) ([]goldenText, error) {
	if len(raw) > maxGoldenFile {
		return nil, fmt.Errorf("it is larger than %d MiB", maxGoldenFile>>20)
	}
	var file goldenFile
	if err := strict(raw, &file); err != nil {
		return nil, err
	}
	if n := len(file.Texts); n == 0 || n > maxGoldenTexts {
		return nil, fmt.Errorf("texts has %d entries: give 1 to %d", n, maxGoldenTexts)
	}
	for i := range file.Texts {
		if err := file.Texts[i].decode(sparse, dimensions); err != nil {
			return nil, fmt.Errorf("texts[%d]: %w", i, err)
		}
	}
	return file.Texts, nil
}

func (g *goldenText) decode(sparse bool, dimensions int) error {
	if g.Kind != "" && g.Kind != Document.String() && g.Kind != Query.String() {
		return fmt.Errorf("kind is document or query, not %q", g.Kind)
	}
	if g.Text == "" {
		return errors.New("text is missing")
	}
	var err error
	if sparse {
		err = json.Unmarshal(g.Vector, &g.vector.Sparse)
	} else {
		err = json.Unmarshal(g.Vector, &g.vector.Dense)
	}
	if err != nil {
		return fmt.Errorf("vector: %w", err)
	}
	g.vector, err = normalized(g.vector, sparse, dimensions)
	if err != nil {
		return fmt.Errorf("vector: %s", publicOrOwn(err))
	}
	return nil
}

// publicOrOwn is the text of an error that was made in this package.
func publicOrOwn(err error) string {
	if codeOf(err) == codeDeviates {
		return publicText(err)
	}
	return err.Error()
}

// encodeGolden is the reverse of decodeGolden, with a line for each text.
func encodeGolden(texts []goldenText) ([]byte, error) {
	lines := make([]string, len(texts))
	for i, g := range texts {
		var form any = g.vector.Dense
		if g.vector.Sparse != nil {
			form = g.vector.Sparse
		}
		var err error
		if g.Vector, err = json.Marshal(form); err != nil {
			return nil, err
		}
		line, err := json.Marshal(g)
		if err != nil {
			return nil, err
		}
		lines[i] = string(line)
	}
	return []byte("{\"texts\": [\n" + strings.Join(lines, ",\n") + "\n]}"), nil
}
