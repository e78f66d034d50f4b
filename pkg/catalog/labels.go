package catalog

import (
	"slices"

	"github.com/svcctl/svc/pkg/schema"
)

// labelKeys are the members of meta that are texts for people: a string, or one for each language.
func labelKeys() []string {
	return []string{"label", "group", "helperText", "addElementLabel", "description", "summary", "title"}
}

// labels gives what a config says for people in the language of the asker; without one, as it is written.
func (who Asker) labels(meta map[string]any) map[string]any {
	if who.Lang == "" || meta == nil {
		return meta
	}
	out := make(map[string]any, len(meta))
	for key, v := range meta {
		out[key] = who.label(key, v)
	}
	return out
}

func (who Asker) label(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		if texts, ok := byLanguage(v); ok && slices.Contains(labelKeys(), key) {
			return schema.Label{Langs: texts}.In(who.Lang)
		}
		return who.labels(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = who.label("", v[i])
		}
		return out
	}
	return v
}

// byLanguage reads an object as a text in several languages, if it is one.
func byLanguage(v map[string]any) (map[string]string, bool) {
	out := make(map[string]string, len(v))
	for tag, text := range v {
		s, ok := text.(string)
		if !ok || !schema.IsLanguage(tag) {
			return nil, false
		}
		out[tag] = s
	}
	return out, len(out) > 0
}
