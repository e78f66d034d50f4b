package schema

import (
	"bytes"
	"errors"
	"reflect"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/svcctl/svc/pkg/errs"
)

// errMeaning says that a text can't be formatted without changing what it says.
var errMeaning = errors.New("formatting would change what it says")

// Format gives the text of a config file in one form, comments kept; whether it is JSON, the name says. JSON is indented anew. YAML keeps
// its lines: it loses spaces at their ends, empty lines in a row and at the ends of the file, carriage returns and a byte order
// mark, as far as nothing else is meant then. What it says stays the same, and a text in that form stays as it is. The error for a
// text that can't be parsed is errs.Invalid.
func Format(name string, data []byte) ([]byte, error) {
	const tries = 8 // what one pass leaves may give the next one something to do
	for range tries {
		out, err := formatOnce(name, data)
		if err != nil || bytes.Equal(out, data) {
			return out, err
		}
		data = out
	}
	return nil, errs.New(errs.Invalid, "no_form", "%s: it comes to no form of its own", name)
}

func formatOnce(name string, data []byte) ([]byte, error) {
	before, err := meaning(name, data)
	if err != nil {
		return nil, err
	}
	forms := []func([]byte) ([]byte, error){hujson.Format}
	if !strings.HasSuffix(name, ".json") {
		forms = []func([]byte) ([]byte, error){tidy, plainLines}
	}
	for _, form := range forms {
		out, err := form(bytes.TrimPrefix(bytes.Clone(data), []byte("\xef\xbb\xbf")))
		if err != nil {
			continue
		}
		if after, err := meaning(name, out); err == nil && reflect.DeepEqual(before, after) {
			return out, nil
		}
	}
	if strings.HasSuffix(name, ".json") {
		return nil, errs.Wrap(errMeaning, name)
	}
	return data, nil // such as one whose only text needs its spaces
}

// meaning is what a file says, without where.
func meaning(name string, data []byte) (any, error) {
	l := newLiteralLoader(nil)
	n := (&parser{l: l, file: name}).parse(data)
	if n == nil || l.problems.Err() {
		text := "the file is empty"
		if len(l.problems) > 0 {
			text = l.problems.Sort()[0].String()
		}
		return nil, errs.New(errs.Invalid, "not_parsed", "%s", text)
	}
	return n.value(nil), nil
}

// plainLines ends lines with a newline, the last one, too.
func plainLines(data []byte) ([]byte, error) {
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	return append(bytes.TrimRight(data, "\n"), '\n'), nil
}

// tidy is plainLines without spaces at the ends of lines and without empty lines at the beginning or in a row.
func tidy(data []byte) ([]byte, error) {
	data, err := plainLines(data)
	var out []byte
	empty := true
	for line := range bytes.Lines(data) {
		line = bytes.TrimRight(line, " \t\n")
		if len(line) == 0 && empty {
			continue
		}
		empty = len(line) == 0
		out = append(append(out, line...), '\n')
	}
	return append(bytes.TrimRight(out, "\n"), '\n'), err
}
