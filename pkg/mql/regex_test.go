package mql_test

import (
	"regexp"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
)

func TestRegexForServer(t *testing.T) {
	tests := []struct{ pattern, options, want string }{
		{"abc", "", "abc"},
		{"", "", "(?:)"},
		{"^abc", "", "^abc"}, // gives index bounds
		{`\Aabc\z`, "", `^abc\z`},
		{"abc$", "", `abc\z`},
		{"^a$", "m", `(?:^|(?<=\x{A}))a(?m:$)`},
		{"a.b", "", `a[^\x{A}]b`},
		{"a.b", "s", `a[\x{0}-\x{10FFFF}]b`},
		{"k1", "i", "[Kk\u212a]1"},
		{"(?i)é", "", "[Éé]"},
		{`\s\v`, "", `[\x{9}-\x{a}\x{c}-\x{d} ]\x{b}`},
		{`\d\.`, "", `[0-9]\.`},
		{"(?P<n>a)(b|c)?", "", "(?:a)(?:(?:[b-c]))?"},
		{"a{2,3}?b{2,}c{4}", "", "(?:a){2,3}?(?:b){2,}(?:c){4}"},
		{"x*y+?", "", "(?:x)*(?:y)+?"},
		{"ab|^cd", "", "ab|^cd"},
		{"(ab|cd)e", "", "(?:ab|cd)e"},
		{`\Q.*\E`, "", `\.\*`},
		{`\bx\B`, "", `\bx\B`},
		{"[^\\x00-\\x{10FFFF}]", "", `[^\x{0}-\x{10FFFF}]`},
		{`[\x{D7FF}-\x{E001}]`, "", "[\\x{d7ff}-\\x{e001}]"},
		{`[\x{D800}-\x{DFFF}]`, "", `[^\x{0}-\x{10FFFF}]`},
		{`\x{D800}`, "", `[^\x{0}-\x{10FFFF}]`},
		{"#- ]", "", `\#\- \]`},
	}
	for _, test := range tests {
		f, err := mql.Compile(bson.D{{Key: "a", Value: bson.Regex{Pattern: test.pattern, Options: test.options}}})
		if err != nil {
			t.Fatal(err)
		}
		got := f.Raw().Lookup("a", "$regex").StringValue()
		if got != test.want {
			t.Errorf("%q %q: got %s, want %s", test.pattern, test.options, got, test.want)
		}
		if strings.Contains(got, "(?<=") {
			continue
		}
		sent, original := regexp.MustCompile(got), regexp.MustCompile("(?"+test.options+":"+test.pattern+")")
		for _, text := range []string{"", "abc", "abc\n", "\nabc", "a\nb", "K1", "\u212a1", "É", "5.", "  \v", "\t\v", ".*", "x", "xx", "xy", "a", "b\na\n", "#- ]"} {
			if sent.MatchString(text) != original.MatchString(text) {
				t.Errorf("%q %q differs from %s on %q", test.pattern, test.options, got, text)
			}
		}
	}
}
