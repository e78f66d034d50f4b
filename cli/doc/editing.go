package doc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// Editing is a record that its user edits: a draft in a file, which an editor changes, and what becomes of that. svcctl doc edit goes through it, and
// the terminal UI does. It is not safe for concurrent use.
type Editing struct {
	client *client.Client
	place  place
	id     string // "": the record is a new one
	lang   string
	draft  *draft

	about   []string // lines above the text, which stay
	refused string   // the text that was refused last
	reasons []string // why
}

// OpenEditing begins with a record as it is stored. The draft is in a file for this user only, once it was written.
func OpenEditing(ctx context.Context, c *client.Client, namespace, collection, id string) (*Editing, error) {
	return openEditing(ctx, c, place{namespace, collection}, id, "", "")
}

// openEditing is OpenEditing of a record in a language, which may go on with a draft that was left.
func openEditing(ctx context.Context, c *client.Client, at place, id, lang, draft string) (*Editing, error) {
	now, etag, err := getOne(ctx, c, at, id, client.Query{Lang: lang})
	if err != nil {
		return nil, err
	}
	e := &Editing{client: c, place: at, id: recordID(now), lang: lang}
	current := opened{ETag: etag, Record: now}
	e.about = []string{fmt.Sprintf("Record %s of %s.", e.id, at)}
	if lang != "" {
		e.about[0] = fmt.Sprintf("Record %s of %s, in the language %s.", e.id, at, lang)
	}
	if draft != "" {
		d, clashes, err := resumeDraft(draft, current)
		if err != nil {
			return nil, err
		}
		e.draft, e.about = d, append(e.about, clashes...)
	} else if e.draft, err = newDraft(at.Collection+"-"+e.id, current); err != nil {
		return nil, err
	}
	e.about = append(e.about, "Lines that begin with # here at the top are left out. What you don't change stays; a file without a change does nothing.")
	return e, nil
}

// NewEditing begins with a record that there is not yet, in which its fields wait for values.
func NewEditing(c *client.Client, namespace, collection string, fields []api.FieldDescription) (*Editing, error) {
	e := &Editing{client: c, place: place{namespace, collection}}
	dir, err := os.MkdirTemp("", "svcctl-edit-*")
	if err != nil {
		return nil, err
	}
	text, notes := template(fields)
	e.draft = &draft{path: filepath.Join(dir, draftName(collection+"-new")), text: text}
	e.draft.base = api.Record("{}")
	if e.draft.text != "" {
		if e.draft.base, err = command.YAMLToJSON([]byte(e.draft.text)); err != nil {
			return nil, fmt.Errorf("the fields as YAML: %w", err)
		}
	}
	if err := e.draft.keepBase(opened{Record: e.draft.base}); err != nil {
		return nil, err
	}
	e.about = append([]string{
		fmt.Sprintf("A new record of %s.", e.place),
		"Lines that begin with # here at the top are left out, and so are fields without a value. A file without a change creates nothing.",
	}, notes...)
	return e, nil
}

// template is the text of a record without values, what is required first, and notes about its fields.
func template(fields []api.FieldDescription) (text string, notes []string) {
	var required, others strings.Builder
	var first, rest []string
	for _, f := range fields {
		if f.Readonly {
			continue
		}
		line, err := draftText(object([]member{{name: f.Name, value: json.RawMessage("null")}})) // the name quoted where YAML wants that
		if err != nil {
			continue
		}
		line = strings.TrimSuffix(line, "null\n") + "\n"
		if f.Required {
			required.WriteString(line)
			first = append(first, "  "+f.Name+": "+f.Type+", required")
		} else {
			others.WriteString(line)
			rest = append(rest, "  "+f.Name+": "+f.Type)
		}
	}
	return required.String() + others.String(), append(first, rest...)
}

// Path is the file with the draft; "": none was written yet.
func (e *Editing) Path() string { return e.draft.path }

// ID is that of the record; "": it is a new one.
func (e *Editing) ID() string { return e.id }

// Write writes the draft into its file, below what is to be known about it.
func (e *Editing) Write() error {
	if e.reasons == nil {
		return e.draft.write(e.about)
	}
	intro := append([]string{"Not saved:"}, e.reasons...)
	return e.draft.write(append(intro, "Change it and save, or leave it as it is to give up."))
}

// Save sends what an editor has changed in the file, if the record is still the one that was opened. Without a change it sends nothing, and names no
// fields. The file goes when there is nothing more to be sent; it stays where there is an error.
func (e *Editing) Save(ctx context.Context) (record api.Record, fields []string, err error) {
	if _, err := e.draft.read(); err != nil {
		return nil, nil, err
	}
	patch, fields, err := e.draft.patch()
	switch {
	case err != nil:
		return nil, nil, err
	case len(fields) == 0:
		return nil, nil, e.draft.remove()
	case e.id == "":
		record, err = e.create(ctx)
	default:
		record, err = e.client.PatchRecord(ctx, e.place.Namespace, e.place.Collection, e.id, api.MediaMergePatch, patch, client.WriteOptions{IfMatch: e.draft.etag, Lang: e.lang})
	}
	if err != nil {
		return nil, nil, err
	}
	return record, fields, e.draft.remove()
}

// create creates the record of the draft, of the fields that have a value.
func (e *Editing) create(ctx context.Context) (api.Record, error) {
	rest, _, _, err := writable(e.draft.edited)
	if err != nil {
		return nil, &draftError{err}
	}
	all, err := members(rest)
	if err != nil {
		return nil, &draftError{err}
	}
	given := slices.DeleteFunc(all, func(m member) bool { return bytes.Equal(m.value, []byte("null")) })
	return e.client.CreateRecord(ctx, e.place.Namespace, e.place.Collection, object(given))
}

// Again says whether another edit can mend what Save was refused for. Write then tells the reasons. It can't where the text is the one that was refused
// before: then the user has given up.
func (e *Editing) Again(err error) bool {
	reasons := refusedBecause(err)
	if reasons == nil || e.draft.text == e.refused {
		return false
	}
	e.refused, e.reasons = e.draft.text, reasons
	return true
}

// Changed says that an error of Save is for a record that others have changed meanwhile.
func Changed(err error) bool {
	refused, ok := errors.AsType[*client.Error](err)
	return ok && (refused.Status == http.StatusPreconditionFailed || refused.Status == http.StatusConflict && !taken(&refused.Problem, ""))
}

// Difference is a value that is not the same in the record as it was opened, in the draft, and in what is stored now. What is not there is "".
type Difference struct{ Path, Was, Yours, Now string }

// Differences are what others have changed, and the draft.
func (e *Editing) Differences(ctx context.Context) ([]Difference, error) {
	stored, _, err := e.client.GetRecord(ctx, e.place.Namespace, e.place.Collection, e.id, client.Query{Lang: e.lang})
	if err != nil {
		return nil, err
	}
	var out []Difference
	was, yours, now := leaves(e.draft.base), leaves(e.draft.edited), leaves(stored)
	for _, path := range paths(was, yours, now) {
		d := Difference{path, was[path], yours[path], now[path]}
		if !Reserved(path) && (d.Yours != d.Was || d.Now != d.Was) {
			out = append(out, d)
		}
	}
	return out, nil
}

// Renew puts what the draft changes into the record as it is stored now: what others have changed stands above the text from then on.
func (e *Editing) Renew(ctx context.Context) error {
	now, err := openEditing(ctx, e.client, e.place, e.id, e.lang, e.draft.path)
	if err != nil {
		return err
	}
	*e = *now
	return nil
}

// Unchanged says that the draft is as it was written.
func (e *Editing) Unchanged() bool {
	if _, err := e.draft.read(); err != nil {
		return false
	}
	_, fields, err := e.draft.patch()
	return err == nil && len(fields) == 0
}

// Remove takes the draft away.
func (e *Editing) Remove() error { return e.draft.remove() }

// refusedBecause are the reasons of a refusal that another edit can mend, or nil.
func refusedBecause(err error) []string {
	if unread, ok := errors.AsType[*draftError](err); ok {
		return strings.Split(strings.TrimSpace(unread.Error()), "\n")
	}
	refused, ok := errors.AsType[*client.Error](err)
	if !ok {
		return nil
	}
	switch {
	case refused.Status == http.StatusBadRequest, refused.Status == http.StatusUnprocessableEntity, taken(&refused.Problem, ""):
	default:
		return nil
	}
	var reasons []string
	for _, f := range refused.Problem.Errors {
		reasons = append(reasons, "  "+f.Path+": "+f.Message)
	}
	if reasons == nil {
		reasons = []string{"  " + refused.Problem.Detail}
	}
	return reasons
}

// leaves gives the values of a record by their paths, as table cells. Objects are taken apart.
func leaves(record api.Record) map[string]string {
	out := map[string]string{}
	var walk func(prefix string, value api.Record)
	walk = func(prefix string, value api.Record) {
		list, err := members(value)
		if err != nil {
			return
		}
		for _, m := range list {
			if len(m.value) > 0 && m.value[0] == '{' {
				walk(prefix+m.name+".", m.value)
				continue
			}
			out[prefix+m.name] = bareText(canonical(m.value))
		}
	}
	walk("", record)
	return out
}

// paths are the keys of several maps, sorted.
func paths(all ...map[string]string) []string {
	var out []string
	for _, m := range all {
		for path := range m {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
