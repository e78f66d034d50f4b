package document_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// stamp is an Inlay that shows where it stands.
type stamp string

func (s stamp) AppendJSON(dst []byte, v bson.RawValue) []byte {
	return append(dst, `"`+string(s)+" "+v.Type.String()+`"`...)
}

func (s stamp) AppendElement(dst []byte, name string, v bson.RawValue) []byte {
	_, text, _ := bson.MarshalValue(string(s) + " " + v.Type.String())
	return document.AppendElement(dst, name, bson.RawValue{Type: bson.TypeString, Value: text})
}

// A view shows what is in the place of values both as JSON and as a document, as far as it shows the values.
func TestInlay(t *testing.T) {
	raw, err := document.Marshal(bson.D{
		{Key: "_id", Value: int64(1)},
		{Key: "a", Value: "x"},
		{Key: "list", Value: bson.A{bson.D{{Key: "p", Value: int64(1)}, {Key: "q", Value: int64(2)}}, "text", bson.D{{Key: "q", Value: int64(3)}}}},
		{Key: "in", Value: bson.D{{Key: "p", Value: bson.A{}}, {Key: "secret", Value: int64(4)}}},
		{Key: "added", Value: int64(5)},
	})
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]document.Inlay{"a": stamp("A"), "list.p": stamp("L"), "in.p": stamp("I"), "none": stamp("N"), "in.secret": stamp("S")}
	extra := []document.Extra{{Name: "added", With: stamp("E")}}
	for _, tt := range []struct {
		include, exclude []string
		want             string
	}{
		{nil, nil, `{"id":1,"a":"A string","list":[{"p":"L 64-bit integer","q":2},"text",{"q":3}],"in":{"p":"I array"},"added":"E embedded document"}`},
		{[]string{"a"}, nil, `{"id":1,"a":"A string","added":"E embedded document"}`},
		{[]string{"list.p"}, nil, `{"id":1,"list":[{"p":"L 64-bit integer"},{}],"added":"E embedded document"}`},
		{nil, []string{"a", "list", "in.p"}, `{"id":1,"in":{},"added":"E embedded document"}`},
	} {
		v, err := document.NewView(tt.include, tt.exclude, document.NewPathSet("in.secret"))
		if err != nil {
			t.Fatal(err)
		}
		v = v.With(places, extra)
		if got := string(document.AppendJSON(nil, raw, v)); got != tt.want {
			t.Errorf("%v %v\ngot  %s\nwant %s", tt.include, tt.exclude, got, tt.want)
		}
		if got := string(document.AppendJSON(nil, v.Apply(raw), nil)); got != tt.want {
			t.Errorf("%v %v as a document\ngot  %s\nwant %s", tt.include, tt.exclude, got, tt.want)
		}
	}
	var everything *document.View
	if got, want := string(document.AppendJSON(nil, raw, everything.With(nil, extra))), `{"id":1,"a":"x","list":[{"p":1,"q":2},"text",{"q":3}],"in":{"p":[],"secret":4},"added":"E embedded document"}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
