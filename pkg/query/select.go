package query

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
)

// Selection is what a caller asked to see: paths to include, or paths to leave out, never both.
type Selection struct{ Include, Exclude []string }

// Select reads a select parameter and checks its paths. Those in what a lookup finds are handed on to it; what is looked up
// itself always comes.
func (r Resolver) Select(text string, lookups []*Lookup) (Selection, error) {
	sel, err := parseSelectText(text)
	if err != nil {
		return Selection{}, err
	}
	return r.selection(sel, lookups)
}

// selectOf is Select of a JSON value.
func (r Resolver) selectOf(v any, lookups []*Lookup) (sel Selection, err error) {
	switch v := v.(type) {
	case string:
		sel, err = parseSelectText(v)
	case bson.D:
		sel, err = selectionOf(v)
	default:
		err = errs.New(errs.Invalid, "bad_select", "select must be a text or an object")
	}
	if err != nil {
		return Selection{}, err
	}
	return r.selection(sel, lookups)
}

// selection checks the paths of a selection and hands on those that are in what a lookup finds.
func (r Resolver) selection(sel Selection, lookups []*Lookup) (out Selection, err error) {
	for _, path := range sel.Include {
		if err := r.choose(path, true, &out, lookups); err != nil {
			return Selection{}, err
		}
	}
	for _, path := range sel.Exclude {
		if err := r.choose(path, false, &out, lookups); err != nil {
			return Selection{}, err
		}
	}
	return out.With(lookups), nil
}

func (r Resolver) choose(path string, include bool, sel *Selection, lookups []*Lookup) error {
	l, rest := within(lookups, path)
	if l == nil {
		stored, _, err := r.Path(path)
		if include {
			sel.Include = append(sel.Include, stored)
		} else {
			sel.Exclude = append(sel.Exclude, stored)
		}
		return err
	}
	if include && len(sel.Include) == 0 { // of the record itself, only what is named
		sel.Include = []string{"_id"}
	}
	if rest == "" {
		return nil
	}
	if l.chosen {
		return errs.New(errs.Invalid, "bad_select", "%s: the lookup has a select of its own", path)
	}
	err := l.near.choose(rest, include, &l.Select, l.Lookups)
	if isUnknownField(err) {
		return fieldtype.UnknownField(path)
	}
	return err
}

// With adds what lookups put into the place of values to a selection that names what to show, and so on behind them.
func (s Selection) With(lookups []*Lookup) Selection {
	for _, l := range lookups {
		l.Select = l.Select.With(l.Lookups)
		if l.As == "" && len(s.Include) > 0 && !slices.Contains(s.Include, l.Values) {
			s.Include = append(slices.Clip(s.Include), l.Values)
		}
	}
	return s
}

func parseSelectText(text string) (Selection, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return Selection{}, nil
	}
	if text[0] == '{' {
		return parseSelectJSON(text)
	}
	var sel Selection
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		switch {
		case name == "" || name == "-":
			return Selection{}, errs.New(errs.Invalid, "bad_select", "select must look like title,seo.title or -body")
		case name[0] == '-':
			sel.Exclude = append(sel.Exclude, name[1:])
		default:
			sel.Include = append(sel.Include, name)
		}
	}
	return sel, sel.check()
}

func parseSelectJSON(text string) (Selection, error) {
	doc, err := document.ParseJSON([]byte(text))
	if err != nil {
		return Selection{}, inParameter("select", err)
	}
	return selectionOf(doc)
}

func selectionOf(doc bson.D) (Selection, error) {
	var sel Selection
	for _, e := range doc {
		switch e.Value {
		case int64(1), true:
			sel.Include = append(sel.Include, e.Key)
		case int64(0), false:
			sel.Exclude = append(sel.Exclude, e.Key)
		default:
			return Selection{}, errs.New(errs.Invalid, "bad_select", "select: %s must be 1 or 0", e.Key)
		}
	}
	return sel, sel.check()
}

func (s Selection) check() error {
	if len(s.Include) > 0 && len(s.Exclude) > 0 {
		return errs.New(errs.Invalid, "bad_select", "select either names fields or leaves fields out, not both")
	}
	return nil
}

// View is the selection without what is hidden from the caller. nil is everything.
func (s Selection) View(hidden *document.PathSet) (*document.View, error) {
	if len(s.Include) == 0 && len(s.Exclude) == 0 && hidden == nil {
		return nil, nil //nolint:nilnil // a nil view shows everything, by the contract of document
	}
	return document.NewView(s.Include, s.Exclude, hidden)
}
