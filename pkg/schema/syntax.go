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

// bare finds a value without quotes that begins with a sign which YAML has another use for: @ and ` for none, * for names of anchors, which what
// cron fields have behind it is not.
var bare = regexp.MustCompile("(?::|-|\\[|,)[ \\t]+([@`]|\\*(?:[ \\t/,}\\]]|$))")

// bareMessage says what is wrong with such a value, and in which column, from 1, that is; "": the line has none.
func bareMessage(line string) (message string, column int) {
	at := bare.FindStringSubmatchIndex(line)
	if at == nil {
		return "", 0
	}
	sign := line[at[2] : at[2]+1]
	example := map[string]string{"*": `, as in "*/5 * * * *"`, "@": `, as in "@daily"`}[sign]
	return "a value that begins with " + sign + " needs quotes around it" + example, 1 + utf8.RuneCountInString(line[:at[2]])
}

// lineOf gives a line of a text, by its number from 1; "" where there is none.
func lineOf(data []byte, number int) string {
	for line := range strings.Lines(string(data)) {
		if number--; number == 0 {
			return strings.TrimRight(line, "\r\n")
		}
	}
	return ""
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
