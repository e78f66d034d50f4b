package query

import (
	"strings"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

// Selection is what a caller asked to see: paths to include, or paths to leave out, never both.
type Selection struct{ Include, Exclude []string }

// Select reads a select parameter and checks its paths.
func (r Resolver) Select(text string) (Selection, error) {
	sel, err := parseSelectText(text)
	if err != nil {
		return Selection{}, err
	}
	for _, list := range [][]string{sel.Include, sel.Exclude} {
		for i := range list {
			if list[i], _, err = r.Path(list[i]); err != nil {
				return Selection{}, err
			}
		}
	}
	return sel, nil
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
