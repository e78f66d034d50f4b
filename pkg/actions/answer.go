package actions

import (
	"mime"
	"net/http"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/operation"
)

// Answer is how the answer of an action goes out.
type Answer struct {
	Status int
	Type   string      // the media type; "" without a body
	Header http.Header // among answerHeaders
	Body   []byte
	JSON   bool // the body is JSON of ours
}

// answerHeaders lists the headers that a script may set.
func answerHeaders() []string {
	return []string{
		"Cache-Control", "Content-Disposition", "Content-Language", "Etag", "Expires", "Last-Modified", "Link", "Location", "Retry-After",
	}
}

// mayAnswer says whether a script may answer with a status. Refusals are errors: ctx.error makes them.
func mayAnswer(status int64) bool {
	switch status {
	case http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect:
		return true
	}
	return status >= 200 && status <= 299
}

const mediaJSON = "application/json"

// newAnswer makes the answer of what a script returned and of ctx.response. problem says what is wrong with them, for the
// log.
func newAnswer(result any, returned bool, response any) (a *Answer, problem string) {
	a = &Answer{Status: http.StatusOK, Header: http.Header{}}
	d, ok := response.(bson.D)
	if !ok {
		return nil, "ctx.response must be an object of status, type and headers"
	}
	for _, e := range d {
		switch e.Key {
		case "status":
			problem = a.setStatus(e.Value)
		case "type":
			problem = a.setType(e.Value)
		case "headers":
			problem = a.setHeaders(e.Value)
		default:
			problem = "ctx.response has status, type and headers, but no " + e.Key
		}
		if problem != "" {
			return nil, problem
		}
	}
	problem = a.setBody(result, returned)
	return a, problem
}

func (a *Answer) setStatus(v any) string {
	var n int64
	switch v := v.(type) {
	case int32:
		n = int64(v)
	case int64:
		n = v
	case float64:
		n = int64(v)
	}
	if !mayAnswer(n) {
		return "ctx.response.status must be 200 to 299, 302, 303 or 307; throw ctx.error(status, message) to refuse"
	}
	a.Status = int(n)
	return ""
}

func (a *Answer) setType(v any) string {
	if v == nil {
		return ""
	}
	text, _ := v.(string)
	media, _, err := mime.ParseMediaType(text)
	if err != nil || !strings.Contains(media, "/") || strings.HasPrefix(media, "multipart/") {
		return "ctx.response.type must be a media type such as text/csv"
	}
	a.Type = text
	return ""
}

func (a *Answer) setHeaders(v any) string {
	headers, ok := v.(bson.D)
	if !ok {
		return "ctx.response.headers must be an object"
	}
	for _, e := range headers {
		name := http.CanonicalHeaderKey(e.Key)
		text, isText := e.Value.(string)
		switch {
		case !slices.Contains(answerHeaders(), name):
			return "ctx.response.headers may have " + strings.Join(answerHeaders(), ", ") + ", but not " + e.Key
		case !isText || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
			return "ctx.response.headers: " + e.Key + " must be a text in one line"
		}
		a.Header.Set(name, text)
	}
	return ""
}

// setBody makes the body: of a type that the script names, its text or bytes as they are, else JSON.
func (a *Answer) setBody(result any, returned bool) string {
	if a.Status == http.StatusNoContent || a.Status == http.StatusResetContent {
		a.Type = ""
		if result != nil {
			return "with a ctx.response.status of 204 or 205, which have no body, an action returns nothing"
		}
		return ""
	}
	switch v := result.(type) {
	case string:
		if a.Type != "" && !isJSON(a.Type) {
			a.Body = []byte(v)
			return ""
		}
	case bson.Binary:
		if a.Type == "" {
			a.Type = "application/octet-stream"
		}
		a.Body = v.Data
		return ""
	}
	switch {
	case !returned:
		a.Type = ""
		if a.Status == http.StatusOK {
			a.Status = http.StatusNoContent
		}
		return ""
	case a.Type != "" && !isJSON(a.Type):
		return "with a ctx.response.type of its own, an action returns a string or a Uint8Array"
	}
	raw, err := document.MarshalValue(result)
	if err != nil {
		return "what it returned can't go out: " + err.Error()
	}
	if a.JSON = a.Type == ""; a.JSON {
		a.Type = mediaJSON
	}
	a.Body = document.AppendJSONValue(nil, raw, nil)
	return ""
}

func isJSON(media string) bool {
	media, _, _ = mime.ParseMediaType(media)
	return media == mediaJSON || strings.HasSuffix(media, "+json")
}

// AnswerOf gives the answer of a run that succeeded, as a sync call would have had it.
func AnswerOf(run *operation.Run) (*Answer, error) {
	doc, ok := run.Result.DocumentOK()
	if !ok {
		return nil, errNoResult
	}
	d, err := document.Unmarshal(doc)
	if err != nil {
		return nil, err
	}
	var result, response any
	returned := false
	for _, e := range d {
		switch e.Key {
		case "value":
			result = e.Value
		case "returned":
			returned = e.Value == true
		case "response":
			response = e.Value
		}
	}
	a, problem := newAnswer(result, returned, response)
	if problem != "" { // not possible: it was made before
		return nil, errNoResult
	}
	return a, nil
}

// ValueOf gives what a run returned; its Type is 0 for nothing, and for what goes out as another type than JSON.
func ValueOf(run *operation.Run) bson.RawValue {
	doc, ok := run.Result.DocumentOK()
	if !ok {
		return bson.RawValue{}
	}
	v := doc.Lookup("value")
	if _, bytes := doc.Lookup("response", "type").StringValueOK(); bytes || v.Type == bson.TypeBinary || v.Type == bson.TypeNull {
		return bson.RawValue{}
	}
	return v
}
