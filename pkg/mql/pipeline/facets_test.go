package pipeline_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/mqltest"
	"github.com/svcctl/svc/pkg/mql/pipeline"
)

// counted runs a pipeline of pipeline.Facets.
func counted(ctx context.Context, t *testing.T, src pipeline.Source, p *pipeline.Pipeline) (documents int64, values [][]pipeline.FacetValue) {
	t.Helper()
	results := 0
	err := p.Run(ctx, src, pipeline.Budget{}, func(doc bson.Raw) error {
		results++
		documents, values = pipeline.ReadFacets(bytes.Clone(doc))
		return nil
	})
	if err != nil || results != 1 {
		t.Fatalf("%d results, %v", results, err)
	}
	return documents, values
}

func TestFacets(t *testing.T) {
	src := memory{"": nil}
	for _, v := range parse(t, `[
		{"_id": 1, "s": "x", "tags": ["a", "b", "a"], "o": {"p": 1}, "l": [{"p": 1}, {"p": [2, 1]}, 7]},
		{"_id": 2, "s": "y", "tags": "b", "o": {"p": 1.0}, "l": []},
		{"_id": 3, "s": "x", "tags": [], "o": [{"p": 3}], "l": {"p": null}},
		{"_id": 4, "s": null, "tags": [null, "c", ["bb"]]},
		{"_id": 5, "s": "z"}
	]`) {
		src[""] = append(src[""], marshal(t, v))
	}
	for _, c := range []struct {
		filter bson.D
		paths  string
		most   int
		want   string
	}{
		{nil, "s", 9, "5 [x:2 y:1 z:1]"},
		{nil, "s,tags", 2, "5 [x:2 y:1] [b:2 a:1]"},
		{nil, "tags,s", 9, `5 [b:2 a:1 ["bb"]:1 c:1] [x:2 y:1 z:1]`},
		{nil, "o.p,l.p,none", 9, "5 [1:2 3:1] [1:1 2:1] []"},
		{nil, "l.0.p,tags.0", 9, "5 [] []"}, // a number is a name
		{bson.D{{Key: "_id", Value: bson.D{{Key: "$lt", Value: 3}}}}, "s", 9, "2 [x:1 y:1]"},
		{bson.D{{Key: "_id", Value: 9}}, "s,tags", 9, "0 [] []"},
	} {
		p, err := pipeline.Facets(mql.MustCompile(c.filter), strings.Split(c.paths, ","), c.most)
		if err != nil {
			t.Fatal(err)
		}
		documents, values := counted(t.Context(), t, src, p)
		got := strconv.FormatInt(documents, 10)
		var gotSb67 strings.Builder
		for _, list := range values {
			var each []string
			for _, v := range list {
				each = append(each, fmt.Sprintf("%s:%d", plainText(v.Value), v.Count))
			}
			gotSb67.WriteString(" [" + strings.Join(each, " ") + "]")
		}
		got += gotSb67.String()
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.paths, got, c.want)
		}
	}
	for _, paths := range [][]string{nil, {""}, {"a..b"}, {"$a"}} {
		if _, err := pipeline.Facets(nil, paths, 1); errs.From(err).Kind != errs.Invalid {
			t.Errorf("%q: %v", paths, err)
		}
	}
}

func plainText(v bson.RawValue) string {
	if s, ok := v.StringValueOK(); ok {
		return s
	}
	text := v.String()
	for _, name := range []string{"Int", "Double"} {
		text = strings.TrimSuffix(strings.TrimPrefix(text, `{"$number`+name+`":"`), `"}`)
	}
	return strings.TrimSuffix(text, ".0")
}

// TestFacetsMeanTheirStages compares the one pass with the stages that a server is sent.
func TestFacetsMeanTheirStages(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	paths := []string{"a", "b", "c", "a.b", "b.c", "c.a.b", "a.b.c", "a.0", "none"}
	for range 200 {
		src := memory{}
		for id := range 30 {
			src[""] = append(src[""], marshal(t, mqltest.Doc(r, int32(id))))
		}
		p, err := pipeline.Facets(nil, paths, 1000)
		if err != nil {
			t.Fatal(err)
		}
		var stages bson.A
		for _, raw := range p.Raw() {
			stage, err := document.Unmarshal(raw)
			if err != nil {
				t.Fatal(err)
			}
			stages = append(stages, stage)
		}
		plain, err := pipeline.Compile(stages, pipeline.Options{})
		if err != nil {
			t.Fatal(err)
		}
		documents, values := counted(t.Context(), t, src, p)
		wantDocuments, want := counted(t.Context(), t, src, plain)
		if documents != wantDocuments {
			t.Fatalf("%d documents, want %d", documents, wantDocuments)
		}
		for i := range paths {
			if got, want := byKey(t, values[i]), byKey(t, want[i]); !maps.Equal(got, want) {
				t.Fatalf("%s of %v:\n%v\nwant\n%v", paths[i], src[""], values[i], want)
			}
		}
	}
}

// byKey gives the counts by what is the same of equal values, and checks their order.
func byKey(t *testing.T, values []pipeline.FacetValue) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	for i, v := range values {
		if i > 0 && v.Count > values[i-1].Count {
			t.Fatalf("%v is not in order", values)
		}
		out[string(document.AppendKey(nil, v.Value, false))] = v.Count
	}
	return out
}
