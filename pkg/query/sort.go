package query

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
)

// sort reads the sort parameter, checks its paths and makes the order total by adding _id.
func (r Resolver) sort(text string, fallback mql.Sort) (mql.Sort, error) {
	sort, err := parseSortText(text)
	if err != nil {
		return nil, err
	}
	return r.order(sort, fallback)
}

// sortOf is sort of a JSON value.
func (r Resolver) sortOf(v any) (sort mql.Sort, err error) {
	switch v := v.(type) {
	case string:
		sort, err = parseSortText(v)
	case bson.D:
		sort, err = sortingOf(v)
	default:
		err = errs.New(errs.Invalid, "bad_sort", "sort must be a text or an object")
	}
	if err != nil {
		return nil, err
	}
	return r.order(sort, nil)
}

func (r Resolver) order(sort, fallback mql.Sort) (mql.Sort, error) {
	if err := r.checkSort(sort); err != nil {
		return nil, err
	}
	if len(sort) == 0 {
		sort = r.visible(fallback)
	}
	if len(sort) > r.Limits.MaxSortFields {
		return nil, limitError("sort names %d fields, the limit is %d", len(sort), r.Limits.MaxSortFields)
	}
	seen := make(map[string]bool, len(sort))
	for _, f := range sort {
		if seen[f.Path] {
			return nil, errs.New(errs.Invalid, "bad_sort", "sort names %s twice", f.Path)
		}
		seen[f.Path] = true
	}
	if !seen["_id"] { // in the direction of the last field, so that one walk of its index gives the whole order
		desc := len(sort) > 0 && sort[len(sort)-1].Desc
		sort = append(sort, mql.SortField{Path: "_id", Desc: desc})
	}
	return sort, nil
}

// CheckSort says whether lists can be sorted so.
func (r Resolver) CheckSort(sort mql.Sort) error {
	_, err := r.order(slices.Clone(sort), nil)
	return err
}

// checkSort resolves the paths of a caller's sort. A list sorts by its least or greatest item, so that of a record with
// two lists there would be no one place: one list is all that a sort may go through, and no position inside it.
func (r Resolver) checkSort(sort mql.Sort) (err error) {
	lists := 0
	for i := range sort {
		if sort[i].Path, _, err = r.Path(sort[i].Path); err != nil {
			return err
		}
		if err := r.comparable(sort[i].Path, sort[i].Path, "sort", nil); err != nil {
			return err
		}
		for segment := range strings.SplitSeq(sort[i].Path, ".") {
			if strings.Trim(segment, "0123456789") == "" {
				return errs.New(errs.Invalid, "bad_sort", "%s: a sort can't name a position in a list", sort[i].Path)
			}
		}
		if r.Tree.FirstList(sort[i].Path) != "" {
			lists++
		}
	}
	if lists > 1 {
		return errs.New(errs.Invalid, "bad_sort", "a sort can go through one list only")
	}
	return nil
}

// visible leaves out of the collection's default sort what the caller may not see.
func (r Resolver) visible(sort mql.Sort) mql.Sort {
	out := make(mql.Sort, 0, len(sort)+1)
	for _, f := range sort {
		if !r.Hidden.Touches(f.Path) {
			out = append(out, f)
		}
	}
	return out
}

func parseSortText(text string) (mql.Sort, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	if text[0] == '{' {
		return parseSortJSON(text)
	}
	var sort mql.Sort
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		f := mql.SortField{Path: strings.TrimLeft(name, "-+"), Desc: strings.HasPrefix(name, "-")}
		if f.Path == "" || len(name)-len(f.Path) > 1 || strings.HasSuffix(name, ":asc") || strings.HasSuffix(name, ":desc") {
			return nil, errs.New(errs.Invalid, "bad_sort", "sort must look like -publishedAt,title")
		}
		sort = append(sort, f)
	}
	return sort, nil
}

func parseSortJSON(text string) (mql.Sort, error) {
	doc, err := document.ParseJSON([]byte(text))
	if err != nil {
		return nil, inParameter("sort", err)
	}
	return sortingOf(doc)
}

func sortingOf(doc bson.D) (mql.Sort, error) {
	sort := make(mql.Sort, 0, len(doc))
	for _, e := range doc {
		dir, ok := e.Value.(int64)
		if !ok || dir != 1 && dir != -1 {
			return nil, errs.New(errs.Invalid, "bad_sort", "sort: %s must be 1 or -1", e.Key)
		}
		sort = append(sort, mql.SortField{Path: e.Key, Desc: dir < 0})
	}
	return sort, nil
}
