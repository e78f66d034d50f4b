package access_test

import (
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/schema"
)

func TestFilterOfAScript(t *testing.T) {
	t.Parallel()
	script := &schema.Script{Type: "javascript", File: "f.js"}
	sets := schema.PermissionSet{Methods: schema.Methods{Get: single}, Filter: &schema.FilterSpec{Script: script}}
	p, problems := access.Compile(&schema.Permissions{Public: sets, User: sets}, nil, nil, nil, tree(t).Cast)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	busy := errs.New(errs.Unavailable, "busy", "busy")
	for name, tt := range map[string]struct {
		who    *access.Principal
		doc    bson.D
		err    error
		match  string // the _id of the owner that the filter finds
		refuse errs.Kind
	}{
		"is cast":               {who: user(nil), doc: bson.D{{Key: "owner", Value: userID}}, match: userID},
		"has variables":         {who: user(nil), doc: bson.D{{Key: "owner", Value: bson.D{{Key: "$var", Value: "user.id"}}}}, match: userID},
		"no user to have one":   {who: access.Anonymous(), doc: bson.D{{Key: "owner", Value: bson.D{{Key: "$var", Value: "user.id"}}}}, refuse: errs.Denied},
		"an unknown field":      {who: user(nil), doc: bson.D{{Key: "nope", Value: 1}}, refuse: errs.Denied},
		"an unknown operator":   {who: user(nil), doc: bson.D{{Key: "owner", Value: bson.D{{Key: "$where", Value: "1"}}}}, refuse: errs.Denied},
		"fails":                 {who: user(nil), err: errors.New("boom"), refuse: errs.Denied},
		"may work another time": {who: user(nil), err: busy, refuse: errs.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := 0
			env := access.Env{Now: noon, RunFilter: func(s *schema.Script) (bson.D, error) {
				if s != script {
					t.Error("another script")
				}
				return tt.doc, tt.err
			}, BadFilter: func(s *schema.Script, err error) {
				if s != script || err == nil {
					t.Errorf("told of %v, %v", s, err)
				}
				told++
			}}
			x := p.Explain(tt.who, access.Get, env)
			if bad := tt.refuse == errs.Denied && tt.err == nil; bad != (told > 0) {
				t.Errorf("told %d times", told)
			}
			if tt.refuse != errs.Internal {
				if errs.KindOf(x.Err) != tt.refuse || !strings.Contains(x.Reason(), "f.js") {
					t.Errorf("%v: %s", x.Err, x.Reason())
				}
				return
			}
			if x.Err != nil || !strings.Contains(x.Reason(), "f.js made") {
				t.Fatalf("%v: %s", x.Err, x.Reason())
			}
			for _, owner := range []string{userID, orgID} {
				id, err := bson.ObjectIDFromHex(owner)
				if err != nil {
					t.Fatal(err)
				}
				raw, err := bson.Marshal(bson.D{{Key: "owner", Value: id}})
				if err != nil {
					t.Fatal(err)
				}
				if got := x.Grant.Filter.Match(raw); got != (owner == tt.match) {
					t.Errorf("%s: %v", owner, got)
				}
			}
		})
	}
	if _, err := p.Decide(user(nil), access.Get, access.Env{Now: noon}); errs.KindOf(err) != errs.Denied {
		t.Errorf("nothing to run it with: %v", err)
	}
}
