package pipeline_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/mqltest"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

var record = flag.Int("record", 0, "ask MongoDB for the cases of testdata/cases.txt and for so many random ones, and write testdata/pipelines.json")

const (
	casesFile  = "testdata/cases.txt" // lines of collections and of pipelines on them
	goldenFile = "testdata/pipelines.json"
)

// golden is collections, or a pipeline on those that came before and what MongoDB 6.0.5 made of it, in canonical Extended JSON.
type golden struct {
	Collections json.RawMessage `json:",omitempty"`
	Pipeline    json.RawMessage `json:",omitempty"`
	Results     json.RawMessage `json:",omitempty"`
	Unordered   bool            `json:",omitempty"`
	Error       int             `json:",omitempty"` // the server's code
}

// TestPipelinesAsRecorded checks answers of a server without one.
func TestPipelinesAsRecorded(t *testing.T) {
	if *record > 0 {
		recordCases(t, *record)
	}
	data, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	source := memory{}
	for line := range bytes.Lines(data) {
		var g golden
		if err := json.Unmarshal(line, &g); err != nil {
			t.Fatal(err)
		}
		if g.Collections != nil {
			source = collections(t, string(g.Collections))
			continue
		}
		want := outcome{code: g.Error}
		if g.Error == 0 {
			for _, v := range parse(t, string(g.Results)) {
				want.docs = append(want.docs, marshal(t, v))
			}
		}
		got, _ := here(t, parse(t, string(g.Pipeline)), source)
		if !agree(want, got, !g.Unordered) {
			t.Errorf("%s\n  server: %s\n  here:   %s", g.Pipeline, want, got)
		}
		checked++
	}
	if checked < 1000 {
		t.Errorf("only %d cases", checked)
	}
}

// collections reads documents by collection; a pipeline's own is c.
func collections(t *testing.T, text string) memory {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
		t.Fatal(err)
	}
	source := memory{}
	for _, e := range d {
		list, _ := e.Value.(bson.A)
		for _, v := range list {
			source[e.Key] = append(source[e.Key], marshal(t, v))
		}
	}
	source[""] = source["c"]
	return source
}

func marshal(t *testing.T, v any) bson.Raw {
	t.Helper()
	d, ok := v.(bson.D)
	if !ok {
		t.Fatalf("%v is no document", v)
	}
	raw, err := document.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// recorder asks a server and keeps what is the same here.
type recorder struct {
	server *mongotest.Conn
	source memory
	out    bytes.Buffer
}

const recordDB = "recorded"

func recordCases(t *testing.T, n int) {
	t.Helper()
	rec := &recorder{server: mongotest.Dial(t)}
	file, err := os.Open(casesFile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if line := lines.Text(); line[0] == '{' {
			rec.use(t, collections(t, line))
		} else {
			rec.keep(t, parse(t, line), true)
		}
	}
	r := rand.New(rand.NewPCG(20260101, 7))
	for i := range n {
		if i%40 == 0 {
			rec.use(t, randomCollections(t, r, 5))
		}
		stages, ordered := mqltest.Pipeline(r, []string{"d", "e"})
		rec.keep(t, stages, ordered)
	}
	if err := os.WriteFile(goldenFile, rec.out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// use gives the server and this package collections.
func (rec *recorder) use(t *testing.T, source memory) {
	t.Helper()
	rec.source = source
	all := bson.D{}
	for _, name := range []string{"c", "d", "e"} {
		fill(t, rec.server, recordDB, name, source[name])
		list := bson.A{}
		for _, doc := range source[name] {
			list = append(list, doc)
		}
		all = append(all, bson.E{Key: name, Value: list})
	}
	rec.line(t, golden{Collections: toJSON(t, all)})
}

// keep asks for a pipeline. What is long, or what a file can't tell, is left out.
func (rec *recorder) keep(t *testing.T, stages bson.A, ordered bool) {
	t.Helper()
	const longest = 1200
	text := listJSON(t, stages)
	stages = parse(t, string(text))
	got, sent := here(t, stages, rec.source)
	reply := there(t, rec.server.RunAll(t, recordDB, []bson.D{aggregate("c", sent)})[0])
	g := golden{Pipeline: text, Unordered: !ordered, Error: reply.code}
	if reply.code == 0 {
		list := bson.A{}
		for _, doc := range reply.docs {
			list = append(list, doc)
		}
		g.Results = listJSON(t, list)
	}
	if len(text)+len(g.Results) <= longest && agree(reply, got, ordered) {
		rec.line(t, g)
	}
}

func (rec *recorder) line(t *testing.T, g golden) {
	t.Helper()
	line, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	rec.out.Write(append(line, '\n'))
}

func toJSON(t *testing.T, d bson.D) json.RawMessage {
	t.Helper()
	data, err := bson.MarshalExtJSON(d, true, false)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func listJSON(t *testing.T, list bson.A) json.RawMessage {
	t.Helper()
	var g struct{ L json.RawMessage }
	if err := json.Unmarshal(toJSON(t, bson.D{{Key: "L", Value: list}}), &g); err != nil {
		t.Fatal(err)
	}
	return g.L
}
