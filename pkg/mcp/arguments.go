package mcp

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// kind is what a parameter takes. What stands for a value of JSON may come as a text that holds it, too, as agents often send it.
type kind uint8

const (
	kindText    kind = iota
	kindName         // a text that is part of a path: not empty
	kindInteger      // a whole number, or its digits as a text
	kindDigits       // the same, with the text as what is asked for
	kindBoolean      // true or false
	kindObject       // an object
	kindObjects      // a list of objects
	kindWords        // a text such as "title,-views", a list of such words, or JSON
)

// param is one parameter of a tool.
type param struct {
	name     string
	kind     kind
	required bool
	enum     []string
	doc      string
}

// schema is the JSON Schema of a parameter, in the one form that it is best sent in: models that are held to a schema take no unions.
func (p param) schema() map[string]any {
	out := map[string]any{"description": p.doc}
	switch p.kind {
	case kindInteger:
		out["type"], out["minimum"] = "integer", 0
	case kindBoolean:
		out["type"] = "boolean"
	case kindObject:
		out["type"] = "object"
	case kindObjects:
		out["type"], out["items"] = "array", map[string]any{"type": "object"}
	case kindText, kindName, kindDigits, kindWords:
		out["type"] = "string"
	}
	if p.enum != nil {
		out["enum"] = p.enum
	}
	return out
}

// takes says what is wrong with a value, if anything is.
func (p param) takes(raw json.RawMessage) string {
	given := text(raw)
	wrong := func(want string) string { return p.name + " must be " + want }
	switch p.kind {
	case kindText, kindName:
		if raw[0] != '"' {
			return wrong("a string")
		}
		if p.kind == kindName && given == "" {
			return wrong("a string that is not empty")
		}
	case kindInteger, kindDigits:
		if n, err := whole(raw); err != nil || n < 0 {
			return wrong("a whole number, 0 or more")
		}
	case kindBoolean:
		if s := string(raw); s != "true" && s != "false" && given != "true" && given != "false" {
			return wrong("true or false")
		}
	case kindObject, kindObjects:
		open, want := byte('{'), "a JSON object"
		if p.kind == kindObjects {
			open, want = '[', "a list of JSON objects"
		}
		value := []byte(raw)
		if raw[0] == '"' {
			value = bytes.TrimSpace([]byte(given))
		}
		if len(value) == 0 || value[0] != open || !json.Valid(value) {
			return wrong(want)
		}
	case kindWords:
		if raw[0] != '"' && raw[0] != '[' && raw[0] != '{' {
			return wrong("a string, or JSON")
		}
	}
	if p.enum != nil && !slices.Contains(p.enum, given) {
		return wrong("one of " + strings.Join(p.enum, ", "))
	}
	return ""
}

// arguments are those of one call, each of the kind that its parameter takes. null is as if it were not there.
type arguments object

// readArguments holds what came against the parameters of a tool. Whether those are there that it needs, needed says. With an error, it gives
// those that are good, or nil where the arguments are no object at all.
func readArguments(t *tool, raw json.RawMessage) (out arguments, first *rpcError) {
	if s := bytes.TrimSpace(raw); len(s) == 0 || string(s) == "null" {
		return arguments{}, nil
	}
	given, err := members(raw)
	if err != nil {
		return nil, badArgument("arguments: " + err.Error())
	}
	out = arguments{}
	note := func(detail string) {
		if first == nil {
			first = badArgument(detail)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		i := slices.IndexFunc(t.params, func(p param) bool { return p.name == name })
		if i < 0 {
			if first == nil { // of very many, a text for each takes seconds
				note("unknown argument: " + short(name) + "; " + t.name + " takes " + t.takes())
			}
			continue
		}
		p, value := t.params[i], json.RawMessage(bytes.TrimSpace(given[name]))
		if len(value) > maxParameters && p.name != "data" && p.name != "items" { // which become bodies; all others parts of an address
			note(p.name + " is longer than " + strconv.Itoa(maxParameters>>10) + " KiB")
			continue
		}
		if string(value) == "null" || p.kind == kindName && p.required && string(value) == `""` {
			continue
		}
		if wrong := p.takes(value); wrong != "" {
			note(wrong)
		} else if p.kind == kindInteger || p.kind == kindDigits {
			n, _ := whole(value)                  // which takes has looked at
			value = strconv.AppendInt(nil, n, 10) // in the one way that REST writes it: -0, +5 and "05" are others' ways
		}
		out[name] = value
	}
	return out, first
}

// whole is a whole number, or one whose digits are a text.
func whole(raw json.RawMessage) (int64, error) {
	digits := string(raw)
	if raw[0] == '"' {
		digits = text(raw)
	}
	return strconv.ParseInt(digits, 10, 64)
}

// short is a name of the caller's as it is repeated to them.
func short(name string) string {
	if len(name) > 60 {
		return strings.ToValidUTF8(name[:60], "") + "…"
	}
	return name
}

func (a arguments) has(name string) bool { return a[name] != nil }

// text is an argument as a query parameter has it: a text as it is, all else as JSON.
func (a arguments) text(name string) string {
	raw := a[name]
	if len(raw) == 0 || raw[0] == '"' {
		return text(raw)
	}
	return compact(raw)
}

// words is the argument of kind kindWords as REST has it: a list of texts becomes one, with commas.
func (a arguments) words(name string) string {
	var list []string
	if raw := a[name]; len(raw) > 0 && raw[0] == '[' && json.Unmarshal(raw, &list) == nil {
		return strings.Join(list, ",")
	}
	return a.text(name)
}

// json is an argument that is a value of JSON, also where it came as a text that holds it.
func (a arguments) json(name string) json.RawMessage {
	if raw := a[name]; len(raw) > 0 && raw[0] == '"' {
		return json.RawMessage(text(raw))
	}
	return a[name]
}

// maxParameters is how many bytes of parameters an address takes. What is longer would be refused, after seconds for millions of names.
const maxParameters = 64 << 10

// parameters are the members of an argument, to become parts of an address.
func (a arguments) parameters(name string) (object, *rpcError) {
	raw := a.json(name)
	if len(raw) > maxParameters {
		return nil, badArgument(name + " is longer than " + strconv.Itoa(maxParameters>>10) + " KiB")
	}
	doc, err := readObject(raw)
	if err != nil {
		return nil, badArgument(name + ": " + err.Error())
	}
	return doc, nil
}

// query takes arguments to the query parameters of the same name.
func (a arguments) query(q url.Values, names ...string) {
	for _, name := range names {
		if a.has(name) {
			q.Set(name, a.text(name))
		}
	}
}

func compact(raw json.RawMessage) string {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return string(raw)
	}
	return out.String()
}
