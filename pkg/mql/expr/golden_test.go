package expr_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/mqltest"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

var record = flag.Int("record", 0, "ask MongoDB for so many cases and write them to testdata/expressions.json")

const goldenFile = "testdata/expressions.json"

// golden is an expression and what MongoDB 6.0.5 made of it, in canonical Extended JSON.
type golden struct {
	Expr  json.RawMessage
	Doc   json.RawMessage
	Value json.RawMessage `json:",omitempty"` // an object without v: it is missing
	Error int             `json:",omitempty"` // the server's code
}

// TestExpressionsAsRecorded checks answers of a server without one.
func TestExpressionsAsRecorded(t *testing.T) {
	if *record > 0 {
		recordCases(t, *record)
	}
	data, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	if len(lines) < 2000 {
		t.Fatalf("only %d cases", len(lines))
	}
	for _, line := range lines {
		var c golden
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		want := outcome{code: c.Error}
		if c.Error == 0 {
			v, _ := document.Field(raw(t, string(c.Value)), "v")
			want.values = []bson.RawValue{v}
		}
		doc, ok := parse(t, string(c.Doc)).(bson.D)
		if !ok {
			t.Fatalf("%s is no document", c.Doc)
		}
		got, _ := here(t, parse(t, string(c.Expr)), []bson.D{doc})
		if agree(want, got, false) != same {
			t.Errorf("%s @@ %s\n  server: %s\n  here:   %s", c.Expr, c.Doc, want, got)
		}
	}
}

func recordCases(t *testing.T, n int) {
	t.Helper()
	server := mongotest.Dial(t)
	r := rand.New(rand.NewPCG(20260101, 7))
	names := mqltest.Operators("")
	var out bytes.Buffer
	for n > 0 {
		e := mqltest.Expression(r, names)
		doc := usedFields(t, e, mqltest.ExpressionDoc(r, int32(1)))
		c := &expression{expr: e, docs: []bson.D{doc}}
		got, raw := here(t, e, c.docs)
		c.outcome = got
		reply := there(t, server.RunAll(t, "expressions", []bson.D{aggregate(raw, c.docs)})[0])
		if isInexact(e) || agree(reply, got, false) != same || len(toJSON(t, e)) > 1500 || deliberate(c, reply) != "" {
			continue
		}
		g := golden{Expr: toJSON(t, e), Doc: toJSON(t, doc), Error: reply.code}
		if reply.code == 0 {
			v := bson.D{}
			if reply.values[0].Type != 0 {
				v = bson.D{{Key: "v", Value: reply.values[0]}}
			}
			g.Value = toJSON(t, v)
		}
		line, err := json.Marshal(g)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(line, '\n'))
		n--
	}
	if err := os.WriteFile(goldenFile, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func usedFields(t *testing.T, e any, doc bson.D) bson.D {
	t.Helper()
	text := string(toJSON(t, e))
	used := bson.D{}
	for _, f := range doc {
		if strings.Contains(text, "$"+f.Key) {
			used = append(used, f)
		}
	}
	return used
}

func toJSON(t *testing.T, v any) json.RawMessage {
	t.Helper()
	d, ok := v.(bson.D)
	if !ok {
		t.Fatalf("%v is no object", v)
	}
	data, err := bson.MarshalExtJSON(d, true, false)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
