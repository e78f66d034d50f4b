package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// message is one JSON-RPC 2.0 message as it came.
type message struct {
	id     json.RawMessage // as it came; nil: it has none, and wants no answer
	method string
	params json.RawMessage // nil: it has none
	answer bool            // it answers a message that we would have sent
}

// object is a JSON object with its members as they came. Names are told apart by case, and none is there twice.
type object map[string]json.RawMessage

var (
	errNotJSON   = errors.New("the message is not JSON")
	errNotObject = errors.New("send one JSON object, and not several in a list")
	errTwice     = errors.New("a name is there twice in one object")
	errMany      = fmt.Errorf("an object has more than %d members", maxMembers)
)

// maxMembers is how many members an object has at most that is looked into here. A tool takes a dozen arguments; of a million, only the
// list takes hundreds of MB.
const maxMembers = 1000

// readObject reads the members of an object that stands by itself.
func readObject(data []byte) (object, error) {
	if !utf8.Valid(data) || !json.Valid(data) {
		return nil, errNotJSON
	}
	return members(data)
}

// members gives the members of an object that is known to be JSON. Go's own decoder would take names in any case, and the last of two; and
// what is inside of values is for those who take them.
func members(data []byte) (object, error) {
	s := scanner{data: data}
	if s.next() != '{' {
		return nil, errNotObject
	}
	out := object{}
	for s.at++; s.next() != '}'; {
		if s.next() == ',' {
			s.at++
		}
		name := text(s.value())
		s.next() // the colon
		s.at++
		value := s.value()
		if _, twice := out[name]; twice {
			return nil, errTwice
		}
		if len(out) == maxMembers {
			return nil, errMany
		}
		out[name] = value
	}
	return out, nil
}

// scanner goes through JSON that is valid.
type scanner struct {
	data []byte
	at   int
}

// next is the next byte that is no space.
func (s *scanner) next() byte {
	for ; ; s.at++ {
		switch c := s.data[s.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
}

// value passes over a value, and gives it.
func (s *scanner) value() json.RawMessage {
	first := s.next()
	start, level := s.at, 0
	for ; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; {
		case c == '"':
			for s.at++; s.data[s.at] != '"'; s.at++ {
				if s.data[s.at] == '\\' {
					s.at++
				}
			}
		case c == '{' || c == '[':
			level++
		case level > 0 && (c == '}' || c == ']'):
			level--
		case level == 0 && (c == ',' || c == '}' || c == ']' || c == ' ' || c == '\t' || c == '\r' || c == '\n'): // behind a number or a word
			return s.data[start:s.at]
		default:
			continue
		}
		if level == 0 && (first == '"' || first == '{' || first == '[') {
			s.at++
			return s.data[start:s.at]
		}
	}
	return s.data[start:s.at]
}

// readMessage reads a message. With an error, its id is set when that could be read.
func readMessage(data []byte) (message, *rpcError) {
	doc, err := readObject(data)
	switch {
	case errors.Is(err, errNotObject), errors.Is(err, errMany):
		return message{}, &rpcError{Code: codeInvalidRequest, Message: "invalid request", Data: &errorData{Detail: err.Error()}}
	case err != nil:
		return message{}, &rpcError{Code: codeParse, Message: "parse error", Data: &errorData{Detail: err.Error()}}
	}
	m := message{id: doc["id"], params: doc["params"]}
	if m.id != nil && m.id[0] != '"' && m.id[0] != '-' && (m.id[0] < '0' || m.id[0] > '9') {
		m.id = nil
		return m, invalidRequest("id must be a string or a number")
	}
	if string(doc["jsonrpc"]) != `"2.0"` {
		return m, invalidRequest(`jsonrpc must be "2.0"`)
	}
	if doc["method"] == nil && (doc["result"] != nil || doc["error"] != nil) {
		m.answer = true
		return m, nil
	}
	if doc["method"] == nil || doc["method"][0] != '"' {
		return m, invalidRequest("method must be a string")
	}
	m.method = text(doc["method"])
	if p := bytes.TrimSpace(m.params); len(p) > 0 && string(p) != "null" && p[0] != '{' {
		return m, &rpcError{Code: codeInvalidParams, Message: invalidParams, Data: &errorData{Detail: "params must be an object"}}
	}
	return m, nil
}

// text is a JSON string's own text; "" for any other value.
func text(raw json.RawMessage) string {
	if n := len(raw); n >= 2 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : n-1])
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// The codes of JSON-RPC, and the one of the interface for rights.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeNoRight        = -32003

	invalidParams = "invalid params"
)

// rpcError is the error member of an answer.
type rpcError struct {
	Code    int        `json:"code"`
	Message string     `json:"message"`
	Data    *errorData `json:"data,omitempty"`
}

// errorData is what a client may go by beside code and message.
type errorData struct {
	Status     int             `json:"status,omitempty"` // of the HTTP answer that REST gives
	Code       string          `json:"code,omitempty"`   // the slug of the refusal, such as "validation_failed"
	Detail     string          `json:"detail,omitempty"` // what to do about it, where the message is fixed
	Right      string          `json:"right,omitempty"`  // that is lacking
	Errors     json.RawMessage `json:"errors,omitempty"` // problems by place
	RetryAfter string          `json:"retryAfter,omitempty"`
	RequestID  string          `json:"requestId,omitempty"`
}

func invalidRequest(detail string) *rpcError {
	return &rpcError{Code: codeInvalidRequest, Message: "invalid request", Data: &errorData{Detail: detail}}
}

// badArgument is the refusal of arguments that no tool takes so. Many clients show models the message alone.
func badArgument(detail string) *rpcError {
	return &rpcError{Code: codeInvalidParams, Message: invalidParams + ": " + detail, Data: &errorData{Status: 400, Detail: detail}}
}

// refusal is one with a text of the interface.
func refusal(status int, text string) *rpcError {
	return &rpcError{Code: status, Message: text, Data: &errorData{Status: status}}
}

// envelope writes an answer. id is nil where the message's could not be read.
func envelope(id json.RawMessage, result json.RawMessage, e *rpcError) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	out := make([]byte, 0, len(id)+len(result)+64)
	out = append(append(out, `{"jsonrpc":"2.0","id":`...), id...)
	if e == nil {
		out = append(append(out, `,"result":`...), result...)
		return append(out, '}')
	}
	body, err := json.Marshal(e)
	if err != nil { // texts, numbers, and JSON that was read before
		body = []byte(`{"code":-32603,"message":"internal error"}`)
	}
	return append(append(append(out, `,"error":`...), body...), '}')
}
