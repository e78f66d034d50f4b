package document

import (
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
)

// ParseTime reads an RFC 3339 date and time, or a date alone, which is its midnight in UTC. The result is in UTC, cut
// to milliseconds, as BSON keeps it, and in the years 0 to 9999. Errors are errs.Invalid with code "bad_time".
func ParseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil && isRFC3339(s) {
		t, err = time.Parse(time.RFC3339, s)
	}
	t = t.UTC().Truncate(time.Millisecond)
	if err != nil || t.Year() < 0 || t.Year() > 9999 {
		return time.Time{}, errs.New(errs.Invalid, "bad_time",
			"%q is no date: write it like 2026-01-31T12:00:00Z or 2026-01-31", shorten(s))
	}
	return t, nil
}

// isRFC3339 refuses what time.Parse lets pass though RFC 3339 does not: an hour of one digit, a comma before the
// fraction, a zone of 24 hours or 60 minutes.
func isRFC3339(s string) bool {
	if len(s) < len("2006-01-02T15:04:05Z") || s[13] != ':' || strings.Contains(s, ",") {
		return false
	}
	zone := s[len(s)-len("+15:04"):]
	return s[len(s)-1] == 'Z' || (zone[1:3] <= "23" && zone[4:] <= "59")
}

// CheckNames finds the field names that a record may not have, at every depth: empty, beginning with "$", containing
// "." or NUL, and __proto__, constructor and prototype, which scripts would trip over.
func CheckNames(doc bson.D) []errs.FieldError {
	return appendBadNames(nil, "", doc)
}

func appendBadNames(problems []errs.FieldError, path string, v any) []errs.FieldError {
	switch v := v.(type) {
	case bson.D:
		for i := range v {
			at := join(path, v[i].Key)
			if why := badName(v[i].Key); why != "" {
				problems = append(problems, errs.FieldError{Path: at, Rule: "name", Message: why})
				continue
			}
			problems = appendBadNames(problems, at, v[i].Value)
		}
	case bson.A:
		return appendBadNames(problems, path, []any(v))
	case []any:
		for i := range v {
			problems = appendBadNames(problems, join(path, strconv.Itoa(i)), v[i])
		}
	}
	return problems
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func badName(name string) string {
	switch {
	case name == "":
		return "a field name can't be empty"
	case name[0] == '$':
		return "a field name can't begin with $"
	case strings.ContainsAny(name, ".\x00"):
		return "a field name can't contain a dot or NUL"
	case name == "__proto__" || name == "constructor" || name == "prototype":
		return "the field name " + name + " is reserved; choose another"
	}
	return ""
}
