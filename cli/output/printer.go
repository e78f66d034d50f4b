package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/jsonyaml"
)

// Formats of -o.
const (
	FormatTable = "table"
	FormatWide  = "wide"
	FormatJSON  = "json"
	FormatYAML  = "yaml"
	FormatName  = "name"
)

// Formats gives those that every command has, beside those that take an expression (ShapeFormats).
func Formats() []string {
	return []string{FormatTable, FormatWide, FormatJSON, FormatYAML, FormatName}
}

// CheckFormat refuses a format that is not one of Formats or extra.
func CheckFormat(format string, extra ...string) error {
	all := append(Formats(), extra...)
	if slices.Contains(all, format) {
		return nil
	}
	for _, name := range ShapeFormats() {
		all = append(all, name+"=…")
	}
	hint := ""
	switch low := strings.ToLower(format); {
	case low == "jq":
		hint = "--jq EXPRESSION prints what a jq expression makes of the JSON; "
	case low == "yml":
		hint = "did you mean yaml? "
	case slices.Contains(all, low):
		hint = "did you mean " + low + "? "
	}
	return fmt.Errorf("unknown output format %q: %swant one of %s", format, hint, strings.Join(all, ", "))
}

// Printer writes results in the format that the user chose.
type Printer struct {
	W         io.Writer
	Format    string
	NoHeaders bool
	Style     Style
	Order     Order // of lists

	Collect func(Result) error // takes what would be printed; nil: it is printed
}

// Result is what a command shows. Each member serves some formats.
type Result struct {
	Value any      // for json and yaml; a json.RawMessage goes out as it is
	Table *Table   // for table and wide
	Names []string // for name, such as "project/blog"
}

// Print writes r.
func (p Printer) Print(r Result) error {
	r, err := p.Order.sorted(r)
	if err != nil {
		return err
	}
	if p.Collect != nil {
		return p.Collect(r)
	}
	switch p.Format {
	case FormatJSON:
		return p.JSON(r.Value)
	case FormatYAML:
		return p.YAML(r.Value)
	case FormatName:
		for _, n := range r.Names {
			if _, err := fmt.Fprintln(p.W, Escape(n)); err != nil {
				return err
			}
		}
		return nil
	default:
		return r.Table.write(p.W, p.Format == FormatWide, p.NoHeaders)
	}
}

// Section writes a title and a table below what stands there already; an empty table leaves out both.
func (p Printer) Section(title string, t *Table) error {
	if t.Len() == 0 {
		return nil
	}
	if err := p.Heading(title); err != nil {
		return err
	}
	p.Format = FormatTable
	return p.Print(Result{Table: t})
}

// Heading writes the title of a section, and an empty line before it.
func (p Printer) Heading(title string) error {
	_, err := io.WriteString(p.W, "\n"+p.Style.Bold(title)+"\n")
	return err
}

// Structured says that the output is for programs: json or yaml.
func (p Printer) Structured() bool { return p.Format == FormatJSON || p.Format == FormatYAML }

// ForPeople says that the output is for people, who may be shown more than one table: table, which is the format where none is chosen, or wide.
func (p Printer) ForPeople() bool {
	return p.Format == "" || p.Format == FormatTable || p.Format == FormatWide
}

// JSON writes v with two spaces of indentation.
func (p Printer) JSON(v any) error {
	raw, err := encode(v)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return fmt.Errorf("encode the output: %w", err)
	}
	b.WriteByte('\n')
	_, err = p.W.Write(jsonyaml.Escape(b.Bytes()))
	return err
}

// YAML writes v with the members and their order that its JSON has.
func (p Printer) YAML(v any) error {
	raw, err := encode(v)
	if err != nil {
		return err
	}
	out, err := jsonyaml.Convert(raw)
	if err != nil {
		return err
	}
	_, err = p.W.Write(out)
	return err
}

// JSONLine writes v as one line, the form of NDJSON.
func JSONLine(w io.Writer, v any) error {
	raw, err := encode(v)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return fmt.Errorf("encode the output: %w", err)
	}
	b.WriteByte('\n')
	_, err = w.Write(jsonyaml.Escape(b.Bytes()))
	return err
}

// encode is json.Marshal without HTML escaping.
func encode(v any) ([]byte, error) {
	if raw, ok := v.(json.RawMessage); ok {
		return bytes.TrimSpace(raw), nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode the output: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
