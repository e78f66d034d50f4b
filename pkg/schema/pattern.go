package schema

import (
	"regexp"
	"strings"
)

// pattern is the form of a string. Its words end the sentence "must be …".
type pattern struct {
	expr  *regexp.Regexp
	words string
}

// patterns is the table that the struct tag pattern names rows of. The expressions are also valid in JSON Schema.
var patterns = map[string]pattern{
	"namespace":  {regexp.MustCompile(`^[a-z][a-z0-9_-]{0,39}$`), "1 to 40 lowercase letters, digits, _ or -, the first a letter"},
	"collection": {regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$`), "1 to 64 letters, digits, _ or -"},
	"action":     {regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`), "1 to 64 letters, digits, _ or -, the first a letter or digit"},
	"name":       {regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`), "1 to 64 letters, digits, _, . or -, the first a letter or digit"},
	"field":      {regexp.MustCompile(`^[^$.\x00][^.\x00]*$`), "a name without . that does not begin with $"},
	"fieldpath":  {regexp.MustCompile(`^[^$.\x00][^.\x00]*(\.[^$.\x00][^.\x00]*)*$`), "a field path such as author.name"},
	"indexkey":   {regexp.MustCompile(`^(-|\$text:)?[^$.\x00-][^.\x00]*(\.[^$.\x00][^.\x00]*)*$`), "a field path, -path for descending or $text:path for text"},
	"indexname":  {regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,119}$`), "1 to 120 letters, digits, _, . or -, the first a letter or digit"},
	"projection": {regexp.MustCompile(`^[A-Za-z0-9_]+$`), "letters, digits and _"},
	"filter":     {regexp.MustCompile(`^[A-Za-z0-9_-]+$`), "letters, digits, _ and -"},
	"queryparam": {regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`), "1 to 64 letters, digits, _, . or -"},
	"language":   {regexp.MustCompile(`^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$`), "a language tag such as en or de-AT"},
	"textlang":   {regexp.MustCompile(`^[A-Za-z]{2,16}(-[A-Za-z0-9]{1,8})*$`), "a language such as en, de-AT or german, or none"},
	"regexopts":  {regexp.MustCompile(`^[ims]{0,3}$`), "letters of i, m and s"},
	"mime":       {regexp.MustCompile(`^(\*|[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*)/(\*|[A-Za-z0-9*][A-Za-z0-9!#$&^_.+*-]*)$`), "a type such as image/png or image/*"},
	"origin":     {regexp.MustCompile(`^(\*|https?://(\*\.)?[A-Za-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9A-Fa-f:]+\](:[0-9]{1,5})?)$`), "an origin such as https://example.com or https://*.example.com, or *"},
	"sha256":     {regexp.MustCompile(`^[0-9A-Fa-f]{64}$`), "64 hex digits"},
	"envname":    {regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`), "the name of an environment variable"},
	"host":       {regexp.MustCompile(`^((\*\.)?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`), "a host such as api.example.com, *.example.com or 10.0.0.7:8080, without a scheme or a path"},
	"objectId":   {regexp.MustCompile(`^[0-9a-f]{24}$`), "24 lowercase hex digits"},
	"holder":     {regexp.MustCompile(`^\S+$`), "a scope such as project.snapshot, the slug of a team, or the name of a user"},
	"variable":   {regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`), "letters, digits and _, the first a letter"},
	"path":       {regexp.MustCompile(`^[^/\\\x00][^\\\x00]*$`), "a relative path with forward slashes"},
}

// refusedNames are field names that scripts could mistake for parts of their objects.
var refusedNames = []string{"__proto__", "constructor", "prototype"}

// maxLanguage is the longest language tag that is looked at.
const maxLanguage = 35

// IsLanguage says that a text has the form of a language tag.
func IsLanguage(tag string) bool {
	return len(tag) <= maxLanguage && patterns["language"].expr.MatchString(tag)
}

// IsNamespace says that a text has the form of a project's namespace.
func IsNamespace(name string) bool { return patterns["namespace"].expr.MatchString(name) }

// Nearest gives the known word that a mistyped one most likely means, or "".
func Nearest(word string, known []string) string { return nearest(word, known) }

func nearest(word string, known []string) string {
	best, bestDistance := "", min(len(word), max(1, len(word)/3)+1)
	for _, k := range known {
		if strings.EqualFold(k, word) {
			return k
		}
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// maxCompared bounds the words whose distance is taken.
const maxCompared = 64

// distance is the number of letters to insert, delete, replace or swap with a neighbor to turn a into b.
func distance(a, b string) int {
	if len(a) > maxCompared || len(b) > maxCompared {
		return maxCompared
	}
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, last[j]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
