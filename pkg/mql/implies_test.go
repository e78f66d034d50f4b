package mql_test

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/mqltest"
)

func TestImplies(t *testing.T) {
	tests := []struct {
		f, g string
		want bool
	}{
		{`{"a":1}`, `{}`, true},
		{`{}`, `{"a":1}`, false},
		{`{"a":1,"b":2}`, `{"a":1}`, true},
		{`{"a":1}`, `{"a":1,"b":2}`, false},
		{`{"a":1}`, `{"a":1.0}`, true},
		{`{"a":1}`, `{"b":1}`, false},
		{`{"a":5}`, `{"a":{"$gt":1}}`, true},
		{`{"a":5}`, `{"a":{"$gt":1,"$lt":5}}`, false},
		{`{"a":{"$gt":5,"$lt":7}}`, `{"a":{"$gte":5,"$lte":7}}`, true},
		{`{"a":{"$gte":5}}`, `{"a":{"$gt":5}}`, false},
		{`{"a":{"$gte":6}}`, `{"a":{"$gt":5.5}}`, true},
		{`{"a":{"$gt":6}}`, `{"a":{"$gt":"x"}}`, false},
		{`{"a":{"$gt":6}}`, `{"a":{"$lt":7}}`, false},
		{`{"a":{"$gt":6}}`, `{"a":{"$gte":{"$numberDouble":"NaN"}}}`, false},
		{`{"a":{"$lt":"m"}}`, `{"a":{"$lte":"n"}}`, true},
		{`{"a":{"$in":[1,2]}}`, `{"a":{"$in":[2,3,1]}}`, true},
		{`{"a":{"$in":[1,4]}}`, `{"a":{"$in":[2,3,1]}}`, false},
		{`{"a":{"$in":[2,3]}}`, `{"a":{"$gt":1}}`, true},
		{`{"a":{"$in":[2,3]}}`, `{"$or":[{"a":2},{"a":3}]}`, true},
		{`{"a":{"$in":[2,null]}}`, `{"a":{"$exists":true}}`, false},
		{`{"a":1}`, `{"a":{"$exists":true}}`, true},
		{`{"a":null}`, `{"a":{"$exists":true}}`, false},
		{`{"a":{"$ne":null}}`, `{"a":{"$exists":true}}`, true},
		{`{"a":{"$ne":1}}`, `{"a":{"$exists":true}}`, false},
		{`{"a.b":{"$ne":null}}`, `{"a.b":{"$exists":true}}`, false}, // {a: []}
		{`{"a":{"$exists":false}}`, `{"a":null}`, true},
		{`{"a.b":{"$exists":false}}`, `{"a.b":null}`, false}, // {a: [1]}
		{`{"a":{"$regex":"^x"}}`, `{"a":{"$exists":true}}`, true},
		{`{"a":{"$size":2}}`, `{"a":{"$exists":true}}`, true},
		{`{"a":{"$all":[1,2]}}`, `{"a":{"$gte":2}}`, true},
		{`{"a":{"$elemMatch":{"$gt":4,"$lt":9}}}`, `{"a":{"$gt":3}}`, true},
		{`{"a.0":{"$elemMatch":{"$gt":4,"$lt":9}}}`, `{"a.0":{"$gt":3}}`, false},
		{`{"a":{"$elemMatch":{"b":1}}}`, `{"a":{"$type":"array"}}`, true},
		{`{"a":5}`, `{"a":{"$type":"number"}}`, true},
		{`{"a":5}`, `{"a":{"$type":"int"}}`, false}, // 5.0
		{`{"a":{"$gt":5}}`, `{"a":{"$type":["string","number"]}}`, true},
		{`{"a":{"$type":"int"}}`, `{"a":{"$type":"number"}}`, true},
		{`{"a":{"$type":"number"}}`, `{"a":{"$type":"int"}}`, false},
		{`{"a":true}`, `{"a":{"$type":"bool"}}`, true},
		{`{"a":{"$gte":{"$date":"2026-01-01T00:00:00Z"}}}`, `{"a":{"$type":"date"}}`, true},
		{`{"a":{"$gt":{"$minKey":1}}}`, `{"a":{"$gte":{"$minKey":1}}}`, true},
		{`{"a":1}`, `{"a":{"$gt":{"$minKey":1}}}`, true},
		{`{"$or":[{"a":1},{"a":2,"b":1}]}`, `{"a":{"$gt":0}}`, true},
		{`{"$or":[{"a":1},{"b":1}]}`, `{"a":1}`, false},
		{`{"a":1}`, `{"$or":[{"b":1},{"a":{"$lt":5}}]}`, true},
		{`{"c":1,"$or":[{"a":1},{"b":1}]}`, `{"$or":[{"b":1},{"a":{"$lt":5}}]}`, true},
		{`{"$nor":[{"a":1}]}`, `{"$nor":[{"a":1}]}`, true},
		{`{"$nor":[{"a":1}]}`, `{"$nor":[{"a":2}]}`, false},
		{`{"a":{"$all":[]}}`, `{"a":1}`, true}, // it matches nothing
	}
	for _, test := range tests {
		if got := mql.Implies(compile(t, test.f), compile(t, test.g)); got != test.want {
			t.Errorf("%s implies %s: %v", test.f, test.g, got)
		}
	}
	if !mql.Implies(nil, nil) || !mql.Implies(compile(t, `{"a":1}`), nil) || mql.Implies(nil, compile(t, `{"a":1}`)) {
		t.Error("a nil filter is not one that matches everything")
	}
}

// What Implies says holds for every document.
func TestImpliesIsSound(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	docs := make([]bson.Raw, 300)
	for i := range docs {
		docs[i] = raw(t, mqltest.Doc(r, i))
	}
	pairs, proven, matches := 15_000, 0, 0
	if testing.Short() {
		pairs = 5_000
	}
	for range pairs {
		f, g := mql.MustCompile(mqltest.Filter(r)), mql.MustCompile(mqltest.PartialFilter(r))
		if r.IntN(3) == 0 { // one more condition, so that the proof is about the other
			f = mql.And(f, mql.MustCompile(mqltest.PartialFilter(r)))
		}
		if r.IntN(4) == 0 {
			g = mql.Or(f, g)
		}
		if !mql.Implies(f, g) {
			continue
		}
		proven++
		for _, d := range docs {
			if !f.Match(d) {
				continue
			}
			matches++
			if !g.Match(d) {
				t.Fatalf("%v is said to imply %v, but only the first matches %v", f.Raw(), g.Raw(), d)
			}
		}
	}
	if proven < pairs/20 || matches < pairs/2 {
		t.Errorf("%d of %d proven, with %d matches: too few to tell anything", proven, pairs, matches)
	}
	t.Logf("%d of %d proven, with %d matches", proven, pairs, matches)
}

func TestCheckPartial(t *testing.T) {
	tests := []struct{ filter, refused string }{
		{`{}`, ""},
		{`{"a":1,"b":{"$gt":1,"$lte":5},"c":{"$in":[1,null]}}`, ""},
		{`{"a":{"$exists":true,"$type":["int","string"]}}`, ""},
		{`{"$or":[{"a":1},{"$and":[{"b":1},{"$or":[{"b":1},{"c":1}]}]}]}`, ""},
		{`{"$and":[{"x":1},{"$or":[{"y":1},{"x":{"$gt":1,"$lt":5}}]}]}`, ""},
		{`{"$or":[{"a":1},{"$and":[{"b":1},{"$or":[{"b":1},{"$and":[{"c":1},{"d":1}]}]}]}]}`, "deeper than 4"},
		{`{"$or":[{"a":1},{"$and":[{"b":1},{"$or":[{"b":1},{"c":{"$gt":1,"$lt":2}}]}]}]}`, "deeper than 4"},
		{`{"$nor":[{"a":1}]}`, "$nor"},
		{`{"a":{"$exists":false}}`, "a: a partial filter can have"},
		{`{"a":{"$ne":1}}`, "a: a partial"},
		{`{"$or":[{"a":1},{"b.c":{"$nin":[1]}}]}`, "b.c: a partial"},
		{`{"a":{"$regex":"^x"}}`, "a: a partial"},
		{`{"a":{"$not":{"$gt":1}}}`, "a: a partial"},
		{`{"a":{"$size":1}}`, "a: a partial"},
		{`{"a":{"$mod":[2,1]}}`, "a: a partial"},
		{`{"a":{"$all":[1]}}`, "a: a partial"},
		{`{"a":{"$elemMatch":{"b":1}}}`, "a: a partial"},
	}
	for _, test := range tests {
		err := mql.CheckPartial(compile(t, test.filter))
		var e *errs.Error
		switch {
		case test.refused == "" && err != nil:
			t.Errorf("%s: %v", test.filter, err)
		case test.refused == "":
		case !errors.As(err, &e) || e.Kind != errs.Invalid || e.Code != "bad_partial_filter" || !strings.Contains(e.Message, test.refused):
			t.Errorf("%s: got %v, want bad_partial_filter with %q", test.filter, err, test.refused)
		}
	}
	if err := mql.CheckPartial(nil); err != nil {
		t.Error(err)
	}
}

func TestRegexPrefix(t *testing.T) {
	tests := []struct {
		pattern, options, prefix string
		exact                    bool
	}{
		{"^abc", "", "abc", true},
		{"^abc.*", "", "abc", true},
		{"^abc$", "", "abc", false},
		{`\Aab+`, "s", "ab", true},
		{"^ab+c", "", "ab", false},
		{"^(ab)(?:cd?)", "", "abc", true},
		{"^(?:ab|ac)", "", "a", false},
		{"^a{2,3}", "", "", false},
		{"^", "", "", true},
		{"^é[x]y", "", "éxy", true},
		{`^a\.b`, "", "a.b", true},
		{"^abc", "i", "", false},
		{"^a(?i)bc", "", "a", false},
		{"^abc", "m", "", false},
		{"abc", "", "", false},
		{".*", "", "", false},
		{"^a|^b", "", "", false},
		{"a*^b", "", "", false},
		{"^a^b", "", "a", false},
		{"^a\uFFFD", "", "", false},
	}
	for _, test := range tests {
		f := mql.MustCompile(bson.D{{Key: "a", Value: bson.Regex{Pattern: test.pattern, Options: test.options}}})
		re := f.Root().(*mql.Field).Preds[0].(*mql.Regex)
		if prefix, exact := re.Prefix(); prefix != test.prefix || exact != test.exact {
			t.Errorf("/%s/%s: %q, %v, want %q, %v", test.pattern, test.options, prefix, exact, test.prefix, test.exact)
		}
	}
}

func TestRegexPrefixOfEveryMatch(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	texts := []string{"", "a", "ab", "aab", "abc", "b", "a\nb", "\na", "A", "ba", "é", "a.b", "\xff", "a\xff", " a", "aa"}
	prefixes := 0
	for range 2000 {
		pattern := mqltest.Pattern(r)
		if r.IntN(2) == 0 {
			pattern = "^" + mqltest.Pattern(r) + pattern
		}
		f, err := mql.Compile(bson.D{{Key: "a", Value: bson.Regex{Pattern: pattern}}})
		if err != nil {
			continue
		}
		re := regexp.MustCompile(pattern)
		prefix, exact := f.Root().(*mql.Field).Preds[0].(*mql.Regex).Prefix()
		if prefix != "" {
			prefixes++
		}
		for _, text := range texts {
			if matched, begins := re.MatchString(text), strings.HasPrefix(text, prefix); matched && !begins || exact && begins && !matched {
				t.Errorf("/%s/ has the prefix %q (exact: %v), but on %q: match %v", pattern, prefix, exact, text, matched)
			}
		}
	}
	if prefixes < 100 {
		t.Errorf("only %d patterns have a prefix", prefixes)
	}
}
