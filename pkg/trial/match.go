package trial

import (
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
)

// difference is a place where what is there is not what was expected.
type difference struct {
	path             string // below what was compared: .items[0].title
	message          string
	expected, actual string
}

// missing is what a member is that is not there.
type missing struct{}

// compare tells where got is not as wanted. An object has at least the members of want, or exactly those; a list has as
// many elements. An object of operators is a filter that the value has to match, and "$any" is anything that is there.
func compare(want, got any, exactly bool) []difference {
	c := comparison{exactly: exactly}
	c.value("", want, got)
	return c.found
}

type comparison struct {
	exactly bool
	found   []difference
}

func (c *comparison) differs(path, message string, want, got any) {
	c.found = append(c.found, difference{path, message, show(want), show(got)})
}

func (c *comparison) value(path string, want, got any) {
	if want == "$any" {
		if got == (missing{}) {
			c.differs(path, "is not there", want, got)
		}
		return
	}
	switch want := want.(type) {
	case bson.D:
		if isOperators(want) {
			c.operators(path, want, got)
			return
		}
		doc, ok := got.(bson.D)
		if !ok {
			c.differs(path, "is no object", want, got)
			return
		}
		c.object(path, want, doc)
	case bson.A:
		list, ok := got.(bson.A)
		if !ok {
			c.differs(path, "is no list", want, got)
			return
		}
		c.list(path, want, list)
	default:
		if got == (missing{}) {
			c.differs(path, "is not there", want, got)
		} else if !equal(want, got) {
			c.differs(path, "differs", want, got)
		}
	}
}

func (c *comparison) object(path string, want, got bson.D) {
	for _, e := range want {
		c.value(path+"."+e.Key, e.Value, member(got, e.Key))
	}
	if !c.exactly {
		return
	}
	for _, e := range got {
		if member(want, e.Key) == (missing{}) {
			c.differs(path+"."+e.Key, "should not be there", missing{}, e.Value)
		}
	}
}

func (c *comparison) list(path string, want, got bson.A) {
	for i := range min(len(want), len(got)) {
		c.value(path+"["+strconv.Itoa(i)+"]", want[i], got[i])
	}
	for i := len(got); i < len(want); i++ {
		c.differs(path+"["+strconv.Itoa(i)+"]", "is not there", want[i], missing{})
	}
	for i := len(want); i < len(got); i++ {
		c.differs(path+"["+strconv.Itoa(i)+"]", "should not be there", missing{}, got[i])
	}
}

// isOperators says that an object is a filter of a value.
func isOperators(doc bson.D) bool {
	return len(doc) > 0 && !slices.ContainsFunc(doc, func(e bson.E) bool { return !strings.HasPrefix(e.Key, "$") })
}

func (c *comparison) operators(path string, want bson.D, got any) {
	filter, err := mql.Compile(bson.D{{Key: "v", Value: want}})
	if err != nil {
		c.differs(path, "is compared with what is no filter: "+errs.From(err).Message, want, got)
		return
	}
	doc := bson.D{}
	if got != (missing{}) {
		doc = bson.D{{Key: "v", Value: got}}
	}
	raw, err := document.Marshal(doc)
	if err != nil || !filter.Match(raw) {
		c.differs(path, "does not match", want, got)
	}
}

func member(doc bson.D, key string) any {
	if v, ok := document.Member(doc, key); ok {
		return v
	}
	return missing{}
}

// equal compares plain values; numbers by what they are.
func equal(a, b any) bool {
	x, err1 := document.MarshalValue(a)
	y, err2 := document.MarshalValue(b)
	return err1 == nil && err2 == nil && document.Compare(x, y) == 0
}

// maxShown is how much of a value is shown.
const maxShown = 600

// show is a value as JSON.
func show(v any) string {
	if v == (missing{}) {
		return ""
	}
	raw, err := document.MarshalValue(v)
	if err != nil {
		return "?"
	}
	text := string(document.AppendJSONValue(nil, raw, nil))
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	return text
}
