package expr_test

import (
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql/expr"
)

var errEnded = errors.New("ended")

// However long the list or the text, an expression ends soon after its time has. Each of these takes minutes otherwise, or much memory.
func TestExpressionsEnd(t *testing.T) {
	list := bson.D{{Key: "$range", Value: bson.A{int32(1_000_000), int32(0), int32(-1)}}}
	long := strings.Repeat("x", 1<<20)
	search := func(name string) bson.D {
		return bson.D{{Key: name, Value: bson.D{{Key: "input", Value: "$t"}, {Key: "regex", Value: "(x{1,30}){1,30}y"}}}}
	}
	raw, err := bson.Marshal(bson.D{{Key: "t", Value: long}})
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]any{
		"$setDifference": bson.D{{Key: "$setDifference", Value: bson.A{list, bson.A{}}}},
		"$setUnion":      bson.D{{Key: "$setUnion", Value: bson.A{list, list}}},
		"$concatArrays":  bson.D{{Key: "$concatArrays", Value: bson.A{list, list, list, list}}},
		"$sortArray":     bson.D{{Key: "$sortArray", Value: bson.D{{Key: "input", Value: list}, {Key: "sortBy", Value: int32(1)}}}},
		"$regexMatch":    search("$regexMatch"),
		"$regexFind":     search("$regexFind"),
		"$regexFindAll": bson.D{{Key: "$regexFindAll", Value: bson.D{ // each match is searched through all that is left
			{Key: "input", Value: bson.D{{Key: "$substrBytes", Value: bson.A{"$t", int32(0), int32(60_000)}}}}, {Key: "regex", Value: "x.*y|x"},
		}}},
	} {
		e, err := expr.Compile(v)
		if err != nil {
			t.Fatal(err)
		}
		asked := 0
		env := &expr.Env{Ended: func() error {
			if asked++; asked > 500 || asked > 5 && strings.HasPrefix(name, "$regex") { // of the others, some time behind the $range
				return errEnded
			}
			return nil
		}}
		env.Reset(raw)
		if _, err := e.Eval(env); !errors.Is(err, errEnded) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// All matches of a long text, which are searched one by one, are those of a short one.
func TestFindAllOneByOne(t *testing.T) {
	const far = "|z{450}y{450}" // matches nothing here, and makes it much work
	long := strings.Repeat("ab aab\nbé-", 20)
	for _, input := range []string{long, long + "a", "a" + long + " ", strings.Repeat("é", 100), strings.Repeat("\n", 100)} {
		for _, re := range []string{"a", "a*", "a*?", "a+|b*", "(a)(b)?", `\b`, `\B`, `\ba`, "^a", "(?m)^", "(?m)^.", "(?m)$", "$", "a$", `\z`, "", ".", "(?s).", "(?s).+", "é.", "(?i)AB", "((a)|(b))+", "[^a]*", "b(?:-|$)"} {
			find := func(re string) bson.RawValue {
				e, err := expr.Compile(bson.D{{Key: "$regexFindAll", Value: bson.D{{Key: "input", Value: "$t"}, {Key: "regex", Value: bson.Regex{Pattern: re}}}}})
				if err != nil {
					t.Fatal(err)
				}
				raw, err := bson.Marshal(bson.D{{Key: "t", Value: input}})
				if err != nil {
					t.Fatal(err)
				}
				var env expr.Env
				env.Reset(raw)
				v, err := e.Eval(&env)
				if err != nil {
					t.Fatal(err)
				}
				return v
			}
			if got, want := find("(?:"+re+")"+far), find(re); !got.Equal(want) {
				t.Errorf("%q in %.20q: %.300s, want %.300s", re, input, got, want)
			}
		}
	}
}
