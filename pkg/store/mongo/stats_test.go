package mongo_test

import (
	"strings"
	"testing"

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
