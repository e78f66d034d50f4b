package output

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"text/template"
)

// goTemplate is the shape of --template.
type goTemplate struct{ t *template.Template }

// NewTemplate makes the shape of a Go template. Beside what those have anyway, join LIST TEXT puts a list into one text, and json
// writes a value as JSON. A line break ends it, unless the template writes one itself.
func NewTemplate(text string) (Shape, error) {
	t, err := template.New("template").Funcs(template.FuncMap{
		"json": func(v any) (string, error) {
			raw, err := encode(v)
			return string(raw), err
		},
		"join": func(list []any, between string) string {
			texts := make([]string, len(list))
			for i, v := range list {
				texts[i] = fmt.Sprint(v)
			}
			return strings.Join(texts, between)
		},
	}).Parse(text)
	if err != nil {
		return nil, err
	}
	return goTemplate{t}, nil
}

func (g goTemplate) Write(_ context.Context, w io.Writer, value any) error {
	var b bytes.Buffer
	if err := g.t.Execute(&b, numbers(value)); err != nil {
		return &ShapeError{"--template", err}
	}
	if b.Len() > 0 && !bytes.HasSuffix(b.Bytes(), []byte("\n")) {
		b.WriteByte('\n')
	}
	_, err := w.Write(b.Bytes())
	return err
}
