package schema

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

var quoted = regexp.MustCompile(`'.'|"."|"[^"]{2,}"|'[^']{2,}'`)

// The messages of the YAML library for the usual slips, by a part of them, and what helps whoever made one.
var syntaxMessages = []struct{ part, message string }{
	{`that cannot start any token`, "there is a tab where only spaces may be: YAML is indented by spaces"},
	{`',' or ']' must be`, "a [ is open here: a , or a ] is missing, or a bracket is one too many"},
	{`',' or '}' must be`, "a { is open here: a , or a } is missing, or a brace is one too many"},
	{`end token ']'`, "this [ has no ]"},
	{`end token '}'`, "this { has no }"},
	{`corresponding to ']'`, "this ] has no ["},
	{`corresponding to '}'`, "this } has no {"},
	{`non-map value is specified`, "this is no key with a value: is there a colon, and a space behind it?"},
	{`mapping value is not allowed`, "a line has one key with its value: put quotes around a value that has a colon"},
	{`could not find end character of`, "this text has no closing quote"},
}

// indentation are parts of the messages that a line indented otherwise than its neighbors gets.
var indentation = []string{
	"value is not allowed in this context", "unexpected key name", "found an invalid key",
	"sequence entries are not allowed", "map key-value is pre-defined",
}

// syntaxMessage words what the YAML library says.
func syntaxMessage(message string) string {
	for _, known := range syntaxMessages {
		if strings.Contains(message, known.part) {
			return known.message
		}
	}
	for _, part := range indentation {
		if strings.Contains(message, part) {
			return maskQuoted(message) + "; is the line indented as its neighbors are?"
		}
	}
	return maskQuoted(message)
}

// maskQuoted keeps a parser's message from showing what is in the file.
func maskQuoted(message string) string {
	message, _, _ = strings.Cut(message, "\n")
	return quoted.ReplaceAllStringFunc(message, func(s string) string {
		if utf8.RuneCountInString(s) <= len(`'x'`) { // a character, which says what the parser has stumbled over
			return s
		}
		return "…"
	})
}
