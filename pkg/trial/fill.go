package trial

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// fill puts values in the place of ${…}, in all strings of v. A string that is nothing else becomes the value itself.
func (b *bench) fill(v any, path string) (out any, ok bool) {
	switch v := v.(type) {
	case string:
		return b.fillString(v, path)
	case bson.D:
		doc := make(bson.D, len(v))
		for i, e := range v {
			if doc[i].Value, ok = b.fill(e.Value, path+"."+e.Key); !ok {
				return nil, false
			}
			doc[i].Key = e.Key
		}
		return doc, true
	case bson.A:
		list := make(bson.A, len(v))
		for i := range v {
			if list[i], ok = b.fill(v[i], path+"["+strconv.Itoa(i)+"]"); !ok {
				return nil, false
			}
		}
		return list, true
	}
	return v, true
}

func (b *bench) fillString(s, path string) (any, bool) {
	if inner, ok := strings.CutPrefix(s, "${"); ok && strings.IndexByte(inner, '}') == len(inner)-1 {
		return b.variable(inner[:len(inner)-1], path)
	}
	return b.fillText(s, path, func(text string) string { return text })
}

// fillText puts values into a text, as escape writes them. $${ stands for ${.
func (b *bench) fillText(s, path string, escape func(string) string) (string, bool) {
	var out strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			out.WriteString(s)
			return out.String(), true
		}
		if i > 0 && s[i-1] == '$' {
			out.WriteString(s[:i-1] + "${")
			s = s[i+2:]
			continue
		}
		name, rest, closed := strings.Cut(s[i+2:], "}")
		if !closed {
			return "", b.fail(path, "", "${ without }; write $${ for the text ${")
		}
		v, ok := b.variable(name, path)
		if !ok {
			return "", false
		}
		out.WriteString(s[:i] + escape(textOf(v)))
		s = rest
	}
}

// variable gives the value at a path such as id or articles[0].id.
func (b *bench) variable(name, path string) (any, bool) {
	if v := at(b.vars, name); v != (missing{}) {
		return v, true
	}
	return nil, b.fail(path, "", fmt.Sprintf("${%s} has no value: a step before has to save it", name))
}

// at follows a path such as items[0].id.
func at(v any, path string) any {
	path = strings.ReplaceAll(strings.ReplaceAll(path, "[", "."), "]", "")
	// Get begins at an object, and what is asked may be a list.
	if found, ok := document.Get(bson.D{{Key: "v", Value: v}}, "v."+path); ok {
		return found
	}
	return missing{}
}

// textOf is a value inside of a text.
func textOf(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return show(v)
}

// target makes the URL of a request below the project's own.
func (b *bench) target(target, path string, query bson.D) (*url.URL, bool) {
	before, after, _ := strings.Cut(target, "?")
	before, ok := b.fillText(before, path, url.PathEscape)
	if !ok {
		return nil, false
	}
	after, ok = b.fillText(after, path, url.QueryEscape)
	if !ok {
		return nil, false
	}
	u, err := url.Parse(b.base() + before)
	if err != nil {
		return nil, b.fail(path, "", "is no path: "+err.Error())
	}
	given, err := url.ParseQuery(after)
	if err != nil {
		return nil, b.fail(path, "", "has a query that can't be read: "+err.Error())
	}
	for _, e := range query {
		v, ok := b.fill(e.Value, path)
		if !ok {
			return nil, false
		}
		given.Add(e.Key, textOf(v))
	}
	u.RawQuery = given.Encode()
	return u, true
}
