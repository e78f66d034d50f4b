package expr_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql/expr"
)

var errTooLong = errors.New("enough steps")

// FuzzExpr compiles what comes, and computes what compiles for a document: within its memory and its steps, with errors that
// tell what is wrong, and to a value that is one.
func FuzzExpr(f *testing.F) {
	data, err := os.ReadFile(goldenFile)
	if err != nil {
		f.Fatal(err)
	}
	for i, line := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
		var c golden
		if err := json.Unmarshal(line, &c); err != nil {
			f.Fatal(err)
		}
		if i%10 == 0 {
			f.Add([]byte(c.Expr), []byte(c.Doc))
		}
	}
	f.Add([]byte(`{"$reduce": {"input": {"$range": [0, 100000]}, "initialValue": "", "in": {"$concat": ["$$value", "$a", "$a"]}}}`), []byte(`{"a": "xx"}`))
	f.Add([]byte(`{"$regexFindAll": {"input": "$a", "regex": "$b"}}`), []byte(`{"a": "aaaa", "b": "(a*)*b"}`))
	f.Fuzz(func(t *testing.T, expression, doc []byte) {
		var e struct{ E any }
		var root bson.D
		if !json.Valid(expression) || !json.Valid(doc) { // the driver's parser goes on for ever with some text
			return
		}
		if bson.UnmarshalExtJSON([]byte(`{"E":`+string(expression)+`}`), false, &e) != nil || bson.UnmarshalExtJSON(doc, false, &root) != nil {
			return
		}
		raw, err := document.Marshal(root)
		if err != nil {
			return
		}
		x, err := expr.Compile(e.E)
		if err == nil {
			asked := 0
			env := expr.Env{Memory: 1 << 20, Ended: func() error {
				if asked++; asked > 200 {
					return errTooLong
				}
				return nil
			}}
			env.Reset(raw)
			var v bson.RawValue
			if v, err = x.Eval(&env); err == nil && v.Type != 0 && !document.WellFormed(v) {
				t.Errorf("%s of %s is damaged", expression, doc)
			}
		}
		if kind := errs.KindOf(err); err != nil && !errors.Is(err, errTooLong) && kind != errs.Invalid && kind != errs.Limit {
			t.Errorf("%s of %s: %v", expression, doc, err)
		}
	})
}
