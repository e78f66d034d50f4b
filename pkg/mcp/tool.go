package mcp

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/api"
)

// tool is one tool: what it is called with, and which request of the REST API it is.
type tool struct {
	name   string
	doc    string // for agents; it names no project's data
	params []param
	// missing has the interface's text for a parameter that is not there, by its name, where it has one of its own.
	missing map[string]string

	// rights are what a caller needs for a call: the scopes of the interface. REST asks for the same or for less.
	rights func(a arguments) []string
	// request says which request a call is, or why it is none.
	request func(a arguments) (*Request, *rpcError)
	// answer, if set, makes the answer in the place of request, from several of them.
	answer func(s *Server, c *call) (*Response, *rpcError)

	writes      bool // it changes something
	destructive bool // what it changes may be lost
	list        bool // its answer is a list, of which there may be more than MaxResultItems
	described   bool // its answer has texts of a config, that are for agents to read
	document    bool // the same, and none of it is meta: what is called so there is a field of records
	admin       bool // it is hidden unless AllowAdminActions
	restOnly    bool // it does nothing, and request tells where to do it
	anyAnswer   bool // what answers is a project's own: that it is called JSON doesn't make it that
}

// takes names the parameters of a tool, for who has mistaken one.
func (t *tool) takes() string {
	if len(t.params) == 0 {
		return "no arguments"
	}
	names := make([]string, len(t.params))
	for i, p := range t.params {
		names[i] = p.name
	}
	return strings.Join(names, ", ")
}

// needed refuses a call without an argument that it needs.
func (t *tool) needed(a arguments) *rpcError {
	lacks := func(name string) bool {
		return !a.has(name) && slices.ContainsFunc(t.params, func(p param) bool { return p.name == name && p.required })
	}
	if (lacks("namespace") || lacks("collection")) && slices.ContainsFunc(t.params, func(p param) bool { return p.name == "collection" && p.required }) {
		return refusal(400, "namespace and collection are required")
	}
	for _, p := range t.params {
		if !lacks(p.name) {
			continue
		}
		if text := t.missing[p.name]; text != "" {
			return refusal(400, text)
		}
		e := badArgument(p.name + " is required")
		e.Message = invalidParams // the interface's text, to the letter
		return e
	}
	return nil
}

// restOnlyMark is in the description of each tool that does nothing.
const restOnlyMark = "REST-only in this phase"

// described tells clients of a tool.
type describedTool struct {
	Name        string      `json:"name"`
	Description string      `json:"description"`
	InputSchema inputSchema `json:"inputSchema"`
	Annotations annotations `json:"annotations"`
}

type inputSchema struct {
	Type                 string                    `json:"type"`
	Properties           map[string]map[string]any `json:"properties"`
	Required             []string                  `json:"required,omitempty"`
	AdditionalProperties bool                      `json:"additionalProperties"`
}

// annotations are hints of the protocol: what a client may do without asking.
type annotations struct {
	ReadOnly    bool `json:"readOnlyHint"`
	Destructive bool `json:"destructiveHint"`
	OpenWorld   bool `json:"openWorldHint"`
}

func (t *tool) describe() describedTool {
	d := describedTool{
		Name: t.name, Description: t.doc,
		InputSchema: inputSchema{Type: "object", Properties: map[string]map[string]any{}},
		Annotations: annotations{ReadOnly: !t.writes, Destructive: t.destructive},
	}
	for _, p := range t.params {
		d.InputSchema.Properties[p.name] = p.schema()
		if p.required {
			d.InputSchema.Required = append(d.InputSchema.Required, p.name)
		}
	}
	return d
}

// Request is a request of the REST API.
type Request struct {
	Method string
	Path   string // escaped, with the API's prefix
	Query  url.Values
	Extra  url.Values // parameters that the collection has to declare in meta.query, which hooks read; nil: the tool takes none
	Body   json.RawMessage
	IfRev  string // an ETag that the record must have; "": any
}

// Response is the answer to a Request.
type Response struct {
	Status     int
	Type       string // the media type of Body
	RetryAfter string
	Body       []byte
}

// get is a read of a route, whose values are those of its path.
func get(route string, values ...string) *Request {
	return &Request{Method: "GET", Path: path(route, values...), Query: url.Values{}}
}

// path fills in a route. A value stays one segment that is no word of a route, such as _count, whatever it is.
func path(route string, values ...string) string {
	var b strings.Builder
	b.WriteString(api.Prefix)
	for _, v := range values {
		open, end := strings.IndexByte(route, '{'), strings.IndexByte(route, '}')
		b.WriteString(route[:open])
		if v = url.PathEscape(v); strings.HasPrefix(v, "_") {
			v = "%5F" + v[1:]
		}
		b.WriteString(v)
		route = route[end+1:]
	}
	b.WriteString(route)
	return b.String()
}
