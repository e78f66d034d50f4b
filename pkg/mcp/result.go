package mcp

import (
	"encoding/json"
	"fmt"
	"mime"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/document"
)

// result makes of an answer of REST the result of the tool. Who lacks a right of the tool is told that in the place of any refusal, and gets
// nothing, where REST would ask for less.
func (s *Server) result(t *tool, p *access.Principal, args arguments, res *Response) (json.RawMessage, *rpcError) {
	if res.Status == 403 || res.Status < 300 {
		if e := lacking(t, p, args); e != nil {
			return nil, e
		}
	}
	if res.Status >= 300 {
		return nil, problem(res)
	}
	data, truncated, e := s.data(t, res)
	if e != nil {
		return nil, e
	}
	out := make([]byte, 0, len(data)+len(data)/4+128)
	out = append(out, `{"content":[{"type":"text","text":"{\"data\":`...)
	out = document.AppendJSONText(out, data)
	if truncated {
		out = append(out, `,\"truncated\":true`...)
	}
	return append(out, `}"}]}`...), nil
}

// data is the body of an answer as JSON, and whether it was cut.
func (s *Server) data(t *tool, res *Response) (json.RawMessage, bool, *rpcError) {
	media, _, _ := mime.ParseMediaType(res.Type)
	switch {
	case len(res.Body) == 0:
		return json.RawMessage("null"), false, nil
	case media == api.MediaJSON && !t.anyAnswer, (media == api.MediaJSON || strings.HasSuffix(media, "+json")) && json.Valid(res.Body):
	case strings.HasPrefix(media, "text/") && utf8.Valid(res.Body): // an action may answer with anything
		return encode(map[string]string{"type": res.Type, "text": string(res.Body)}), false, nil
	default:
		return encode(map[string]any{"type": res.Type, "base64": res.Body}), false, nil
	}
	if t.described {
		cleaned, err := clean(res.Body, !t.document)
		if err != nil {
			return nil, false, errInternal()
		}
		res.Body = cleaned
	}
	if !t.list {
		return res.Body, false, nil
	}
	return s.cut(res.Body)
}

// cut shortens a list to what a result may have.
func (s *Server) cut(body json.RawMessage) (json.RawMessage, bool, *rpcError) {
	var list struct {
		Items   []json.RawMessage `json:"items"`
		Limit   int64             `json:"limit"`
		HasMore bool              `json:"hasMore"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return body, false, nil //nolint:nilerr // an aggregate may give a list of anything
	}
	most := s.opts.MaxResultItems
	if len(list.Items) <= most {
		return body, list.HasMore && list.Limit >= int64(most), nil
	}
	doc, err := readObject(body)
	if err != nil {
		return nil, false, errInternal()
	}
	doc["items"], doc["hasMore"] = encode(list.Items[:most]), json.RawMessage("true")
	delete(doc, "next") // it is behind the items that are left out
	return encode(doc), true, nil
}

// problem is the refusal of REST in the words of JSON-RPC: the number is the status, the message is its text.
func problem(res *Response) *rpcError {
	var p struct {
		Code      string          `json:"code"`
		Detail    string          `json:"detail"`
		Right     string          `json:"right"`
		RequestID string          `json:"requestId"`
		Errors    json.RawMessage `json:"errors"`
	}
	if err := json.Unmarshal(res.Body, &p); err != nil || p.Detail == "" { // an action answered so by itself
		p.Detail = "the request was answered with status " + strconv.Itoa(res.Status)
	}
	problems, err := clean(p.Errors, false) // texts of scripts and validators, which a model reads as if the service said them
	if err != nil {
		problems = nil // there are none
	}
	return &rpcError{Code: res.Status, Message: cleanText(every(p.Detail, p.Errors)), Data: &errorData{
		Status: res.Status, Code: cleanText(p.Code), Right: p.Right, Errors: problems, RetryAfter: res.RetryAfter, RequestID: p.RequestID,
	}}
}

// every is the text of a refusal with the problems that it only counts, the first ten at least. Many clients show models the message alone, and who is
// told of one problem at a time needs a call for each.
func every(detail string, problems json.RawMessage) string {
	var more int
	var all []struct{ Path, Message string }
	at := strings.LastIndex(detail, " (and ")
	if at < 0 || !strings.HasSuffix(detail, " more)") || json.Unmarshal(problems, &all) != nil {
		return detail
	}
	if _, err := fmt.Sscanf(detail[at:], " (and %d more)", &more); err != nil {
		return detail
	}
	texts := []string{detail[:at]}
	for ; len(texts) < min(len(all), 10); more-- {
		one := all[len(texts)]
		if one.Path != "" {
			one.Message = one.Path + ": " + one.Message
		}
		texts = append(texts, one.Message)
	}
	if more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

func errInternal() *rpcError { return &rpcError{Code: codeInternal, Message: "internal error"} }
