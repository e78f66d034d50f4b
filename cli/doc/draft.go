package doc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

// draft is a record that is being edited: a YAML file, and beside it the record as it was opened.
type draft struct {
	path   string     // "": it is in no file yet
	name   string     // that the file gets
	then   opened     // what the file beside it gets then
	text   string     // without the comments at its top
	base   api.Record // what the text was made of
	etag   string     // of the record that base is
	edited api.Record // what the text says, after patch
}

// opened is the record as it was opened, in the file beside the draft.
type opened struct {
	ETag   string     `json:"etag"`
	Record api.Record `json:"record"`
}

// baseName is the file beside a draft that holds the record as it was opened.
const baseName = "base.json"

// draftError says what is wrong with the text of a draft.
type draftError struct{ err error }

func (e *draftError) Error() string { return e.err.Error() }
func (e *draftError) Unwrap() error { return e.err }

// newDraft makes a draft of a record. It is in no file until it is written.
func newDraft(name string, now opened) (d *draft, err error) {
	d = &draft{name: draftName(name), then: now}
	if d.text, err = d.start(now); err != nil {
		return nil, err
	}
	return d, nil
}

// place gives a draft that is in no file yet a directory of its own, for this user only.
func (d *draft) place() error {
	if d.path != "" {
		return nil
	}
	dir, err := os.MkdirTemp("", "svcctl-edit-*")
	if err != nil {
		return err
	}
	d.path = filepath.Join(dir, d.name)
	if err := d.keepBase(d.then); err != nil {
		d.path = ""
		return errors.Join(err, os.Remove(dir))
	}
	return nil
}

// maxDraftName is how many characters of a name the file of a draft has.
const maxDraftName = 80

// draftName is the name of a draft's file. The name of a collection and the id of a record are what a service says: neither leads out of the draft's folder,
// where a file of the user's would be replaced by what the record holds.
func draftName(name string) string {
	plain := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, name)
	return plain[:min(len(plain), maxDraftName)] + ".yaml"
}

// start makes a record what the draft is compared with, and gives its text.
func (d *draft) start(now opened) (string, error) {
	text, err := draftText(now.Record)
	if err != nil {
		return "", err
	}
	d.etag = now.ETag
	// Through YAML and back, so that only what the user does makes a difference.
	if d.base, err = command.YAMLToJSON([]byte(text)); err != nil {
		return "", fmt.Errorf("the record as YAML: %w", err)
	}
	return text, nil
}

// keepBase writes the file beside the draft.
func (d *draft) keepBase(now opened) error {
	raw, err := json.Marshal(now)
	if err != nil {
		return err
	}
	return replace(filepath.Join(filepath.Dir(d.path), baseName), raw)
}

// draftText is the YAML of a record without what the service sets.
func draftText(record api.Record) (string, error) {
	rest, _, _, err := writable(record)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = output.Printer{W: &b}.YAML(rest)
	return b.String(), err
}

// resumeDraft puts the changes of a draft that was left into the record as it is now. The notes name what others have
// changed meanwhile.
func resumeDraft(path string, now opened) (d *draft, notes []string, err error) {
	d = &draft{path: path}
	if _, err = d.read(); err != nil {
		return nil, nil, command.Usagef("--draft: %v", err)
	}
	var then opened
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(path), baseName))
	if err == nil {
		err = json.Unmarshal(raw, &then)
	}
	if err == nil {
		_, err = d.start(then)
	}
	if err != nil {
		return nil, nil, command.Usagef("--draft: what it was made of can't be read: %v", err)
	}
	patch, _, err := d.patch()
	if _, ok := errors.AsType[*draftError](err); ok { // what it changes can't be told yet, so it opens as it is
		return d, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	was := leaves(d.base)
	if _, err := d.start(now); err != nil {
		return nil, nil, err
	}
	stored := leaves(d.base)
	for _, path := range paths(was, stored) {
		if was[path] != stored[path] {
			notes = append(notes, fmt.Sprintf("  %s: changed by others from %s to %s", path, quoted(was[path]), quoted(stored[path])))
		}
	}
	if notes != nil {
		notes = append([]string{"Your changes are put into the record as it is now, in which:"}, notes...)
	}
	if d.text, err = draftText(applyPatch(d.base, patch)); err != nil {
		return nil, nil, err
	}
	// The text first: with the old base, it says too much, which If-Match refuses; with the new one, too little.
	return d, notes, errors.Join(d.write(nil), d.keepBase(now))
}

// quoted is a value in one short line.
func quoted(text string) string {
	if text == "" {
		return "nothing"
	}
	return output.Cut(output.Escape(text), maxCell)
}

// write puts the text into the file, with comments above it.
func (d *draft) write(comments []string) error {
	if err := d.place(); err != nil {
		return err
	}
	var b strings.Builder
	for _, line := range comments {
		b.WriteString("# " + output.Escape(line) + "\n")
	}
	b.WriteString(d.text)
	return replace(d.path, []byte(b.String()))
}

// replace writes a file of a draft whole, or not at all: what is there is the user's work, also when the disk is full.
func replace(path string, data []byte) error {
	return output.WriteFile(path, data, 0o600)
}

// read takes the text from the file, without the comments at its top.
func (d *draft) read() (string, error) {
	data, err := os.ReadFile(d.path)
	if err != nil {
		return "", err
	}
	text := strings.TrimPrefix(string(data), "\ufeff")
	for strings.HasPrefix(text, "#") {
		_, text, _ = strings.Cut(text, "\n")
	}
	d.text = text
	return text, nil
}

// remove takes the draft away.
func (d *draft) remove() error {
	if d.path == "" {
		return nil
	}
	dir := filepath.Dir(d.path)
	err := errors.Join(os.Remove(d.path), os.Remove(filepath.Join(dir, baseName)))
	_ = os.Remove(dir) // what else is in it, such as an editor's backup, stays
	return err
}

// patch reads the text and gives what it changes as a JSON merge patch, with the names of the members that it is about.
func (d *draft) patch() (patch api.Record, fields []string, err error) {
	d.edited = d.base
	if strings.TrimSpace(d.text) == "" { // emptied: to give up
		return nil, nil, nil
	}
	edited, err := command.YAMLToJSON([]byte(d.text))
	if err != nil {
		return nil, nil, &draftError{err}
	}
	now, err := members(edited)
	if err != nil {
		return nil, nil, &draftError{errors.New("want a list of fields, as in title: Hello")}
	}
	d.edited = edited
	was, err := members(d.base)
	if err != nil {
		return nil, nil, err
	}
	changes := mergePatch(was, now)
	for _, m := range changes {
		fields = append(fields, m.name)
	}
	return object(changes), fields, nil
}

// mergePatch is what makes one object the other, by RFC 7396.
func mergePatch(was, now []member) []member {
	var out []member
	for _, m := range now {
		old := find(was, m.name)
		switch {
		case old != nil && same(old, m.value):
		case isObject(old) && isObject(m.value):
			before, err1 := members(old)
			after, err2 := members(m.value)
			if err1 == nil && err2 == nil {
				m.value = object(mergePatch(before, after))
			}
			out = append(out, m)
		default:
			out = append(out, m)
		}
	}
	for _, m := range was {
		if find(now, m.name) == nil {
			out = append(out, member{name: m.name, value: json.RawMessage("null")})
		}
	}
	return out
}

// applyPatch gives record as a merge patch makes it.
func applyPatch(record, patch api.Record) api.Record {
	target, err1 := members(record)
	changes, err2 := members(patch)
	if err1 != nil || err2 != nil {
		return patch
	}
	for _, c := range changes {
		i := slices.IndexFunc(target, func(m member) bool { return m.name == c.name })
		switch {
		case string(c.value) == "null":
			if i >= 0 {
				target = slices.Delete(target, i, i+1)
			}
		case i < 0:
			target = append(target, c)
		case isObject(target[i].value) && isObject(c.value):
			target[i].value = applyPatch(target[i].value, c.value)
		default:
			target[i].value = c.value
		}
	}
	return object(target)
}

func find(list []member, name string) json.RawMessage {
	i := slices.IndexFunc(list, func(m member) bool { return m.name == name })
	if i < 0 {
		return nil
	}
	return list[i].value
}

func isObject(value json.RawMessage) bool { return len(value) > 0 && value[0] == '{' }

// object puts members together.
func object(list []member) api.Record {
	b := []byte{'{'}
	for i, m := range list {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(m.name)
		if err != nil { // a string always encodes
			continue
		}
		b = append(append(append(b, name...), ':'), m.value...)
	}
	return append(b, '}')
}

// same says whether two values are equal, whatever the order of their members.
func same(a, b json.RawMessage) bool {
	return bytes.Equal(a, b) || reflect.DeepEqual(decoded(a), decoded(b))
}

func decoded(value json.RawMessage) any {
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return string(value)
	}
	return v
}

// canonical is a value without white space.
func canonical(value json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return value
	}
	return b.Bytes()
}
