package system

import (
	"context"
	"fmt"
	"net/mail"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

// Limits of passwords, in bytes. The longest is bounded since hashing takes time that grows with it.
const (
	MinPassword = 8
	MaxPassword = 1024
)

// maxSlug is the length of a slug that is made from a name.
const maxSlug = 64

var (
	usernamePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._@+-]*$`)
	slugPattern     = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	languagePattern = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$`)
)

// body takes the members of a request body one by one and collects every problem with them.
type body struct {
	doc      bson.D
	rules    map[string]rules // by member, from the struct that the body is of
	required []string         // members that must be given
	known    []string
	problems []errs.FieldError
}

// rules are those of a member, from its tag validator. GET /_meta shows the same tags.
type rules struct {
	required, email, slug bool
	min, max, maxItems    int // characters and items; 0: no rule
}

// newBody reads a body that has the form of a struct of pkg/api. On create, what is required must be given.
func newBody(doc bson.D, form any, create bool) *body {
	b := &body{doc: doc, rules: map[string]rules{}}
	t := reflect.TypeOf(form)
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		r := rulesOf(f.Tag)
		b.rules[name] = r
		if create && r.required {
			b.required = append(b.required, name)
		}
	}
	return b
}

func rulesOf(tag reflect.StructTag) rules {
	var r rules
	for rule := range strings.SplitSeq(tag.Get("validator"), ",") {
		rule, arg, _ := strings.Cut(rule, "=")
		n, _ := strconv.Atoi(arg) // a test reads every tag
		switch rule {
		case "required":
			r.required = true
		case "email":
			r.email = true
		case "slug":
			r.slug = true
		case "min":
			r.min = n
		case "max":
			r.max = n
		case "maxItems":
			r.maxItems = n
		}
	}
	return r
}

func (b *body) problem(path, rule, format string, args ...any) {
	b.problems = append(b.problems, errs.FieldError{Path: path, Rule: rule, Message: fmt.Sprintf(format, args...)})
}

// lookup says whether a member is given, and gives its value; nil for null.
func (b *body) lookup(name string) (any, bool) {
	b.known = append(b.known, name)
	return document.Member(b.doc, name)
}

// text takes a string member into dst; null empties it.
func (b *body) text(name string, dst *string) bool {
	v, ok := b.lookup(name)
	if !ok {
		return false
	}
	r := b.rules[name]
	s, isString := v.(string)
	switch n := utf8.RuneCountInString(s); {
	case v != nil && !isString:
		b.problem(name, "type", "must be a string")
		return false
	case s == "" && r.required:
		b.problem(name, "required", "must not be empty")
		return false
	case r.max > 0 && n > r.max:
		b.problem(name, "max", "must be at most %d characters long", r.max)
		return false
	case s != "" && n < r.min:
		b.problem(name, "min", "must be at least %d characters long", r.min)
		return false
	case strings.ContainsFunc(s, isControl):
		b.problem(name, "pattern", "must not contain control characters")
		return false
	case r.slug && s != "" && !slugPattern.MatchString(s):
		b.problem(name, "slug", "must be a slug: lower-case letters, digits and single hyphens between them")
		return false
	case r.slug && looksLikeID(s):
		b.problem(name, "slug", "must not look like an id, which is 24 hex digits: both name a record")
		return false
	case r.email && s != "" && !isEmail(s):
		b.problem(name, "email", "must be an e-mail address")
		return false
	}
	*dst = s
	return true
}

// slugFrom makes a slug that is not given of a name.
func (b *body) slugFrom(slug *string, name string) {
	if *slug != "" || name == "" {
		return
	}
	if *slug = Slug(name); *slug == "" {
		b.problem("slug", "required", "can't be made of a name without letters a-z and digits: give one")
	} else if looksLikeID(*slug) {
		b.problem("slug", "required", "can't be made of a name that looks like an id, which is 24 hex digits: give one")
	}
}

func looksLikeID(s string) bool {
	_, err := document.ParseID(s)
	return err == nil
}

func isEmail(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s
}

// isControl says whether a character is a control character, or one that breaks lines or changes the direction of what
// follows: in a list, a name that has one can look like another.
func isControl(r rune) bool {
	return unicode.IsControl(r) || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

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

// date takes an instant into dst; null makes it zero.
func (b *body) date(name string, dst *time.Time) bool {
	v, ok := b.lookup(name)
	if !ok {
		return false
	}
	if v == nil {
		*dst = time.Time{}
		return true
	}
	s, _ := v.(string)
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		b.problem(name, "type", "must be a time such as 2030-01-31T12:00:00Z, or null")
		return false
	}
	*dst = at.UTC().Truncate(time.Millisecond)
	return true
}

func (b *body) username(dst *string) {
	if !b.text("username", dst) {
		return
	}
	*dst = FoldUsername(*dst)
	if *dst != "" && !usernamePattern.MatchString(*dst) {
		b.problem("username", "pattern", "must consist of letters a-z, digits and . _ @ + -, and begin with a letter or digit")
	}
	if looksLikeID(*dst) {
		b.problem("username", "pattern", "must not look like an id, which is 24 hex digits: both name users")
	}
}

func (b *body) language(dst *string) {
	if b.text("language", dst) && *dst != "" && !languagePattern.MatchString(*dst) {
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
	b.list("scopes", dst, "scope names", func(s string) string {
		if access.ValidScope(s) {
			return ""
		}
		return noScope(s)
	})
}

// noScope says what is wrong with a word that is no scope. It quotes the nearest scope and never the word, which may be
// a secret that stands in the wrong place.
func noScope(word string) string {
	if strings.HasPrefix(word, "namespace.") {
		return "is no scope: in a project they are namespace.<project>, and namespace.<project>.<collection>.read, .create, .update or .delete"
	}
	if server := (&access.Principal{Kind: access.KindAdmin}); server.Has(word) { // a right, and no scope
		return "is no scope: only administrators have that right"
	}
	if near := access.NearestScope(word); near != "" {
		return fmt.Sprintf("is no scope; did you mean %s?", near)
	}
	return "is no scope: docs/security.md lists them"
}

// list takes a list of strings into dst, in order and each once; null empties it. check says what is wrong with an
// item, "" for nothing.
func (b *body) list(name string, dst *[]string, of string, check func(string) string) {
	v, ok := b.lookup(name)
	if !ok {
		return
	}
	if v == nil {
		*dst = []string{}
		return
	}
	given, isList := v.(bson.A)
	if !isList {
		b.problem(name, "type", "must be a list of %s", of)
		return
	}
	if most := b.rules[name].maxItems; len(given) > most {
		b.problem(name, "maxItems", "must have at most %d items", most)
		return
	}
	items := make([]string, 0, len(given))
	for i, v := range given {
		s, _ := v.(string)
		if wrong := check(s); wrong != "" {
			b.problem(fmt.Sprintf("%s.%d", name, i), "oneof", "%s", wrong)
			continue
		}
		items = append(items, s)
	}
	slices.Sort(items)
	*dst = slices.Compact(items)
}

// ids takes a list of ids into dst.
func (b *body) ids(name string, dst *[]string) {
	b.list(name, dst, "ids", func(s string) string {
		if _, err := document.ParseID(s); err != nil || s != strings.ToLower(s) {
			return "must be an id of 24 hex digits in lower case"
		}
		return ""
	})
}

// lookup gives those of ids that are there, as far as somebody may know.
type lookup func(ctx context.Context, ids []string) (seen []string, err error)

// exists reports those of ids that are new and not there. Those that a record had before may stay, whatever they lead
// to; "" is none.
func (b *body) exists(ctx context.Context, name string, old, ids []string, look lookup) error {
	added := slices.DeleteFunc(missing(old, ids), func(id string) bool { return id == "" })
	found, err := look(ctx, added)
	if err != nil {
		return err
	}
	for _, id := range added {
		if !slices.Contains(found, id) {
			b.problem(name, "exists", "there is none with the id %q", id)
		}
	}
	return nil
}

// done reports every problem, unknown members included.
func (b *body) done() error {
	for _, name := range b.required {
		if _, given := b.lookup(name); !given {
			b.problem(name, "required", "is required")
		}
	}
	for _, e := range b.doc {
		switch {
		case slices.Contains(b.known, e.Key):
		case slices.Contains([]string{"id", "_id", "createdAt", "updatedAt", "lastLoginAt", "lastUsedAt", "namespace", "userId"}, e.Key):
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
