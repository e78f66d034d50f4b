package fieldtype

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"regexp/syntax"
	"strings"
)

// The formats. email is HTML's own definition of a valid address.
var (
	emailText = regexp.MustCompile("^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@" +
		"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$")
	uuidText = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)
	slugText = regexp.MustCompile(`^[a-z0-9]+(?:-[a-z0-9]+)*$`)
)

// maxEmail is the longest address that mail servers take (RFC 5321), in bytes.
const maxEmail = 254

func testEmail(v any, _ *Check) string {
	if s, ok := v.(string); ok && len(s) <= maxEmail && emailText.MatchString(s) {
		return ""
	}
	return "must be an e-mail address, such as name@example.com"
}

// testURL takes web addresses only: a javascript: or data: link in a page is an attack, not a link.
func testURL(v any, _ *Check) string {
	s, _ := v.(string)
	u, err := url.Parse(s)
	if err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") {
		return ""
	}
	return "must be an absolute URL, such as https://example.com/page"
}

func testUUID(v any, _ *Check) string {
	if s, ok := v.(string); ok && uuidText.MatchString(s) {
		return ""
	}
	return "must be a UUID, such as 123e4567-e89b-12d3-a456-426614174000"
}

func testSlug(v any, _ *Check) string {
	if s, ok := v.(string); ok && slugText.MatchString(s) {
		return ""
	}
	return "must be a slug: lower-case letters, digits and single hyphens between them"
}

// rulePattern finds the expression anywhere in the text, as in JSON Schema: ^ and $ tie it to the ends.
func rulePattern(arg any, _ Type) (Rule, error) {
	expr, err := textArg(arg)
	if err != nil {
		return Rule{}, err
	}
	size, err := patternSize(expr)
	if err != nil {
		return Rule{}, fmt.Errorf("is no regular expression in RE2 syntax: %w", err)
	}
	if size > maxPattern {
		return Rule{}, errors.New("is too large once its repeats are written out: allow fewer of them")
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return Rule{}, fmt.Errorf("is no regular expression in RE2 syntax: %w", err)
	}
	return Rule{Arg: expr, Size: size, test: func(v any, _ *Check) string {
		if s, ok := v.(string); ok && re.MatchString(s) {
			return ""
		}
		return "must match the pattern " + expr
	}}, nil
}

// maxPattern bounds the steps of a pattern's program: a few characters can stand for a hundred megabytes.
const maxPattern = 30_000

func patternSize(expr string) (int, error) {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return 0, err
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return 0, err
	}
	return len(program.Inst), nil
}

func ruleStartsWith(arg any, _ Type) (Rule, error) {
	prefix, err := textArg(arg)
	if err != nil {
		return Rule{}, err
	}
	return Rule{Arg: prefix, test: func(v any, _ *Check) string {
		if s, ok := v.(string); ok && strings.HasPrefix(s, prefix) {
			return ""
		}
		return "must start with " + show(prefix)
	}}, nil
}

func ruleEndsWith(arg any, _ Type) (Rule, error) {
	suffix, err := textArg(arg)
	if err != nil {
		return Rule{}, err
	}
	return Rule{Arg: suffix, test: func(v any, _ *Check) string {
		if s, ok := v.(string); ok && strings.HasSuffix(s, suffix) {
			return ""
		}
		return "must end with " + show(suffix)
	}}, nil
}

// ruleScript takes the path of a script file; running it is the work of others.
func ruleScript(arg any, _ Type) (Rule, error) {
	file, err := textArg(arg)
	if err != nil {
		return Rule{}, err
	}
	return Rule{Arg: file}, nil
}
