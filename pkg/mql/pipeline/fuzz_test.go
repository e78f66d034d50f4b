package pipeline_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql/pipeline"
)

// FuzzCompile compiles what comes, and runs what compiles: with errors that tell what is wrong, and without damage.
func FuzzCompile(f *testing.F) {
	data, err := os.ReadFile(casesFile)
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		if line[0] == '[' {
			f.Add(bytes.TrimSpace(line))
		}
	}
	f.Add([]byte(`[{"$lookup": {"from": "d", "as": "x", "let": {"v": "$a"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$b", "$$v"]}}}]}}]`))
	f.Add([]byte(`[{"$facet": {"a": [{"$unwind": "$a"}, {"$sortByCount": "$a"}], "b": [{"$sample": {"size": 2}}]}}]`))
	source := memory{}
	for _, name := range []string{"", "d"} {
		for id := range 4 {
			doc, err := document.Marshal(bson.D{
				{Key: "_id", Value: int32(id)}, {Key: "a", Value: bson.A{int32(id), 1.5, nil}}, {Key: "b", Value: bson.D{{Key: "c", Value: "x"}}}, {Key: "k", Value: int32(id % 2)},
			})
			if err != nil {
				f.Fatal(err)
			}
			source[name] = append(source[name], doc)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var d struct{ P bson.A }
		if !json.Valid(text) { // the driver's parser goes on for ever with some text
			return
		}
		if err := bson.UnmarshalExtJSON([]byte(`{"P":`+string(text)+`}`), false, &d); err != nil {
			return
		}
		p, err := pipeline.Compile(d.P, pipeline.Options{Stages: pipeline.Scripts, MaxStages: 20})
		if err == nil {
			err = p.Run(t.Context(), source, pipeline.Budget{Memory: 1 << 20, Results: 1000}, func(doc bson.Raw) error {
				if !document.WellFormed(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}) {
					return errors.New("a damaged document")
				}
				return nil
			})
		}
		if kind := errs.KindOf(err); err != nil && kind != errs.Invalid && kind != errs.Limit {
			t.Errorf("%s: %v", text, err)
		}
		if err != nil && errs.From(err).Code == "" {
			t.Errorf("%s: an error without a code: %v", text, err)
		}
	})
}
