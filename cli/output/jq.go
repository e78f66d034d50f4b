package output

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/itchyny/gojq"

	"github.com/svcctl/svc/pkg/jsonyaml"
)

// jq is the shape of --jq.
type jq struct {
	code   *gojq.Code
	indent bool
}

// NewJQ makes the shape of a jq expression: texts as they are, everything else as JSON, a result a line. On a terminal objects
// and lists are indented. An expression sees the value and nothing else: no environment, no files.
func NewJQ(expr string, indent bool) (Shape, error) {
	query, err := gojq.Parse(expr)
	if err != nil {
		return nil, err
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return nil, err
	}
	return jq{code, indent}, nil
}

func (j jq) Write(ctx context.Context, w io.Writer, value any) error {
	results := j.code.RunWithContext(ctx, value)
	for {
		v, ok := results.Next()
		if !ok {
			return nil
		}
		if err, ok := v.(error); ok {
			if halt, ok := errors.AsType[*gojq.HaltError](err); ok && halt.Value() == nil {
				return nil
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return &ShapeError{"--jq", err}
		}
		if err := j.line(w, v); err != nil {
			return err
		}
	}
}

func (j jq) line(w io.Writer, v any) error {
	if text, ok := v.(string); ok {
		_, err := io.WriteString(w, text+"\n")
		return err
	}
	raw, err := gojq.Marshal(v)
	if err != nil {
		return &ShapeError{"--jq", err}
	}
	var b bytes.Buffer
	if b.Write(raw); j.indent {
		b.Reset()
		if err := json.Indent(&b, raw, "", "  "); err != nil {
			return fmt.Errorf("encode the output: %w", err)
		}
	}
	b.WriteByte('\n')
	_, err = w.Write(jsonyaml.Escape(b.Bytes()))
	return err
}
