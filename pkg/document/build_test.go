package document_test

import (
	"bytes"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

func TestIDInFront(t *testing.T) {
	own, other := bson.E{Key: "_id", Value: 7}, bson.E{Key: "_id", Value: "other"}
	a, b := bson.E{Key: "a", Value: 1}, bson.E{Key: "b", Value: nil}
	nested := bson.E{Key: "c", Value: bson.D{a, own}}
	for name, c := range map[string]struct{ doc, idFirst, withOther bson.D }{
		"empty":       {bson.D{}, bson.D{}, bson.D{other}},
		"no _id":      {bson.D{a, b}, bson.D{a, b}, bson.D{other, a, b}},
		"_id alone":   {bson.D{own}, bson.D{own}, bson.D{other}},
		"_id first":   {bson.D{own, a}, bson.D{own, a}, bson.D{other, a}},
		"_id between": {bson.D{a, own, b}, bson.D{own, a, b}, bson.D{other, a, b}},
		"_id last":    {bson.D{a, own}, bson.D{own, a}, bson.D{other, a}},
		"_id inside":  {bson.D{nested, a}, bson.D{nested, a}, bson.D{other, nested, a}},
	} {
		doc := value(t, c.doc).Value
		before := bytes.Clone(doc)
		if got := document.IDFirst(doc); !bytes.Equal(got, value(t, c.idFirst).Value) {
			t.Errorf("%s: IDFirst gives %s", name, got)
		}
		if got := document.WithID(doc, value(t, "other")); !bytes.Equal(got, value(t, c.withOther).Value) {
			t.Errorf("%s: WithID gives %s", name, got)
		}
		if !bytes.Equal(doc, before) {
			t.Errorf("%s: the document has changed", name)
		}
	}
}

func TestAppendElementAndClose(t *testing.T) {
	out := append([]byte("before"), 0, 0, 0, 0)
	out = document.AppendElement(out, "a", value(t, "x"))
	out = document.AppendElement(out, []byte("b"), value(t, bson.A{1}))
	out = document.Close(out, len("before"))
	want := append([]byte("before"), value(t, bson.D{{Key: "a", Value: "x"}, {Key: "b", Value: bson.A{1}}}).Value...)
	if !bytes.Equal(out, want) {
		t.Errorf("%x, want %x", out, want)
	}
}

func TestOperatorName(t *testing.T) {
	for want, v := range map[string]any{
		"":   bson.D{{Key: "a", Value: "$b"}, {Key: "a$", Value: bson.A{1, bson.D{{Key: "", Value: nil}}}}},
		"$a": bson.D{{Key: "b", Value: 1}, {Key: "$a", Value: bson.D{{Key: "$b", Value: 1}}}},
		"$b": bson.A{1, bson.A{bson.D{{Key: "a", Value: bson.D{{Key: "$b", Value: 1}}}}}},
	} {
		if got := document.OperatorName(value(t, v)); string(got) != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
	if got := document.OperatorName(value(t, "$a")); got != nil {
		t.Errorf("a text: %q", got)
	}
}
