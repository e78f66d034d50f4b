package mcp

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds on what a config tells agents. A model reads all of it, and pays for it.
const (
	maxText  = 4000 // bytes of one text
	maxMeta  = 200  // members or items of one object or list within meta
	maxLevel = 12   // of objects and lists within meta
)

// clean takes from the texts of a description what people don't see and models may: control characters, marks of direction, characters
// without width, tags and private ones. With bounds, what a config says under meta is bounded, too, and members with the name of a credential are left out.
func clean(body []byte, bounds bool) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return encode(cleaner{bounds}.value(v, false, 0)), nil
}

type cleaner struct {
	bounds bool // on what is under meta
}

func (c cleaner) value(v any, meta bool, level int) any {
	switch v := v.(type) {
	case string:
		return cleanText(v)
	case []any:
		switch {
		case meta && level >= maxLevel:
			v = v[:0]
		case meta:
			v = v[:min(len(v), maxMeta)]
		}
		for i := range v {
			v[i] = c.value(v[i], meta, level+1)
		}
		return v
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			shown := cleanText(name) // by which a credential is known: not by what people don't see
			if meta && (isCredential(shown) || level >= maxLevel || len(out) >= maxMeta) {
				continue
			}
			item := v[name]
			inside := meta || c.bounds && (shown == "agent" || shown == "query" || shown == "meta")
			out[shown] = c.value(item, inside, levelOf(meta, level))
		}
		return out
	}
	return v
}

// levelOf counts the levels within meta alone.
func levelOf(meta bool, level int) int {
	if meta {
		return level + 1
	}
	return 0
}

// isCredential says that a member's name is that of something secret, which is nothing for agents.
func isCredential(name string) bool {
	folded := strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "", " ", "").Replace(name))
	switch folded {
	case "token", "xauthtoken", "xadmintoken", "authorization", "password", "secret", "apikey", "accesstoken", "refreshtoken", "clientsecret",
		"privatekey", "credential", "credentials", "cookie":
		return true
	}
	return strings.HasPrefix(folded, "token:")
}

func cleanText(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp), r == utf8.RuneError:
			return -1
		}
		return r
	}, s)
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}
