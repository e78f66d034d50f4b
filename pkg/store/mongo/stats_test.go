package mongo_test

import (
	"context"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/mongo"
)

func TestStats(t *testing.T) {
	t.Parallel()
	_, db := database(t)
	c := db.Collection("c")
	if got, err := c.Stats(t.Context()); err != nil || got.Documents != 0 || got.Bytes != 0 || len(got.IndexBytes) != 0 {
		t.Errorf("of no collection: %+v, %v", got, err)
	}
	one, two := insertion(t, `{"_id":1,"s":"text"}`), insertion(t, `{"_id":2}`)
	mustWrite(t, c, one, two)
	if err := c.CreateIndex(t.Context(), store.Index{Name: "s", Keys: []store.IndexKey{{Path: "s"}}}); err != nil {
		t.Fatal(err)
	}
	got, err := c.Stats(t.Context())
	if err != nil || got.Documents != 2 || got.Bytes != int64(len(one.Doc)+len(two.Doc)) || got.DiskBytes == 0 ||
		len(got.IndexBytes) != 2 || got.IndexBytes["_id"] == 0 || got.IndexBytes["s"] == 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	_, db := database(t)
	mustWrite(t, db.Collection("c"), insertion(t, `{"_id":1}`))
	mustWrite(t, db.Collection("svc.kept"), insertion(t, `{"_id":1}`))
	if err := db.Validate(t.Context(), func(p store.Problem) { t.Errorf("%+v", p) }); err != nil {
		t.Error(err)
	}
}

// TestValidateReports reads answers as servers give them for collections that are damaged.
func TestValidateReports(t *testing.T) {
	t.Parallel()
	damaged := `{"valid":false,"indexDetails":{"_id_":{"valid":true},"n":{"valid":false,"errors":["out of order"]}},"errors":["bad"],
		"missingIndexEntries":[{"a":1}],"extraIndexEntries":[],"corruptRecords":[]}`
	for name, tt := range map[string]struct{ reply, want string }{
		"sound":     {`{"valid":true,"errors":[]}`, ""},
		"an index":  {damaged, "c//bad/true c/n/the index is not valid: out of order/true c//0 damaged records, 1 missing and 0 stray index entries/true"},
		"a shard":   {`{"valid":false,"raw":{"a":{"valid":true},"b":` + damaged + `}}`, "c//bad/true c/n/the index is not valid: out of order/true c//0 damaged records, 1 missing and 0 stray index entries/true"},
		"documents": {`{"valid":false,"errors":[],"corruptRecords":[1,2]}`, "c//2 damaged records, 0 missing and 0 stray index entries/false"},
	} {
		var got []string
		mongo.ReportProblems("c", doc(t, tt.reply), func(p store.Problem) {
			repairable := "/false"
			if p.Repairable {
				repairable = "/true"
			}
			got = append(got, p.Collection+"/"+p.Index+"/"+p.Text+repairable)
		})
		if text := strings.Join(got, " "); text != tt.want {
			t.Errorf("%s: %s, want %s", name, text, tt.want)
		}
	}
}

// TestDistinctReadsNoIndexKeys has values that an index has and documents don't.
func TestDistinctReadsNoIndexKeys(t *testing.T) {
	t.Parallel()
	_, db := database(t)
	c := db.Collection("c")
	mustWrite(t, c, insertion(t, `{"_id":1,"a":[]}`), insertion(t, `{"_id":2}`), insertion(t, `{"_id":3,"a":[[1],1]}`))
	for _, index := range []string{"", "a"} {
		if index != "" {
			if err := c.CreateIndex(t.Context(), store.Index{Name: index, Keys: []store.IndexKey{{Path: index}}}); err != nil {
				t.Fatal(err)
			}
		}
		got, err := c.Distinct(t.Context(), "a", nil)
		if err != nil || len(got) != 2 || got[0].Type != bson.TypeInt32 || got[1].Type != bson.TypeArray {
			t.Errorf("with index %q: %v, %v", index, got, err)
		}
	}
	big := insertion(t, `{"_id":4,"s":"`+strings.Repeat("x", 9<<20)+`"}`)
	other := insertion(t, `{"_id":5,"s":"`+strings.Repeat("y", 9<<20)+`"}`)
	mustWrite(t, c, big, other)
	if _, err := c.Distinct(context.WithoutCancel(t.Context()), "s", nil); outcome(err) != "distinct_too_large" {
		t.Errorf("of 18 MB: %v", err)
	}
}
