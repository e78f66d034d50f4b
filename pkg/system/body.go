package system

import (
	"fmt"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/errs"
)

// Limits of what the models hold, in bytes unless said otherwise.
const (
	MinPassword    = 8
	MaxPassword    = 1024 // hashing takes time that grows with it
	maxUsername    = 64
	maxName        = 100 // characters
	maxEmail       = 254
	maxDescription = 1000 // characters
	maxConfigFile  = 4096
	maxScopes      = 1000
)

var (
	usernamePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._@+-]*$`)
	languagePattern = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$`)
)

// body takes the members of a request body one by one and collects every problem with them.
type body struct {
	doc      bson.D
	known    []string
	problems []errs.FieldError
}

func (b *body) problem(path, rule, format string, args ...any) {
	b.problems = append(b.problems, errs.FieldError{Path: path, Rule: rule, Message: fmt.Sprintf(format, args...)})
}

// lookup says whether a member is given, and gives its value; nil for null.
func (b *body) lookup(name string) (any, bool) {
	b.known = append(b.known, name)
	for _, e := range b.doc {
		if e.Key == name {
			return e.Value, true
		}
	}
	return nil, false
}

// text takes a string member into dst; null empties it.
func (b *body) text(name string, dst *string, maxChars int) bool {
	v, ok := b.lookup(name)
	if !ok {
		return false
	}
	s, isString := v.(string)
	switch {
	case v == nil:
		s = ""
	case !isString:
		b.problem(name, "type", "must be a string")
		return false
	case utf8.RuneCountInString(s) > maxChars:
		b.problem(name, "max", "must be at most %d characters long", maxChars)
		return false
	case strings.ContainsFunc(s, isControl):
		b.problem(name, "pattern", "must not contain control characters")
		return false
	}
	*dst = s
	return true
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// flag takes a boolean member into dst; null sets it to def.
func (b *body) flag(name string, dst *bool, def bool) {
	v, ok := b.lookup(name)
	if !ok {
		return
	}
	switch v := v.(type) {
	case bool:
		*dst = v
	case nil:
		*dst = def
	default:
		b.problem(name, "type", "must be true or false")
	}
}

func (b *body) username(dst *string) {
	if !b.text("username", dst, maxUsername) {
		return
	}
	*dst = FoldUsername(*dst)
	if *dst != "" && !usernamePattern.MatchString(*dst) {
		b.problem("username", "pattern", "must consist of letters a-z, digits and . _ @ + -, and begin with a letter or digit")
	}
}

func (b *body) email(dst *string) {
	if !b.text("email", dst, maxEmail) || *dst == "" {
		return
	}
	if a, err := mail.ParseAddress(*dst); err != nil || a.Address != *dst {
		b.problem("email", "email", "must be an e-mail address")
	}
}

func (b *body) language(dst *string) {
	if b.text("language", dst, maxName) && *dst != "" && !languagePattern.MatchString(*dst) {
		b.problem("language", "pattern", "must be a language tag such as en or de-AT")
	}
}

// password gives the new password, "" when none is given.
func (b *body) password() string {
	v, ok := b.lookup("password")
	if !ok {
		return ""
	}
	s, isString := v.(string)
	if !isString {
		b.problem("password", "type", "must be a string")
		return ""
	}
	if msg := CheckPassword(s); msg != "" {
		b.problem("password", "len", "%s", msg)
		return ""
	}
	return s
}

// CheckPassword says what is wrong with the length of a new password, "" when nothing is.
func CheckPassword(password string) string {
	if n := len(password); n < MinPassword || n > MaxPassword || !utf8.ValidString(password) {
		return fmt.Sprintf("must be %d to %d bytes long", MinPassword, MaxPassword)
	}
	return ""
}

func (b *body) scopes(dst *[]string) {
	v, ok := b.lookup("scopes")
	if !ok {
		return
	}
	if v == nil {
		*dst = []string{}
		return
	}
	list, isList := v.(bson.A)
	if !isList {
		b.problem("scopes", "type", "must be a list of scope names")
		return
	}
	if len(list) > maxScopes {
		b.problem("scopes", "maxItems", "must have at most %d items", maxScopes)
		return
	}
	scopes := make([]string, 0, len(list))
	for i, v := range list {
		s, _ := v.(string)
		if !access.ValidScope(s) {
			b.problem(fmt.Sprintf("scopes.%d", i), "oneof", "is no scope")
			continue
		}
		scopes = append(scopes, s)
	}
	slices.Sort(scopes)
	*dst = slices.Compact(scopes)
}

// require reports a member that is not given.
func (b *body) require(name string) {
	if _, ok := b.lookup(name); !ok {
		b.problem(name, "required", "is required")
	}
}

// notEmpty reports a member that is given as null or "".
func (b *body) notEmpty(name string) {
	if v, ok := b.lookup(name); ok && (v == nil || v == "") {
		b.problem(name, "required", "must not be empty")
	}
}

// done reports every problem, unknown members included.
func (b *body) done() error {
	for _, e := range b.doc {
		switch {
		case slices.Contains(b.known, e.Key):
		case slices.Contains([]string{"id", "_id", "createdAt", "updatedAt", "lastLoginAt", "namespace"}, e.Key):
			b.problem(e.Key, "readonly", "is set by the service")
		default:
			b.problem(e.Key, "unknown", "unknown field")
		}
	}
	if len(b.problems) > 0 {
		return errs.Validation(b.problems)
	}
	return nil
}

// FoldUsername gives the form in which usernames are compared and stored.
func FoldUsername(name string) string { return strings.ToLower(name) }
