package mql_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
)

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":{"$gt":1,"$lt":{"$date":"2026-01-01T00:00:00Z"}}}`, `{"$or":[{"a.0":[1]},{"b":{"$not":{"$regex":"^x$","$options":"im"}}}]}`,
		`{"a":{"$elemMatch":{"b":null,"c":{"$in":[1,"x",null]}}}}`, `{"a":{"$all":[{"$elemMatch":{"$mod":[2,1]}}]}}`, `{"a":{"$type":["number",10]}}`,
	} {
		f.Add([]byte(seed), []byte(`{"a":[{"b":null},1,"x",[1.5]],"b":"x\n","c":{"0":true}}`))
	}
	f.Fuzz(func(t *testing.T, filter, doc []byte) {
		d, err := document.ParseJSON(filter)
		if err != nil {
			return
		}
		mql.Measure(d)
		v, err := mql.Extended(d)
		if err != nil {
			return
		}
		resolved, ok := v.(bson.D)
		if !ok {
			return
		}
		q, err := mql.Compile(resolved)
		_, rewriteErr := mql.Rewrite(resolved, func(_, _ string, v any) (any, error) { return v, nil })
		if err != nil {
			return
		}
		if rewriteErr != nil {
			t.Errorf("Rewrite refuses what Compile takes: %v", rewriteErr)
		}
		if err := q.Raw().Validate(); err != nil {
			t.Errorf("Raw is damaged: %v", err)
		}
		q.Match(doc) // not even BSON
		if parsed, err := document.ParseJSON(doc); err == nil {
			if encoded, err := document.Marshal(parsed); err == nil {
				q.Match(encoded)
			}
		}
	})
}
