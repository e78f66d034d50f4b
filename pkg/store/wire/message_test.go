package wire_test

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store/wire"
)

// raw is a document in bytes.
func raw(t testing.TB, json string) bson.Raw {
	t.Helper()
	b, err := bson.Marshal(object(t, json))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// frame makes a message of an operation and what it holds.
func frame(op uint32, payload ...[]byte) []byte {
	b := append([]byte(nil), make([]byte, 16)...)
	for _, p := range payload {
		b = append(b, p...)
	}
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	binary.LittleEndian.PutUint32(b[12:], op)
	return b
}

func length(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }

func deep(levels int) bson.Raw {
	d := bson.D{}
	for range levels {
		d = bson.D{{Key: "a", Value: d}}
	}
	b, _ := bson.Marshal(d)
	return b
}

func TestMessages(t *testing.T) {
	t.Parallel()
	const msg, query, limit = 2013, 2004, 10_000
	ping := raw(t, `{"ping":1}`)
	none := length(0)
	sum := wire.Request(ping, 1)
	wrong := slices.Clone(sum)
	wrong[len(wrong)-1]++
	short := slices.Clone(ping)
	binary.LittleEndian.PutUint32(short, 4)
	for _, c := range []struct {
		name   string
		data   []byte
		beside int
		bad    string // "": it is good; "eof": cut off
	}{
		{name: "a body", data: frame(msg, none, []byte{0}, ping)},
		{name: "a checksum", data: sum},
		{name: "a wrong checksum", data: wrong, bad: "checksum"},
		{name: "a sequence", data: frame(msg, none, []byte{0}, ping, []byte{1}, length(uint32(4+2+2*len(ping))), []byte("d\x00"), ping, ping), beside: 2},
		{name: "a sequence first", data: frame(msg, none, []byte{1}, length(uint32(4+2+len(ping))), []byte("d\x00"), ping, []byte{0}, ping), beside: 1},
		{name: "a query", data: frame(query, none, []byte("admin.$cmd\x00"), none, length(1), ping)},
		{name: "a query of a collection", data: frame(query, none, []byte("test.things\x00"), none, length(1), ping), bad: "before OP_MSG"},
		{name: "a query without a document", data: frame(query, none, []byte("admin.$cmd\x00"), none, length(1)), bad: "cut off"},
		{name: "nothing", data: frame(msg), bad: "no flags"},
		{name: "no body", data: frame(msg, none), bad: "no body"},
		{name: "two bodies", data: frame(msg, none, []byte{0}, ping, []byte{0}, ping), bad: "two bodies"},
		{name: "an unknown section", data: frame(msg, none, []byte{2}, ping), bad: "section"},
		{name: "an unknown flag", data: frame(msg, length(4), []byte{0}, ping), bad: "flags"},
		{name: "an optional flag", data: frame(msg, length(1<<20), []byte{0}, ping)},
		{name: "another operation", data: frame(2012, none, []byte{0}, ping), bad: "operation"},
		{name: "a sequence beyond its message", data: frame(msg, none, []byte{0}, ping, []byte{1}, length(1000), []byte("d\x00")), bad: "sequence"},
		{name: "a sequence without a name", data: frame(msg, none, []byte{0}, ping, []byte{1}, length(6), []byte("dd")), bad: "name"},
		{name: "a document that is too short", data: frame(msg, none, []byte{0}, short), bad: "document"},
		{name: "a document beyond its message", data: frame(msg, none, []byte{0}, length(100), []byte{0}), bad: "document"},
		{name: "a deep document", data: frame(msg, none, []byte{0}, deep(100))},
		{name: "too deep a document", data: frame(msg, none, []byte{0}, deep(500)), bad: "too deep"},
		{name: "a length below that of the header", data: length(15), bad: "eof"},
		{name: "a short header", data: append(length(15), make([]byte, 12)...), bad: "length"},
		{name: "a negative length", data: append(length(1<<31+5), make([]byte, 12)...), bad: "length"},
		{name: "too long", data: append(length(limit+1), make([]byte, 12)...), bad: "length"},
		{name: "TLS", data: []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03-----"), bad: "leave tls=true out"},
		{name: "as long as TLS begins", data: append(length(0x0316), make([]byte, 12)...), bad: "eof"},
		{name: "half a message", data: frame(msg, none, []byte{0}, ping)[:25], bad: "eof"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			body, beside, err := wire.ParseMessage(c.data, limit)
			switch {
			case c.bad == "" && (err != nil || len(body) == 0 || beside != c.beside):
				t.Errorf("%v, %d beside, %v", body, beside, err)
			case c.bad == "eof" && !errors.Is(err, io.ErrUnexpectedEOF):
				t.Errorf("%v, want an end", err)
			case c.bad != "" && c.bad != "eof" && (err == nil || !strings.Contains(err.Error(), c.bad)):
				t.Errorf("%v, want one about %q", err, c.bad)
			}
		})
	}
}

func FuzzMessage(f *testing.F) {
	ping, _ := bson.Marshal(bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}})
	f.Add(frame(2013, length(0), []byte{0}, ping))
	f.Add(wire.Request(ping, 1))
	f.Add(frame(2013, length(0), []byte{0}, ping, []byte{1}, length(uint32(6+len(ping))), []byte("d\x00"), ping))
	f.Add(frame(2004, length(0), []byte("admin.$cmd\x00"), length(0), length(1), ping))
	f.Fuzz(func(t *testing.T, data []byte) {
		body, _, err := wire.ParseMessage(data, 1<<20)
		if err != nil {
			return
		}
		again, _, err := wire.ParseMessage(wire.Request(body, 1), 1<<20)
		if err != nil || string(again) != string(body) {
			t.Errorf("%x is not read again: %v", body, err)
		}
	})
}

// FuzzCommand has a server run whatever comes as a command: it answers, and lives.
func FuzzCommand(f *testing.F) {
	for _, c := range []string{
		`{"find":"things","filter":{"a":1},"sort":{"a":1},"limit":2,"$db":"test"}`,
		`{"insert":"things","documents":[{"_id":1}],"$db":"test"}`,
		`{"update":"things","updates":[{"q":{},"u":{"$set":{"a":1}},"multi":true}],"$db":"test"}`,
		`{"delete":"things","deletes":[{"q":{},"limit":0}],"$db":"test"}`,
		`{"findAndModify":"things","query":{},"update":{"$inc":{"a":1}},"new":true,"$db":"test"}`,
		`{"aggregate":"things","pipeline":[{"$match":{}},{"$group":{"_id":1,"n":{"$sum":1}}}],"cursor":{},"$db":"test"}`,
		`{"createIndexes":"things","indexes":[{"key":{"a":1},"name":"a_1"}],"$db":"test"}`,
		`{"getMore":{"$numberLong":"1"},"collection":"things","$db":"test"}`,
		`{"explain":{"find":"things"},"$db":"test"}`,
		`{"distinct":"things","key":"a","$db":"test"}`,
		`{"hello":1,"$db":"admin"}`,
		`{"aggregate":"things","pipeline":[{"$lookup":{"from":"others","let":{"a":"$a"},"pipeline":[{"$match":{"$expr":{"$eq":["$b","$$a"]}}}],"as":"o"}}],"let":{"x":1},"cursor":{},"$db":"test"}`,
		`{"aggregate":1,"pipeline":[{"$documents":[{"a":1}]},{"$sort":{"a":1}}],"cursor":{},"$db":"test"}`,
		`{"aggregate":"things","pipeline":[{"$merge":{"into":"others","whenMatched":[{"$set":{"a":1}}]}}],"cursor":{},"$db":"test"}`,
		`{"aggregate":"things","pipeline":[{"$out":"others"}],"cursor":{},"$db":"test"}`,
		`{"aggregate":"things","pipeline":[{"$changeStream":{"fullDocument":"updateLookup"}},{"$project":{"a":1}}],"cursor":{},"$db":"test"}`,
		`{"update":"things","updates":[{"q":{"$expr":{"$gt":["$a",1]}},"u":[{"$set":{"a":{"$add":["$a","$$n"]}}}],"multi":true,"upsert":true,"c":{"n":1}}],"let":{"m":2},"$db":"test"}`,
		`{"find":"things","filter":{"$or":[{"$expr":{"$eq":["$a",1]}},{"b":1}]},"projection":{"x":{"$add":["$a",1]}},"$db":"test"}`,
		`{"explain":{"aggregate":"things","pipeline":[{"$match":{"a":1}}],"cursor":{}},"$db":"test"}`,
	} {
		f.Add([]byte(raw(f, c)))
	}
	s := serve(f, nil)
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, _, err := wire.ParseMessage(wire.Request(data, 0), 1<<20); err != nil {
			return // nothing else comes so far
		}
		reply := s.Answer(t.Context(), data)
		out, err := bson.Marshal(reply)
		if err != nil {
			t.Fatalf("%v: %v", bson.Raw(data), err)
		}
		if code, _ := bson.Raw(out).Lookup("code").AsInt64OK(); code == 1 {
			t.Errorf("%v: %v", bson.Raw(data), reply)
		}
	})
}
