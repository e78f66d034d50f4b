package pipeline_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/pipeline"
)

// shelves are documents with keys of all kinds, and those that they lead to.
func shelves(t *testing.T) memory {
	t.Helper()
	m := memory{}
	add := func(collection string, doc bson.D) {
		raw, err := document.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		m[collection] = append(m[collection], raw)
	}
	keys := []any{1, 2, int64(2), 2.5, "a", nil, bson.A{1, "a"}, bson.A{}, bson.A{bson.A{1}}, bson.D{{Key: "k", Value: 1}}, bson.A{nil, 2}}
	for i := range 60 {
		doc := bson.D{{Key: "_id", Value: i}}
		if k := i % (len(keys) + 1); k < len(keys) {
			doc = append(doc, bson.E{Key: "key", Value: keys[k]})
		}
		add("", doc)
		add("d", append(doc, bson.E{Key: "secret", Value: i * 7}, bson.E{Key: "on", Value: i%3 > 0}, bson.E{Key: "in", Value: bson.D{{Key: "a", Value: i}, {Key: "b", Value: 1}}}))
	}
	return m
}

// each are pipelines that make one document of each that they take.
var each = []string{
	`[]`,
	`[{"$match": {"on": true}}]`,
	`[{"$unset": ["secret", "in.a"]}]`,
	`[{"$match": {"on": true}}, {"$unset": ["key", "secret"]}]`, // also what they are found by
	`[{"$match": {"secret": {"$gt": 50}}}, {"$project": {"_id": 1, "in": {"b": 1}}}]`,
	`[{"$set": {"in": {"c": {"$add": ["$in.a", 1]}}, "secret": "$$REMOVE"}}]`,
	`[{"$replaceWith": {"sum": {"$add": ["$in.a", "$in.b"]}}}]`,
}

// What a pipeline makes of each document that is found is the same whether documents are looked up for at once or one by
// one, by an index or without.
func TestLookupAtOnceAsOneByOne(t *testing.T) {
	m := shelves(t)
	for _, inner := range each {
		for _, local := range []string{"key", "_id", "none"} {
			for _, foreign := range []string{"key", "_id", "in.a"} {
				at := `[{"$lookup": {"from": "d", "as": "x", "localField": "` + local + `", "foreignField": "` + foreign + `", "pipeline": ` + inner + `}}]`
				one := strings.Replace(at, `"as"`, `"let": {"v": 1}, "as"`, 1)
				for name, src := range map[string]pipeline.Source{"without": m, "with": indexed{m}} {
					want, err := run(t.Context(), t, src, one, pipeline.Budget{})
					if err != nil {
						t.Fatal(err)
					}
					got, err := run(t.Context(), t, src, at, pipeline.Budget{})
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s, %s an index (-one by one +at once):\n%s", at, name, diff)
					}
					if len(got) != 60 {
						t.Errorf("%d documents", len(got))
					}
				}
			}
		}
	}
}

// One query finds what is looked up for many documents, whatever the pipeline makes of each that is found.
func TestLookupIsOneQuery(t *testing.T) {
	src := &watched{memory: shelves(t)}
	for _, inner := range each {
		src.asked = nil
		stages := `[{"$lookup": {"from": "d", "as": "x", "localField": "key", "foreignField": "_id", "pipeline": ` + inner + `}}]`
		if _, err := run(t.Context(), t, src, stages, pipeline.Budget{}); err != nil {
			t.Fatal(err)
		}
		if len(src.asked) != 1 {
			t.Errorf("%s: %d queries, want 1", inner, len(src.asked))
		}
	}
	for _, inner := range []string{
		`[{"$sort": {"secret": -1}}]`, `[{"$limit": 1}]`, `[{"$group": {"_id": "$on"}}]`, `[{"$set": {"n": {"$rand": {}}}}]`,
	} {
		src.asked = nil
		stages := `[{"$lookup": {"from": "d", "as": "x", "localField": "key", "foreignField": "_id", "pipeline": ` + inner + `}}]`
		if _, err := run(t.Context(), t, src, stages, pipeline.Budget{}); err != nil {
			t.Fatal(err)
		}
		if len(src.asked) != 60 {
			t.Errorf("%s: %d queries, want one for each document", inner, len(src.asked))
		}
	}
}

// Where the whole other collection is too much at once, each document is looked up for by itself.
func TestLookupOfTooManyIsOneByOne(t *testing.T) {
	m := docs(t, 40) // of 1 KB
	m["d"] = m[""]
	src := &watched{memory: m}
	stages := `[{"$lookup": {"from": "d", "as": "x", "localField": "_id", "foreignField": "_id", "pipeline": [{"$unset": "_id"}]}}]`
	got, err := run(t.Context(), t, src, stages, pipeline.Budget{Memory: 60 << 10})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 40 || len(src.asked) != 41 {
		t.Errorf("%d documents by %d queries, want 40 by 41", len(got), len(src.asked))
	}
	for _, doc := range got {
		if values, err := doc.Lookup("x").Array().Values(); err != nil || len(values) != 1 {
			t.Fatalf("found %v, %v", doc.Lookup("x"), err)
		}
	}
}
