package mql_test

import (
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
)

// far is a pattern that matches nothing here, and makes a search so much work that it is asked whether it has to end.
const far = "|z{450}y{450}"

// What takes long says what is said at once, and ends when it has to.
func TestMatchUntil(t *testing.T) {
	long := strings.Repeat("a", 20_000)
	raw, err := bson.Marshal(bson.D{
		{Key: "t", Value: long + "!"},
		{Key: "list", Value: bson.A{"b", long, int32(1)}},
		{Key: "parts", Value: bson.A{bson.D{{Key: "t", Value: long}, {Key: "n", Value: int32(1)}}, bson.D{{Key: "t", Value: "c"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	re := func(p string) bson.Regex { return bson.Regex{Pattern: p} }
	one := func(p string) bson.D { return bson.D{{Key: "$regex", Value: p}} }
	errEnded := errors.New("ended")
	for name, filter := range map[string]func(more string) bson.D{
		"text":    func(more string) bson.D { return bson.D{{Key: "t", Value: one("^(a+)+!$" + more)}} },
		"no text": func(more string) bson.D { return bson.D{{Key: "t", Value: one("^(a+)+$" + more)}} },
		"in": func(more string) bson.D {
			return bson.D{{Key: "t", Value: bson.D{{Key: "$in", Value: bson.A{"x", re("a!$" + more)}}}}}
		},
		"not": func(more string) bson.D {
			return bson.D{{Key: "t", Value: bson.D{{Key: "$not", Value: one("b$" + more)}}}}
		},
		"nin": func(more string) bson.D {
			return bson.D{{Key: "t", Value: bson.D{{Key: "$nin", Value: bson.A{re("!$" + more)}}}}}
		},
		"list": func(more string) bson.D { return bson.D{{Key: "list", Value: one("^a+$" + more)}} },
		"all": func(more string) bson.D {
			return bson.D{{Key: "list", Value: bson.D{{Key: "$all", Value: bson.A{re("^b$" + more), re("a$" + more)}}}}}
		},
		"elements": func(more string) bson.D {
			return bson.D{{Key: "list", Value: bson.D{{Key: "$elemMatch", Value: one("aa$" + more)}}}}
		},
		"objects": func(more string) bson.D {
			return bson.D{{Key: "parts", Value: bson.D{{Key: "$elemMatch", Value: bson.D{{Key: "t", Value: one("a$" + more)}, {Key: "n", Value: int32(1)}}}}}}
		},
		"path": func(more string) bson.D { return bson.D{{Key: "parts.t", Value: one("^a*$" + more)}} },
		"or": func(more string) bson.D {
			return bson.D{{Key: "$or", Value: bson.A{bson.D{{Key: "n", Value: 1}}, bson.D{{Key: "t", Value: one("!$" + more)}}}}}
		},
		"nor": func(more string) bson.D {
			return bson.D{{Key: "$nor", Value: bson.A{bson.D{{Key: "t", Value: one("!$" + more)}}}}}
		},
		"and": func(more string) bson.D {
			return bson.D{{Key: "$and", Value: bson.A{bson.D{{Key: "t", Value: one("!$" + more)}}, bson.D{{Key: "list", Value: "b"}}}}}
		},
		"other types": func(more string) bson.D { return bson.D{{Key: "list.2", Value: one("1" + more)}} },
	} {
		t.Run(name, func(t *testing.T) {
			quick, err := mql.Compile(filter(""))
			if err != nil {
				t.Fatal(err)
			}
			slow, err := mql.Compile(filter(far))
			if err != nil {
				t.Fatal(err)
			}
			asked := 0
			got, err := slow.MatchUntil(raw, func() error { asked++; return nil })
			if want := quick.Match(raw); err != nil || got != want || asked == 0 {
				t.Errorf("%v, %v, asked %d times; want %v", got, err, asked, want)
			}
			if got, err := slow.MatchUntil(raw, func() error { return errEnded }); got || !errors.Is(err, errEnded) {
				t.Errorf("at the end: %v, %v", got, err)
			}
			if got, err := quick.MatchUntil(raw, func() error { return errEnded }); err != nil || got != quick.Match(raw) {
				t.Errorf("what is over at once: %v, %v", got, err)
			}
		})
	}
	if ok, err := (*mql.Filter)(nil).MatchUntil(raw, nil); !ok || err != nil {
		t.Errorf("no filter: %v, %v", ok, err)
	}
}
