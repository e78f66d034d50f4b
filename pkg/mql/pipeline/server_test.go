package pipeline_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/mqltest"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

var (
	cases = flag.Int("pipelines", 2000, "random pipelines to compare with MongoDB")
	seed  = flag.Uint64("pipelineseed", 1, "their seed; 0 takes one from the clock")
	most  = flag.Int("differences", 10, "how many differences to report")
)

const serverDB = "pipelines"

// memory is a Source of some documents.
type memory map[string][]bson.Raw

func (m memory) Find(_ context.Context, collection string, q pipeline.Query, fn func(bson.Raw) error) error {
	var found []bson.Raw
	for _, doc := range m[collection] {
		if q.Filter.Match(doc) {
			found = append(found, doc)
		}
	}
	for _, doc := range found {
		if _, err := q.Sort.AppendValues(nil, doc); err != nil {
			return err
		}
	}
	slices.SortStableFunc(found, q.Sort.Compare)
	found = found[min(int(q.Skip), len(found)):]
	if q.Limit > 0 {
		found = found[:min(int(q.Limit), len(found))]
	}
	for _, doc := range found {
		passed := bytes.Clone(doc)
		if err := fn(passed); err != nil {
			return err
		}
		clear(passed) // it was valid only during the call
	}
	return nil
}

func (m memory) Indexed(context.Context, string, string) bool { return false }

// outcome is results, or the code of an error.
type outcome struct {
	docs []bson.Raw
	code int
	text string
}

func (o outcome) String() string {
	if o.code != 0 {
		return fmt.Sprintf("error %d (%s)", o.code, o.text)
	}
	return fmt.Sprint(o.docs)
}

// TestPipelinesAsServer compares random pipelines with a MongoDB: their results to the byte, or the code of the error.
func TestPipelinesAsServer(t *testing.T) {
	server := mongotest.Dial(t)
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("-pipelines=%d -pipelineseed=%d", *cases, s)
	r := rand.New(rand.NewPCG(s, 1))
	const batch = 200
	total := outcomes{near: map[string]int{}}
	for done := 0; done < *cases && total.different < *most; done += batch {
		if done%(100*batch) == 0 {
			t.Logf("%d of %d", done, *cases)
		}
		runBatch(t, server, r, min(batch, *cases-done), &total)
	}
	t.Logf("%d agree: %d with results, %d without, %d errors; %d differ", total.results+total.empty+total.failures, total.results, total.empty,
		total.failures, total.different)
	for _, why := range slices.Sorted(maps.Keys(total.near)) {
		t.Logf("%d nearly: %s", total.near[why], why)
	}
	if *cases >= 2000 && (total.results < *cases/4 || total.failures < *cases/100) {
		t.Error("too few of the pipelines have results, or an error")
	}
}

type outcomes struct {
	results, empty, failures, different int
	near                                map[string]int // why
}

// excuse gives the reason of a difference that no test can do without; "" if there is none.
func excuse(stages bson.A, server, here outcome) string {
	text := fmt.Sprint(stages)
	switch {
	case strings.Contains(server.text, "Failed to optimize"):
		return "a server trips over its own rewriting of filters"
	case server.code == 4822806:
		return "a server trips over a projection of numbers as names below a list"
	case server.code == 6075901:
		return "a server trips over two groups by the whole document"
	case server.code != 0 && here.code == 0 && strings.Contains(text, "$facet") && strings.Contains(text, "$limit"):
		return "a server reads on for a $limit in a $facet"
	case server.code != 0 && here.code == 0 && len(here.docs) == 0 && strings.Contains(text, "$limit") && strings.Contains(text, "$skip"):
		return "a server computes documents that are all skipped behind a $limit"
	case server.code == 0 && here.code != 0 && strings.Contains(text, "$unionWith") && strings.Contains(text, "$lookup") && strings.Contains(text, "$limit"):
		return "a $lookup that fetches for many at once reads on for a $limit"
	case server.code == 0 && here.code == 40228 && strings.Contains(text, "$lookup"):
		return "a server filters first, and looks up less"
	case server.code == 0 && here.code == 0 && (strings.Contains(fmt.Sprintf("%#v", stages), "MaxKey{}") || strings.Contains(fmt.Sprintf("%#v", stages), "MinKey{}")):
		return "a server makes an object of the least and the greatest value"
	case server.code != 0 && here.code != 0 && strings.Contains(text, "$lookup"):
		return "which of two documents fails first, where a $lookup fetches for many at once"
	case server.code != 0 && here.code != 0 && strings.Contains(text, "$setWindowFields"):
		return "which fails first: what comes behind a partition, or the next one"
	case bothCollide(server, here):
		return "the fields of a projection are wrong in two ways"
	case server.code == 0 && here.code == 0 && equalValues(server, here) && strings.Contains(text, "$m"):
		return "which of equal numbers of two types is the least or the greatest"
	default:
		return ""
	}
}

// randomCollections makes c, d and e, each with less than most documents.
func randomCollections(t *testing.T, r *rand.Rand, most int) memory {
	t.Helper()
	source := memory{}
	for _, name := range []string{"c", "d", "e"} {
		for id := range r.IntN(most) {
			d := mqltest.Doc(r, int32(id))
			for strings.Contains(fmt.Sprintf("%T %#v", d, d), "Key{}") { // 6.0.5 gives an object for the greatest and least values
				d = mqltest.Doc(r, int32(id))
			}
			at := bson.DateTime(1577836800000 + int64(id)*int64(r.IntN(5)+13)*3600_000 + int64(id))
			d = append(d, bson.E{Key: "k", Value: int32(r.IntN(3))}, bson.E{Key: "t", Value: at})
			source[name] = append(source[name], marshal(t, d))
		}
	}
	source[""] = source["c"]
	return source
}

// fill makes a collection of a server hold documents and nothing else.
func fill(t *testing.T, server *mongotest.Conn, db, name string, docs []bson.Raw) {
	t.Helper()
	server.RunAll(t, db, []bson.D{{{Key: "drop", Value: name}}})
	if len(docs) == 0 {
		server.Run(t, db, bson.D{{Key: "create", Value: name}})
		return
	}
	server.Run(t, db, bson.D{{Key: "insert", Value: name}, {Key: "documents", Value: docs}})
}

func aggregate(collection string, stages any) bson.D {
	return bson.D{{Key: "aggregate", Value: collection}, {Key: "pipeline", Value: stages}, {Key: "cursor", Value: bson.D{{Key: "batchSize", Value: 100000}}}}
}

// made is a pipeline, with what came of it here.
type made struct {
	stages  bson.A
	ordered bool
	here    outcome
}

func runBatch(t *testing.T, server *mongotest.Conn, r *rand.Rand, n int, total *outcomes) {
	t.Helper()
	source := randomCollections(t, r, 9)
	for _, name := range []string{"c", "d", "e"} {
		fill(t, server, serverDB, name, source[name])
	}
	batch := make([]made, n)
	cmds := make([]bson.D, n)
	for i := range batch {
		m := &batch[i]
		m.stages, m.ordered = mqltest.Pipeline(r, []string{"d", "e"})
		var sent any
		m.here, sent = here(t, m.stages, source)
		cmds[i] = aggregate("c", sent)
	}
	for i, reply := range server.RunAll(t, serverDB, cmds) {
		m := &batch[i]
		got := there(t, reply)
		if agree(got, m.here, m.ordered) {
			total.count(got)
			continue
		}
		why := excuse(m.stages, got, m.here)
		if why == "" && got.code == 0 && m.here.code == 0 {
			why = bySteps(t, server, m, source)
		}
		if why != "" {
			total.near[why]++
			continue
		}
		total.different++
		if total.different <= *most {
			text, _ := bson.MarshalExtJSON(bson.D{{Key: "p", Value: m.stages}}, false, false)
			got, here := firstDifference(got, m.here)
			t.Errorf("%s\n  docs: %v\n  server: %s\n  here:   %s", text, source["c"], got, here)
		}
	}
}

// firstDifference leaves one document of each outcome.
func firstDifference(a, b outcome) (outcome, outcome) {
	if a.code != 0 || b.code != 0 || len(a.docs) != len(b.docs) {
		return a, b
	}
	for i := range a.docs {
		if !bytes.Equal(a.docs[i], b.docs[i]) {
			a.docs, b.docs = a.docs[i:i+1], b.docs[i:i+1]
			break
		}
	}
	return a, b
}

func (o *outcomes) count(got outcome) {
	switch {
	case got.code != 0:
		o.failures++
	case len(got.docs) == 0:
		o.empty++
	default:
		o.results++
	}
}

// equalValues says whether results differ only in the types of equal numbers.
func equalValues(a, b outcome) bool {
	compare := func(a, b bson.Raw) int {
		return document.Compare(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: a}, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: b})
	}
	sorted := func(o outcome) []bson.Raw { return slices.SortedFunc(slices.Values(o.docs), compare) }
	return slices.EqualFunc(sorted(a), sorted(b), func(a, b bson.Raw) bool { return compare(a, b) == 0 })
}

// bothCollide says whether both refuse the fields of a projection, which can be wrong in several ways.
func bothCollide(a, b outcome) bool {
	codes := []int{31249, 31250, 31252, 31253, 31254, 31310, 31325}
	return slices.Contains(codes, a.code) && slices.Contains(codes, b.code)
}

func here(t *testing.T, stages bson.A, source memory) (outcome, any) {
	t.Helper()
	p, err := pipeline.Compile(stages, pipeline.Options{Stages: pipeline.Scripts})
	if err != nil {
		return failure(t, err), stages
	}
	out := runOn(t, p, source)
	if other := runOn(t, p, indexed{source}); out.code == 0 && !agree(out, other, true) {
		t.Errorf("%v: without indexes %v, with them %v", stages, out, other)
	}
	return out, p.Raw()
}

// indexed is a memory that seems to have indexes.
type indexed struct{ memory }

func (indexed) Indexed(context.Context, string, string) bool { return true }

func runOn(t *testing.T, p *pipeline.Pipeline, source pipeline.Source) outcome {
	t.Helper()
	var out outcome
	err := p.Run(t.Context(), source, pipeline.Budget{}, func(doc bson.Raw) error {
		if !document.WellFormed(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}) {
			return errors.New("a damaged document")
		}
		out.docs = append(out.docs, bytes.Clone(doc))
		return nil
	})
	if err != nil {
		return failure(t, err)
	}
	return out
}

func failure(t *testing.T, err error) outcome {
	t.Helper()
	code := document.ServerCodeOf(err)
	if code == 0 {
		t.Errorf("an error without a server's code: %v", err)
	}
	return outcome{code: int(code), text: err.Error()}
}

// otherEngine has the codes of a server's newer engine for what its older one has others for.
func otherEngine(code int64) int64 {
	switch code {
	case 4934200: // no branch of a $switch
		return 40066
	case 4974201: // $add of what is no number
		return 16554
	default:
		return code
	}
}

func there(t *testing.T, reply bson.Raw) outcome {
	t.Helper()
	if ok, _ := reply.Lookup("ok").AsInt64OK(); ok != 1 {
		code, _ := reply.Lookup("code").AsInt64OK()
		code = otherEngine(code)
		text, _ := reply.Lookup("errmsg").StringValueOK()
		return outcome{code: int(code), text: text}
	}
	values, err := reply.Lookup("cursor", "firstBatch").Array().Values()
	if err != nil {
		t.Fatal(err)
	}
	var out outcome
	for _, v := range values {
		out.docs = append(out.docs, bson.Raw(v.Value))
	}
	return out
}

func agree(server, here outcome, ordered bool) bool {
	if server.code != here.code || len(server.docs) != len(here.docs) {
		return false
	}
	a, b := server.docs, here.docs
	if !ordered {
		order := func(a, b bson.Raw) int { return bytes.Compare(a, b) }
		slices.SortFunc(a, order)
		slices.SortFunc(b, order)
	}
	return slices.EqualFunc(a, b, func(a, b bson.Raw) bool { return bytes.Equal(a, b) })
}

// bySteps says why results differ from those of a server that does as here when it is asked otherwise; "" if it does not.
//   - Of its two engines, the one that pipelines begin with puts the field of a $lookup last, and the other one, which is that of
//     all else, where a field of that name was; and they join in different orders.
//   - It remembers where a field was that a stage has taken away, and puts a field of that name there if a later stage
//     computes one. It does not when documents are made anew between the stages.
//   - It keeps holes in lists, and groups by them. It does not when its stages run one by one.
func bySteps(t *testing.T, server *mongotest.Conn, m *made, source memory) string {
	t.Helper()
	for _, c := range []struct {
		why    string
		behind bool
		depth  int // that objects are made anew to; one, for a server shows nulls in some lists when they are
	}{
		{"a server's engines put the field of a $lookup in two places, and join in different orders", false, 6},
		{"a server remembers the place of a field that was taken away", true, 6},
		{"a server remembers the place of a field that was taken away", true, 1},
	} {
		reply := server.RunAll(t, serverDB, []bson.D{aggregate("c", renewed(m.stages, c.behind, c.depth))})[0]
		if agree(there(t, reply), m.here, m.ordered) {
			return c.why
		}
	}
	got := outcome{docs: source["c"]}
	const steps = "steps"
	for _, stage := range m.stages {
		docs := make([]bson.Raw, len(got.docs))
		for i, doc := range got.docs {
			docs[i] = marshal(t, bson.D{{Key: "_id", Value: int32(i)}, {Key: "doc", Value: doc}})
		}
		fill(t, server, serverDB, steps, docs)
		unwrap := bson.D{{Key: "$replaceWith", Value: "$doc"}}
		got = there(t, server.RunAll(t, serverDB, []bson.D{aggregate(steps, bson.A{bson.D{{Key: "$sort", Value: bson.D{{Key: "_id", Value: 1}}}}, unwrap, stage})})[0])
		if got.code != 0 {
			return ""
		}
	}
	if agree(got, m.here, m.ordered) {
		return "a server does not do what its stages do one by one"
	}
	return ""
}

// renewed has a server make documents anew before the first stage, in inner pipelines, too, and behind each.
func renewed(stages bson.A, behind bool, depth int) bson.A {
	renew := bson.D{{Key: "$replaceWith", Value: anew("$$ROOT", "r", depth)}}
	out := bson.A{renew}
	for _, stage := range stages {
		d, ok := stage.(bson.D)
		if !ok || len(d) != 1 {
			return stages
		}
		if operand, ok := d[0].Value.(bson.D); ok {
			inner := bson.D{}
			for _, e := range operand {
				if list, ok := e.Value.(bson.A); ok && (d[0].Key == "$facet" || e.Key == "pipeline") {
					e.Value = renewed(list, behind, depth)
				}
				inner = append(inner, e)
			}
			stage = bson.D{{Key: d[0].Key, Value: inner}}
		}
		out = append(out, stage)
		if behind {
			out = append(out, renew)
		}
	}
	return out
}

// anew is a value whose objects are made again, down to a depth.
func anew(value, name string, depth int) any {
	if depth == 0 {
		return value
	}
	item, field := name+"i", name+"f"
	is := func(kind string) bson.D {
		return bson.D{{Key: "$eq", Value: bson.A{bson.D{{Key: "$type", Value: value}}, kind}}}
	}
	each := func(input any, as string, in any) bson.D {
		return bson.D{{Key: "$map", Value: bson.D{{Key: "input", Value: input}, {Key: "as", Value: as}, {Key: "in", Value: in}}}}
	}
	pair := bson.D{{Key: "k", Value: "$$" + field + ".k"}, {Key: "v", Value: anew("$$"+field+".v", field, depth-1)}}
	object := bson.D{{Key: "$arrayToObject", Value: bson.A{each(bson.D{{Key: "$objectToArray", Value: value}}, field, pair)}}}
	list := each(value, item, anew("$$"+item, item, depth-1))
	return bson.D{{Key: "$cond", Value: bson.A{is("object"), object, bson.D{{Key: "$cond", Value: bson.A{is("array"), list, value}}}}}}
}
