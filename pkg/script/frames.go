package script

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

// What the service and a worker process tell each other: frames, each the length in four bytes and a document.
//
//	service -> worker  run     begin a run; one at a time
//	                   compile compile a script in place of a run, and call read for its files
//	                   answer  of a call, by its number
//	                   stop    end the run
//	worker -> service  call    ask the Host
//	                   log     a line
//	                   done    the run's result or error

// maxFrame bounds a frame: a result is at most Limits.MaxResult, but its Out members come beside it.
const maxFrame = 64 << 20

// errFrame is a frame that is not one: the other side is not what it should be.
var errFrame = errors.New("damaged frame")

// readFrame reads one frame. At the end of the stream it is io.EOF.
func readFrame(r *bufio.Reader) (bson.Raw, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n < 5 || n > maxFrame {
		return nil, errFrame
	}
	var doc []byte
	for len(doc) < int(n) { // in parts: the length alone allocates nothing
		part := make([]byte, min(int(n)-len(doc), 1<<20))
		if _, err := io.ReadFull(r, part); err != nil {
			return nil, io.ErrUnexpectedEOF
		}
		doc = append(doc, part...)
	}
	if !document.WellFormed(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}) {
		return nil, errFrame
	}
	return doc, nil
}

// frameWriter writes frames, whole, from several goroutines.
type frameWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (f *frameWriter) write(doc bson.D) error {
	raw, err := bson.Marshal(doc)
	if err != nil {
		return fmt.Errorf("encode a frame: %w", err)
	}
	if len(raw) > maxFrame {
		return fmt.Errorf("a frame of %d bytes is too large", len(raw))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	buf := binary.LittleEndian.AppendUint32(make([]byte, 0, len(raw)+4), uint32(len(raw))) //nolint:gosec // at most maxFrame
	_, err = f.w.Write(append(buf, raw...))
	return err
}

// field reads a member of a frame; what is missing or of another type is the zero value.
func field[T any](doc bson.Raw, name string) T {
	var zero T
	v, ok := document.Field(doc, name)
	if !ok {
		return zero
	}
	if t, ok := document.Decode(v).(T); ok {
		return t
	}
	return zero
}

// rawField reads a member as it is.
func rawField(doc bson.Raw, name string) bson.RawValue {
	v, _ := document.Field(doc, name)
	return v
}

func items(v bson.RawValue) []bson.RawValue {
	var list []bson.RawValue
	if v.Type == bson.TypeArray {
		for it := document.NewIter(v.Value); it.Next(); {
			list = append(list, it.Value())
		}
	}
	return list
}

// membersFrame encodes members of ctx.
func membersFrame(members []Member) bson.A {
	list := make(bson.A, len(members))
	for i, m := range members {
		list[i] = bson.D{{Key: "n", Value: m.Name}, {Key: "v", Value: m.value()}, {Key: "o", Value: m.Out}}
	}
	return list
}

func framedMembers(v bson.RawValue) []Member {
	var members []Member
	for _, item := range items(v) {
		doc := bson.Raw(item.Value)
		members = append(members, Member{Name: field[string](doc, "n"), Value: rawField(doc, "v"), Out: field[bool](doc, "o")})
	}
	return members
}

// fieldsFrame encodes problems by place.
func fieldsFrame(fields []errs.FieldError) bson.A {
	list := make(bson.A, len(fields))
	for i, f := range fields {
		list[i] = bson.D{{Key: "path", Value: f.Path}, {Key: "rule", Value: f.Rule}, {Key: "message", Value: f.Message}}
	}
	return list
}

func framedFields(v bson.RawValue) []errs.FieldError {
	var fields []errs.FieldError
	for _, item := range items(v) {
		doc := bson.Raw(item.Value)
		fields = append(fields, errs.FieldError{Path: field[string](doc, "path"), Rule: field[string](doc, "rule"), Message: field[string](doc, "message")})
	}
	return fields
}

// errorFrame encodes what a script may see of an error of the Host.
func errorFrame(err error) bson.D {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || e.Kind == errs.Internal {
		e = &errs.Error{Kind: errs.Internal, Code: "internal", Message: "internal error"}
	}
	return bson.D{{Key: "kind", Value: int32(e.Kind)}, {Key: "code", Value: e.Code}, {Key: "message", Value: e.Message}, {Key: "fields", Value: fieldsFrame(e.Fields)}}
}

func framedError(doc bson.Raw) *errs.Error {
	return &errs.Error{
		Kind: errs.Kind(field[int32](doc, "kind")), Code: field[string](doc, "code"), Message: field[string](doc, "message"), //nolint:gosec // it was one
		Fields: framedFields(rawField(doc, "fields")),
	}
}

// outcomeFrame encodes how a run ended. calls gives the number of the call whose error became the failure.
func outcomeFrame(result Result, err error, call func(error) int32) bson.D {
	if thrown, ok := errors.AsType[*Thrown](err); ok {
		return bson.D{{Key: "t", Value: "done"}, {Key: "thrown", Value: bson.D{
			{Key: "status", Value: int32(thrown.Status)}, {Key: "message", Value: thrown.Message}, {Key: "fields", Value: fieldsFrame(thrown.Fields)}, //nolint:gosec // a status
		}}}
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		return bson.D{{Key: "t", Value: "done"}, {Key: "failure", Value: bson.D{
			{Key: "reason", Value: string(f.Reason)}, {Key: "script", Value: f.Script}, {Key: "line", Value: int32(f.Line)}, {Key: "column", Value: int32(f.Column)}, //nolint:gosec // places
			{Key: "message", Value: f.Message}, {Key: "stack", Value: f.Stack}, {Key: "call", Value: call(f.Cause)},
		}}}
	}
	out := bson.D{}
	for name, v := range result.Out {
		out = append(out, bson.E{Key: name, Value: v})
	}
	done := bson.D{{Key: "t", Value: "done"}, {Key: "value", Value: result.Value}, {Key: "returned", Value: result.Returned}, {Key: "out", Value: out}}
	if result.Values != nil {
		done = append(done, bson.E{Key: "values", Value: result.Values})
	}
	return done
}

// framedOutcome decodes it. cause gives the error of a call by its number.
func framedOutcome(doc bson.Raw, cause func(int32) error) (Result, error) {
	if v := rawField(doc, "thrown"); v.Type == bson.TypeEmbeddedDocument {
		t := bson.Raw(v.Value)
		return Result{}, &Thrown{Status: min(max(int(field[int32](t, "status")), 400), 599), Message: field[string](t, "message"), Fields: framedFields(rawField(t, "fields"))}
	}
	if v := rawField(doc, "failure"); v.Type == bson.TypeEmbeddedDocument {
		f := bson.Raw(v.Value)
		return Result{}, &Failure{
			Reason: Reason(field[string](f, "reason")), Script: field[string](f, "script"), Line: int(field[int32](f, "line")), Column: int(field[int32](f, "column")),
			Message: field[string](f, "message"), Stack: field[string](f, "stack"), Cause: cause(field[int32](f, "call")),
		}
	}
	result := Result{Returned: field[bool](doc, "returned")}
	if v, ok := document.Field(doc, "value"); ok {
		result.Value = document.Decode(v)
	}
	if v := rawField(doc, "values"); v.Type == bson.TypeArray {
		result.Values = []any{}
		for _, item := range items(v) {
			result.Values = append(result.Values, document.Decode(item))
		}
	}
	for _, e := range field[bson.D](doc, "out") {
		if result.Out == nil {
			result.Out = map[string]any{}
		}
		result.Out[e.Key] = e.Value
	}
	return result, nil
}
