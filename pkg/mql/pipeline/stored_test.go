package pipeline_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/mqltest"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

// otherNames has the fields of random documents stored by other names, down to some levels. The order of names stays, for
// objects are compared by it, too.
func otherNames(depth int, suffix string) *document.Names {
	stored, below := map[string]string{}, map[string]*document.Names{}
	for _, name := range []string{"a", "b", "c"} {
		stored[name] = name + suffix
		if depth > 0 {
			below[name] = otherNames(depth-1, suffix)
		}
	}
	return document.NewNames(stored, below)
}

// storedBy gives documents as they are stored.
func storedBy(source memory, names map[string]*document.Names) memory {
	out := memory{}
	for name, docs := range source {
		for _, doc := range docs {
			out[name] = append(out[name], names[name].Document(doc))
		}
	}
	out[""] = out["c"]
	return out
}

func storedPipeline(t *testing.T, stages bson.A, names map[string]*document.Names) *pipeline.Pipeline {
	t.Helper()
	p, err := pipeline.Compile(stages, pipeline.Options{Stages: pipeline.Scripts})
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Stored(names["c"], func(name string) *document.Names { return names[name] })
	if err != nil && (strings.Contains(err.Error(), "join by one of the fields") || strings.Contains(err.Error(), "without $expr")) {
		return nil
	}
	if err != nil {
		t.Fatalf("%v: %v", stages, err)
	}
	return s
}

// A pipeline gives the same whatever fields are stored as.
func TestStoredPipelines(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	names := map[string]*document.Names{"c": otherNames(2, "x"), "d": otherNames(2, "y")}
	results, failures := 0, 0
	for i := range 1000 {
		source := randomCollections(t, r, 8)
		stages, ordered := mqltest.Pipeline(r, []string{"c", "d", "e"})
		p, err := pipeline.Compile(stages, pipeline.Options{Stages: pipeline.Scripts})
		if err != nil {
			continue
		}
		s := storedPipeline(t, stages, names)
		if s == nil {
			continue
		}
		want, got := runOn(t, p, source), runOn(t, s, storedBy(source, names))
		switch {
		case want.code != 0 && got.code != 0: // which document fails first may differ
			failures++
		case !agree(want, got, ordered):
			a, b := firstDifference(want, got)
			t.Fatalf("%d: %v\n%v\nwant %v\ngot  %v", i, source["c"], stages, a, b)
		case len(want.docs) > 0:
			results++
		}
	}
	if results < 300 || failures < 5 {
		t.Errorf("only %d with results and %d errors", results, failures)
	}
}

// A server gives what the pipeline gives here.
func TestStoredPipelinesOnServer(t *testing.T) {
	server := mongotest.Dial(t)
	r := rand.New(rand.NewPCG(9, 10))
	names := map[string]*document.Names{"c": otherNames(1, "x"), "d": otherNames(1, "y")}
	var source memory
	results := 0
	for i := range 200 {
		if i%20 == 0 {
			source = memory{}
			for name, docs := range randomCollections(t, r, 8) {
				for _, doc := range docs {
					source[name] = append(source[name], withoutDigits(t, doc))
				}
			}
			source[""] = source["c"]
			stored := storedBy(source, names)
			for _, name := range []string{"c", "d", "e"} {
				fill(t, server, serverDB+"stored", name, stored[name])
				fill(t, server, serverDB+"read", name, source[name])
			}
		}
		stages, ordered := mqltest.Pipeline(r, []string{"c", "d", "e"})
		p, err := pipeline.Compile(stages, pipeline.Options{Stages: pipeline.Scripts})
		if err != nil {
			continue
		}
		s := storedPipeline(t, stages, names)
		if s == nil {
			continue
		}
		want := runOn(t, p, source)
		got := there(t, server.RunAll(t, serverDB+"stored", []bson.D{aggregate("c", s.Raw())})[0])
		if want.code != 0 || got.code != 0 || agree(want, got, ordered) {
			if want.code == 0 && len(got.docs) > 0 {
				results++
			}
			continue
		}
		if itself := there(t, server.RunAll(t, serverDB+"read", []bson.D{aggregate("c", p.Raw())})[0]); !agree(itself, got, ordered) {
			a, b := firstDifference(want, got)
			t.Errorf("%d: %v\nwant %v\ngot  %v\nof what is read, the server makes %v", i, stages, a, b, itself)
		}
	}
	if results < 50 {
		t.Errorf("only %d with results", results)
	}
}

// withoutDigits leaves out fields that could be positions: a server is not sent what they would need.
func withoutDigits(t *testing.T, doc bson.Raw) bson.Raw {
	t.Helper()
	d, err := document.Unmarshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return marshal(t, plainNames(d))
}

func plainNames(v any) any {
	switch v := v.(type) {
	case bson.D:
		out := bson.D{}
		for _, e := range v {
			if e.Key != "0" && e.Key != "1" {
				out = append(out, bson.E{Key: e.Key, Value: plainNames(e.Value)})
			}
		}
		return out
	case bson.A:
		out := bson.A{}
		for _, e := range v {
			if _, list := e.(bson.A); !list {
				out = append(out, plainNames(e))
			}
		}
		return out
	default:
		return v
	}
}

func TestStoredFacets(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(11, 12))
	for _, depth := range []int{0, 2} {
		names := otherNames(depth, "x")
		paths := []string{"a", "b", "a.b", "b.c", "none"}
		for range 100 {
			filter := mql.MustCompile(mqltest.Filter(r))
			plain, stored := memory{}, memory{}
			for id := range 20 {
				doc := marshal(t, mqltest.Doc(r, int32(id)))
				plain[""], stored[""] = append(plain[""], doc), append(stored[""], names.Document(doc))
			}
			p, err := pipeline.Facets(filter, paths, 1000)
			if err != nil {
				t.Fatal(err)
			}
			s, err := p.Stored(names, nil)
			if err != nil {
				t.Fatal(err)
			}
			wantDocuments, want := counted(t.Context(), t, plain, p)
			documents, values := counted(t.Context(), t, stored, s)
			if documents != wantDocuments {
				t.Fatalf("%d documents, want %d", documents, wantDocuments)
			}
			for i := range paths {
				if got, want := byKey(t, values[i]), byKey(t, want[i]); !maps.Equal(got, want) {
					t.Fatalf("%s: %v, want %v", paths[i], got, want)
				}
			}
		}
	}
}

// What comes first goes by what is stored, and only the fields that are needed are asked for.
func TestLeadingOfStoredPipelines(t *testing.T) {
	t.Parallel()
	author := document.NewNames(map[string]string{"full": "fullname"}, nil)
	names := map[string]*document.Names{"c": document.NewNames(map[string]string{"title": "name"}, map[string]*document.Names{"author": author})}
	for text, want := range map[string]string{
		`[{"$match": {"title": "x"}}, {"$sort": {"author.full": -1}}, {"$limit": 2}, {"$group": {"_id": "$title"}}]`: `{"name": {"$eq": "x"}} [{author.fullname true}] 0 2 [name]`,
		`[{"$match": {"$expr": {"$eq": ["$title", "$other"]}}}, {"$count": "n"}]`:                                    `{} [] 0 0 []`,
		`[{"$match": {"title": 1, "$expr": {"$eq": ["$author", 1]}}}, {"$match": {"name": 2}}, {"$count": "n"}]`:     `{"name": {"$eq": {"$numberInt":"1"}}} [] 0 0 []`,
	} {
		p := storedPipeline(t, parse(t, text), names)
		q := p.Leading()
		got := fmt.Sprint(describe(q), " ", q.Fields)
		if got != want {
			t.Errorf("%s\nasks for %s\nwant     %s", text, got, want)
		}
	}
}

// What is no name of a field is sent as it is.
func TestStoredExpressions(t *testing.T) {
	t.Parallel()
	names := map[string]*document.Names{"c": document.NewNames(map[string]string{"title": "name"}, nil)}
	for text, want := range map[string]string{
		`{"$eq": ["$title", {"$literal": "$title"}]}`:                          `{"$eq": ["$name",{"$literal": "$title"}]}`,
		`{"$eq": ["$$ROOT.title", "$$CURRENT.title.title"]}`:                   `{"$eq": ["$$ROOT.name","$$CURRENT.name.title"]}`,
		`{"$let": {"vars": {"t": "$title"}, "in": {"$eq": ["$$t", "title"]}}}`: `{"$let": {"vars": {"t": "$name"},"in": {"$eq": ["$$t","title"]}}}`,
	} {
		p := storedPipeline(t, bson.A{bson.D{{Key: "$match", Value: bson.D{{Key: "$expr", Value: parse(t, "["+text+"]")[0]}}}}}, names)
		raw := p.Raw()
		if !bytes.Contains([]byte(raw[0].String()), []byte(want)) {
			t.Errorf("%s is sent as %v", text, raw)
		}
	}
}

// However deep inside others a field is that was renamed, as far as configs take that, a server can be sent its names.
func TestDeepNames(t *testing.T) {
	server := mongotest.Dial(t)
	var names *document.Names
	inner := any("x")
	for _, name := range []string{"d", "c", "b", "a"} {
		names = document.NewNames(map[string]string{name: name + "old", "x": "y"}, map[string]*document.Names{name: names, "x": names})
		inner = bson.A{bson.D{{Key: name, Value: inner}}}
	}
	names = names.Within("_i18n")
	list, _ := inner.(bson.A)
	own, _ := list[0].(bson.D)
	doc := marshal(t, append(bson.D{{Key: "_id", Value: int32(1)}}, append(own, bson.E{Key: "_i18n", Value: bson.D{{Key: "de", Value: own}}})...))
	fill(t, server, serverDB+"deep", "c", []bson.Raw{names.Document(doc)})
	p := storedPipeline(t, bson.A{bson.D{{Key: "$match", Value: bson.D{{Key: "a.b.c.d", Value: "x"}}}}}, map[string]*document.Names{"c": names})
	got := there(t, server.RunAll(t, serverDB+"deep", []bson.D{aggregate("c", p.Raw())})[0])
	if len(got.docs) != 1 || !bytes.Equal(got.docs[0], doc) {
		t.Errorf("%v, want %v", got, doc)
	}
}
