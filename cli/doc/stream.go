package doc

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

// readRecords yields the records of a stream: NDJSON (or objects one after another), a JSON array, or a list as the
// service gives it ({"items": [...]}). Arrays and NDJSON are read as they come, in any number.
func readRecords(r io.Reader) iter.Seq2[api.Record, error] {
	return func(yield func(api.Record, error) bool) {
		br := bufio.NewReaderSize(r, 64<<10)
		first, err := firstByte(br)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			yield(nil, err)
			return
		}
		dec := json.NewDecoder(br)
		switch first {
		case '[':
			readArray(dec, yield)
		case '{':
			readObjects(dec, yield)
		default:
			yield(nil, fmt.Errorf("record 1: NDJSON begins with {, and a JSON list with [, not with %q: --format csv reads CSV, svcctl doc create a record in YAML", first))
		}
	}
}

func readObjects(dec *json.Decoder, yield func(api.Record, error) bool) {
	for n := 1; ; n++ {
		var record api.Record
		if err := dec.Decode(&record); err != nil {
			if !errors.Is(err, io.EOF) {
				yield(nil, fmt.Errorf("record %d: %w", n, err))
			}
			return
		}
		items := []api.Record{record}
		if n == 1 {
			if list, ok := envelope(record); ok {
				items = list
			}
		}
		for _, item := range items {
			if !yield(item, nil) {
				return
			}
		}
	}
}

func readArray(dec *json.Decoder, yield func(api.Record, error) bool) {
	if _, err := dec.Token(); err != nil {
		yield(nil, err)
		return
	}
	n := 1
	for ; dec.More(); n++ {
		var record api.Record
		if err := dec.Decode(&record); err != nil {
			yield(nil, fmt.Errorf("record %d: %w", n, err))
			return
		}
		if !yield(record, nil) {
			return
		}
	}
	if _, err := dec.Token(); err != nil {
		yield(nil, fmt.Errorf("after record %d: the list does not end: %w", n-1, err))
		return
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		yield(nil, errors.New("there is more text after the list"))
	}
}

// firstByte skips white space and a byte order mark, and looks at what follows.
func firstByte(br *bufio.Reader) (byte, error) {
	if mark, err := br.Peek(3); err == nil && string(mark) == "\ufeff" {
		if _, err := br.Discard(3); err != nil {
			return 0, err
		}
	}
	for {
		b, err := br.ReadByte()
		if err != nil {
			return 0, err
		}
		switch b {
		case ' ', '\t', '\r', '\n':
		default:
			return b, br.UnreadByte()
		}
	}
}

// envelope tells a list of the service from a record: it has items and nothing that a list has not.
func envelope(record api.Record) ([]api.Record, bool) {
	all, err := members(record)
	if err != nil {
		return nil, false
	}
	var items []api.Record
	found := false
	for _, m := range all {
		switch m.name {
		case "items":
			found = json.Unmarshal(m.value, &items) == nil
		case "limit", "offset", "hasMore", "total", "next":
		default:
			return nil, false
		}
	}
	return items, found
}

// arrayWriter writes a JSON list item by item.
type arrayWriter struct {
	w     *bufio.Writer
	end   string
	sep   string
	count int
}

func newArrayWriter(w io.Writer, begin, end string) *arrayWriter {
	return &arrayWriter{w: bufio.NewWriterSize(w, 64<<10), end: end, sep: begin + "\n"}
}

// Write adds an item.
func (a *arrayWriter) Write(item any) error {
	if _, err := a.w.WriteString(a.sep); err != nil {
		return err
	}
	a.sep = ","
	a.count++
	return output.JSONLine(a.w, item)
}

// Close ends the list. Without it what was written is no JSON, as it should be after an error.
func (a *arrayWriter) Close() error {
	begin := ""
	if a.count == 0 {
		begin = a.sep
	}
	if _, err := a.w.WriteString(begin + a.end + "\n"); err != nil {
		return err
	}
	return a.w.Flush()
}

// lineWriter writes NDJSON.
type lineWriter struct{ w *bufio.Writer }

// Write adds a line.
func (l lineWriter) Write(item any) error { return output.JSONLine(l.w, item) }

// Close writes what is still held back.
func (l lineWriter) Close() error { return l.w.Flush() }
