package recordtypes

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// typescript writes the types of a document.
func typescript(namespace string, d *document) string {
	var b strings.Builder
	fmt.Fprintf(&b, "// Types of the project %s, written by svcctl types. Don't edit: write them anew.\n", namespace)
	for _, t := range d.types {
		b.WriteByte('\n')
		tsComment(&b, "", t.schema)
		fmt.Fprintf(&b, "export type %s = %s;\n", t.name, d.ts(t.schema, ""))
	}
	return b.String()
}

func tsComment(b *strings.Builder, indent string, s *schema) {
	lines := s.comment()
	if s.Deprecated {
		lines = append(lines, "@deprecated")
	}
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(line, "*/", "*\u200b/")
	}
	if len(lines) > 0 {
		b.WriteString(indent + "/** " + strings.Join(lines, "\n"+indent+" * ") + " */\n")
	}
}

// tsName is a name that need not be quoted.
var tsName = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]*$`)

// ts is the type of a schema.
func (d *document) ts(s *schema, indent string) string {
	if s.Ref != "" {
		if name := d.nameOf(s.Ref); name != "" {
			return name
		}
		return "unknown"
	}
	if len(s.Enum) > 0 {
		return union(s.Enum, literal)
	}
	if of, null := s.either(); len(of) > 0 {
		text := union(of, func(one *schema) string { return d.ts(one, indent) })
		if null {
			text += " | null"
		}
		return text
	}
	kinds, null := s.kinds()
	if len(kinds) == 0 && !null {
		return "unknown"
	}
	text := union(kinds, func(kind string) string {
		switch kind {
		case "string", "boolean":
			return kind
		case "number", "integer":
			return "number"
		case "array":
			if s.Items == nil {
				return "unknown[]"
			}
			return "Array<" + d.ts(s.Items, indent) + ">"
		case "object":
			return d.tsObject(s, indent)
		}
		return "unknown"
	})
	switch {
	case text == "":
		return "null"
	case null:
		return text + " | null"
	}
	return text
}

func (d *document) tsObject(s *schema, indent string) string {
	if len(s.Properties) == 0 {
		other := "unknown"
		if o := s.AdditionalProperties; o != nil && o.schema != nil {
			other = d.ts(o.schema, indent)
		} else if o != nil && !o.open {
			other = "never"
		}
		return "{ [key: string]: " + other + " }"
	}
	var b strings.Builder
	b.WriteString("{\n")
	inner := indent + "  "
	for _, p := range s.Properties {
		tsComment(&b, inner, p.schema)
		name := p.name
		if !tsName.MatchString(name) {
			name = literal(name)
		}
		if !slices.Contains(s.Required, p.name) {
			name += "?"
		}
		b.WriteString(inner + name + ": " + d.ts(p.schema, inner) + ";\n")
	}
	return b.String() + indent + "}"
}

// union joins types of which a value has one.
func union[T any](of []T, text func(T) string) string {
	var all []string
	for _, one := range of {
		if t := text(one); !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	return strings.Join(all, " | ")
}
