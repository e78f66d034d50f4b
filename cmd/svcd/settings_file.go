package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/svcctl/svc/pkg/schema"
)

// readFile reads the settings file: nested keys (api: {port: 8080}) or whole ones (api.port: 8080). It gives the text of
// each setting in it, as the environment would have it, and everything that is wrong.
func readFile(path string) (values map[string]any, problems []error) {
	data, err := os.ReadFile(path) //nolint:gosec // whoever sets the service up names it
	if err != nil {
		return nil, []error{fmt.Errorf("settings file: %w", err)}
	}
	var content map[string]any
	if err := yaml.Unmarshal(data, &content); err != nil {
		// Without the source lines that usually come with it: they may hold secrets.
		return nil, []error{fmt.Errorf("settings file %s: %s", path, strings.TrimSpace(yaml.FormatError(err, false, false)))}
	}
	f := file{path: path, values: map[string]any{}}
	f.read("", content)
	return f.values, f.problems
}

// file is a settings file being read.
type file struct {
	path     string
	values   map[string]any
	problems []error
}

func (f *file) fail(format string, args ...any) {
	f.problems = append(f.problems, fmt.Errorf("settings file %s: %s", f.path, fmt.Sprintf(format, args...)))
}

// read takes in the keys under prefix. Their case does not matter.
func (f *file) read(prefix string, content map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(content)) {
		key, value := prefix+name, content[name]
		sub, isMap := value.(map[string]any)
		i := slices.IndexFunc(settings(), func(s setting) bool { return strings.EqualFold(s.key, key) })
		switch {
		case i >= 0:
			f.set(settings()[i], value)
		case isMap:
			f.read(key+".", sub)
		case value == nil && isSection(key): // everything in it is commented out
		default:
			f.fail("unknown key %s; %s", key, hint(key))
		}
	}
}

func (f *file) set(s setting, value any) {
	if value == nil {
		return
	}
	text, err := fileText(s.typ, value)
	if err != nil {
		f.fail("%s %s", s.key, err)
		return
	}
	if _, twice := f.values[s.key]; twice {
		f.fail("%s is given twice", s.key)
	}
	f.values[s.key] = text
}

// fileText gives a value of the file as the environment would have it.
func fileText(typ string, value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case bool:
		if typ == "boolean" {
			return strconv.FormatBool(v), nil
		}
	case int64, uint64:
		if typ == "integer" || typ == "number" || typ == "size" || typ == "duration" {
			return fmt.Sprint(v), nil
		}
	case float64:
		if typ == "number" {
			return fmt.Sprint(v), nil
		}
	case []any:
		switch typ {
		case "list":
			return joined(v)
		case "json":
			text, err := json.Marshal(v)
			return string(text), err
		}
	case map[string]any:
		if typ == "map" {
			var items []any
			for _, name := range slices.Sorted(maps.Keys(v)) {
				text, ok := v[name].(string)
				if !ok {
					return "", fmt.Errorf("must have a text for %s", name)
				}
				items = append(items, name+"="+text)
			}
			return joined(items)
		}
	}
	if typ == "string" {
		return "", errors.New("must be a text: put it in quotes")
	}
	if typ == "json" {
		return "", errors.New("must be a list of objects")
	}
	return "", errors.New("must be of type " + typ)
}

func joined(items []any) (string, error) {
	parts := make([]string, 0, len(items))
	for _, item := range items {
		text, ok := item.(string)
		if !ok || strings.Contains(text, ",") {
			return "", errors.New("must have texts without commas in it")
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ","), nil
}

func isSection(key string) bool {
	return slices.ContainsFunc(settings(), func(s setting) bool {
		return len(s.key) > len(key) && strings.EqualFold(s.key[:len(key)+1], key+".")
	})
}

// hint names the setting that an unknown key most likely means.
func hint(key string) string {
	var names, lasts []string
	whole := map[string]string{} // by its last part
	for _, s := range settings() {
		names = append(names, s.key)
		_, last, _ := strings.Cut(s.key, ".")
		if strings.EqualFold(last, key) {
			return "did you mean " + s.key + "?"
		}
		lasts, whole[last] = append(lasts, last), s.key
	}
	if nearest := schema.Nearest(key, names); nearest != "" {
		return "did you mean " + nearest + "?"
	}
	if nearest := schema.Nearest(key, lasts); nearest != "" && !strings.Contains(key, ".") {
		return "did you mean " + whole[nearest] + "?"
	}
	return "svcd serve --help lists all"
}
