package file

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
)

// newID stands for a record that is still to be created.
const newID = "new"

// place is a record. Its ID is newID for one to be.
type place struct{ Namespace, Collection, ID string }

func (p place) String() string { return p.Namespace + "/" + p.Collection + "/" + p.ID }

// idForm is what ids look like.
var idForm = regexp.MustCompile(`^[0-9a-fA-F]{24}$`)

// placeOf reads [NAMESPACE] COLLECTION ID and at least rest arguments behind them, which it gives. The id tells whether there
// is a namespace, since anything may follow.
func placeOf(st *command.State, args []string, rest int) (place, []string, error) {
	at := -1
	for _, is := range []func(string) bool{idForm.MatchString, func(s string) bool { return s == newID }} {
		for i := 1; i <= 2 && i < len(args) && at < 0; i++ {
			if is(args[i]) {
				at = i
			}
		}
	}
	if at < 0 {
		return place{}, nil, &command.Error{
			Exit: command.ExitUsage, Code: "usage", Message: "which record? COLLECTION and ID are missing, or the id is none",
			Hint: "an id has 24 hexadecimal digits; svcctl doc list shows those there are",
		}
	}
	if len(args)-at-1 < rest {
		return place{}, nil, command.Usagef("something is missing behind the id %s", args[at])
	}
	namespace, record, err := st.Place(args[:at+1], 2)
	if err != nil {
		return place{}, nil, err
	}
	return place{namespace, record[0], record[1]}, args[at+1:], nil
}

// named is a file of a record, with the path of the field that it is in.
type named struct {
	Field string `json:"field"` // with positions in lists
	api.File
	in string // the field, without positions
}

// isFile says whether a field holds files.
func isFile(f api.FieldDescription) bool { return f.Type == "file" || f.Type == "file[]" }

// filesOf gives the files of a record, in the order of its fields.
func filesOf(fields []api.FieldDescription, record json.RawMessage) ([]named, error) {
	var out []named
	err := walk(fields, record, "", "", func(f named) { out = append(out, f) })
	return out, err
}

// walk finds files below an object. at is its path with positions, in the one without.
func walk(fields []api.FieldDescription, object json.RawMessage, at, in string, found func(named)) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return fmt.Errorf("the record of the answer: %w", err)
	}
	for _, f := range fields {
		value, ok := members[f.Name]
		if !ok || !isFile(f) && len(f.SubFields) == 0 {
			continue
		}
		here, path := at+f.Name, in+f.Name
		visit := func(v json.RawMessage, here string) error {
			if string(v) == "null" {
				return nil
			}
			if !isFile(f) {
				return walk(f.SubFields, v, here+".", path+".", found)
			}
			file := named{Field: here, in: path}
			if err := json.Unmarshal(v, &file.File); err != nil {
				return fmt.Errorf("the field %s of the answer: %w", here, err)
			}
			found(file)
			return nil
		}
		if err := each(value, here, strings.HasSuffix(f.Type, "[]"), visit); err != nil {
			return err
		}
	}
	return nil
}

// each visits a value, or those of a list.
func each(value json.RawMessage, at string, list bool, visit func(json.RawMessage, string) error) error {
	if !list || string(value) == "null" {
		return visit(value, at)
	}
	var items []json.RawMessage
	if err := json.Unmarshal(value, &items); err != nil {
		return fmt.Errorf("the field %s of the answer: %w", at, err)
	}
	for i, item := range items {
		if err := visit(item, fmt.Sprintf("%s.%d", at, i)); err != nil {
			return err
		}
	}
	return nil
}
