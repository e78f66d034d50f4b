// Package jsonyaml writes JSON as YAML. It reads no YAML: the configs of projects are pkg/schema's, what people type is cli/command's.
package jsonyaml

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// plainScalar is what YAML can show without quotes under every version of the language: no number, date, indicator or
// space at an end.
var plainScalar = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./@+-]*( [A-Za-z0-9_./@+-]+)*$`)

// Convert writes JSON as YAML, keeping the order of members and every digit of a number. JSON strings are YAML
// strings too, so all that is not surely plain stays in JSON's quotes.
func Convert(data []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	y := yamlWriter{dec: dec}
	if err := y.value(0, ""); err != nil {
		return nil, fmt.Errorf("write JSON as YAML: %w", err)
	}
	return y.b.Bytes(), nil
}

type yamlWriter struct {
	dec *json.Decoder
	b   bytes.Buffer
}

// value writes the next value. lead says where: after "key:" it is a space, and a collection begins on the next line;
// at the start of the text and after "- " it is "", and a collection begins right there. depth indents the lines of a
// collection.
func (y *yamlWriter) value(depth int, lead string) error {
	tok, err := y.dec.Token()
	if err != nil {
		if err == io.EOF {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	switch v := tok.(type) {
	case json.Delim:
		if v == '{' {
			return y.object(depth, lead)
		}
		return y.list(depth, lead)
	case string:
		if depth > 0 && blockScalar(v) {
			y.block(depth, lead, v)
			return nil
		}
		y.scalar(lead, quoteYAML(v))
	case json.Number:
		y.scalar(lead, v.String())
	case bool:
		y.scalar(lead, strconv.FormatBool(v))
	default:
		y.scalar(lead, "null")
	}
	return nil
}

func (y *yamlWriter) scalar(lead, text string) {
	y.b.WriteString(lead + text + "\n")
}

// blockScalar says whether text is shown as it is, line by line: where it has several, and all of them come through so.
func blockScalar(s string) bool {
	if !strings.Contains(strings.TrimRight(s, "\n"), "\n") || s[0] == ' ' || s[0] == '\n' {
		return false
	}
	for line := range strings.SplitSeq(s, "\n") {
		if !Clean(line) || line != strings.TrimRight(line, " ") {
			return false
		}
	}
	return true
}

// block writes text line by line.
func (y *yamlWriter) block(depth int, lead, s string) {
	body := strings.TrimRight(s, "\n")
	style := "|-"
	switch len(s) - len(body) {
	case 0:
	case 1:
		style = "|"
	default:
		style = "|+"
	}
	y.b.WriteString(lead + style + "\n")
	for line := range strings.SplitSeq(body, "\n") {
		if line != "" {
			y.indent(depth)
		}
		y.b.WriteString(line + "\n")
	}
	for range max(len(s)-len(body)-1, 0) {
		y.b.WriteByte('\n')
	}
}

// object writes members, one a line.
func (y *yamlWriter) object(depth int, lead string) error {
	if !y.dec.More() {
		y.scalar(lead, "{}")
		_, err := y.dec.Token()
		return err
	}
	if lead != "" {
		y.b.WriteByte('\n')
	}
	for first := true; y.dec.More(); first = false {
		key, err := y.dec.Token()
		if err != nil {
			return err
		}
		name, ok := key.(string)
		if !ok {
			return fmt.Errorf("key %v is not a string", key)
		}
		if !first || lead != "" {
			y.indent(depth)
		}
		y.b.WriteString(quoteYAML(name) + ":")
		if err := y.value(depth+1, " "); err != nil {
			return err
		}
	}
	_, err := y.dec.Token()
	return err
}

// list writes items, one a line.
func (y *yamlWriter) list(depth int, lead string) error {
	if !y.dec.More() {
		y.scalar(lead, "[]")
		_, err := y.dec.Token()
		return err
	}
	if lead != "" {
		y.b.WriteByte('\n')
	}
	for first := true; y.dec.More(); first = false {
		if !first || lead != "" {
			y.indent(depth)
		}
		y.b.WriteString("- ")
		if err := y.value(depth+1, ""); err != nil {
			return err
		}
	}
	_, err := y.dec.Token()
	return err
}

func (y *yamlWriter) indent(depth int) { y.b.WriteString(strings.Repeat("  ", depth)) }

func quoteYAML(s string) string {
	if plainScalar.MatchString(s) && !reservedYAML(s) {
		return s
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil { // a string always encodes
		return fmt.Sprintf("%q", s)
	}
	return string(Escape(bytes.TrimSpace(b.Bytes())))
}

// reservedYAML is true for words that some YAML reader takes for something else than a string.
func reservedYAML(s string) bool {
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf", "infinity":
		return true
	}
	return false
}
