package recordtypes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// document is what of an OpenAPI document types are made of.
type document struct {
	types []named // in the order of the document: those of the collections, and those that they need
}

// named is a schema with the name of its type.
type named struct {
	key, name string
	schema    *schema
}

// schema is a JSON Schema, as far as the service's documents have it.
type schema struct {
	Ref                  string       `json:"$ref"`
	Type                 words        `json:"type"`
	Format               string       `json:"format"`
	Title                string       `json:"title"`
	Description          string       `json:"description"`
	Deprecated           bool         `json:"deprecated"`
	Enum                 []any        `json:"enum"`
	AnyOf                []*schema    `json:"anyOf"`
	OneOf                []*schema    `json:"oneOf"`
	Items                *schema      `json:"items"`
	Properties           properties   `json:"properties"`
	Required             []string     `json:"required"`
	AdditionalProperties *openOrNever `json:"additionalProperties"`
}

// words are one text or several.
type words []string

// UnmarshalJSON implements json.Unmarshaler.
func (w *words) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*w = words{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(w))
}

// openOrNever is what other members may be: nil schema and open is anything.
type openOrNever struct {
	open   bool
	schema *schema
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *openOrNever) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &o.open) == nil {
		return nil
	}
	o.open, o.schema = true, &schema{}
	return json.Unmarshal(raw, o.schema)
}

// properties keep the order that they have in the document.
type properties []property

type property struct {
	name   string
	schema *schema
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *properties) UnmarshalJSON(raw []byte) error {
	return inOrder(raw, func(name string, d *json.Decoder) error {
		s := &schema{}
		*p = append(*p, property{name, s})
		return d.Decode(s)
	})
}

// inOrder calls fn for each member of an object.
func inOrder(raw []byte, fn func(name string, d *json.Decoder) error) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("want an object, got %v: %w", t, err)
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		if err := fn(fmt.Sprint(t), d); err != nil {
			return err
		}
	}
	return nil
}

// refPrefix is what references begin with.
const refPrefix = "#/components/schemas/"

// read reads the schemas of records, of what is sent to create and change them, and of what these need.
func read(raw []byte) (*document, error) {
	var doc struct {
		Components struct {
			Schemas json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	out := &document{}
	if len(doc.Components.Schemas) == 0 {
		return out, nil
	}
	all, order := map[string]*schema{}, []string{}
	err := inOrder(doc.Components.Schemas, func(name string, d *json.Decoder) error {
		s := &schema{}
		all[name], order = s, append(order, name)
		return d.Decode(s)
	})
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	for _, key := range order {
		if _, what, behind := strings.Cut(key, "."); !behind || what == "create" || what == "update" {
			want(all, wanted, key)
		}
	}
	taken := map[string]bool{}
	for _, key := range order {
		if wanted[key] {
			out.types = append(out.types, named{key: key, name: unique(taken, pascal(key)), schema: all[key]})
		}
	}
	return out, nil
}

// want notes a schema, and those that it refers to.
func want(all map[string]*schema, wanted map[string]bool, key string) {
	s := all[key]
	if s == nil || wanted[key] {
		return
	}
	wanted[key] = true
	s.each(func(of *schema) {
		if to, ok := strings.CutPrefix(of.Ref, refPrefix); ok {
			want(all, wanted, to)
		}
	})
}

// each calls fn for the schema and all within it.
func (s *schema) each(fn func(s *schema)) {
	fn(s)
	within := slices.Concat(s.AnyOf, s.OneOf)
	for _, p := range s.Properties {
		within = append(within, p.schema)
	}
	if s.Items != nil {
		within = append(within, s.Items)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.schema != nil {
		within = append(within, s.AdditionalProperties.schema)
	}
	for _, of := range within {
		if of != nil { // null in a list
			of.each(fn)
		}
	}
}

// nameOf is the name of the type that a reference is to; "": there is none.
func (d *document) nameOf(ref string) string {
	for _, t := range d.types {
		if refPrefix+t.key == ref {
			return t.name
		}
	}
	return ""
}

// kinds are the types that a schema has, without null, and whether it may be null.
func (s *schema) kinds() (kinds []string, null bool) {
	for _, k := range s.Type {
		if k == "null" {
			null = true
		} else {
			kinds = append(kinds, k)
		}
	}
	return kinds, null
}

// either are the schemas of which one has to fit, without that of null, and whether there was one.
func (s *schema) either() (of []*schema, null bool) {
	for _, one := range slices.Concat(s.AnyOf, s.OneOf) {
		if one == nil { // null in a list
			continue
		}
		if kinds, n := one.kinds(); n && len(kinds) == 0 {
			null = true
		} else {
			of = append(of, one)
		}
	}
	return of, null
}

// pascal makes the name of a type or a field of a name: articles.create is ArticlesCreate.
func pascal(name string) string {
	var b strings.Builder
	up := true
	for _, r := range name {
		switch {
		case r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r):
			up = true
			continue
		case b.Len() == 0 && unicode.IsDigit(r):
			b.WriteByte('X')
		case up:
			r = unicode.ToUpper(r)
		}
		up = false
		b.WriteRune(r)
	}
	if b.Len() == 0 {
		return "X"
	}
	return b.String()
}

// unique gives a name that was not given before.
func unique(taken map[string]bool, name string) string {
	for n, free := 2, name; ; n++ {
		if !taken[free] {
			taken[free] = true
			return free
		}
		free = name + "_" + strconv.Itoa(n)
	}
}

// comment is what a schema says for people, in lines.
func (s *schema) comment() (lines []string) {
	for _, text := range []string{s.Title, s.Description} {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(strings.Map(printable, line)); line != "" {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// literal is a value as JSON, which is a literal of TypeScript, too. What nobody sees in a source, or sees elsewhere than it stands, is escaped.
func literal(v any) string {
	raw, err := json.Marshal(v)
	if err != nil { // it was JSON
		return "null"
	}
	var b strings.Builder
	for _, r := range string(raw) {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return ' '
}
