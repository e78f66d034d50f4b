package records

import (
	"bytes"
	"encoding/base64"
	"hash/fnv"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
)

// Where is a caller's filter, not compiled yet.
type Where struct {
	Filter bson.D // constants from a URL's short form are fieldtype.Untyped
	Bytes  int    // length of the filter as it came, for the limit on it
}

// ListParams are the parameters of a list, as a door reads them. Zero values mean "not given".
type ListParams struct {
	Where
	Sort       string // "-publishedAt,title" or JSON
	Select     string // "title,seo.title", "-body" or JSON
	Projection string // name of one of the collection's projections
	After      string // cursor of the page before
	Limit      *int64
	Offset     int64
	Count      bool
}

// selection is what a caller asked to see: names to include, or names to leave out, never both.
type selection struct{ include, exclude []string }

// parseSort reads the sort parameter, checks its paths and makes the order total by adding _id.
func (r resolver) parseSort(text string, fallback mql.Sort) (mql.Sort, error) {
	sort, err := parseSortText(text)
	if err != nil {
		return nil, err
	}
	if err := r.checkSort(sort); err != nil {
		return nil, err
	}
	if len(sort) == 0 {
		sort = r.visible(fallback)
	}
	if len(sort) > r.limits.MaxSortFields {
		return nil, limitError("sort names %d fields, the limit is %d", len(sort), r.limits.MaxSortFields)
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

// checkSort resolves the paths of a caller's sort. A list sorts by its least or greatest item, so that of a record with
// two lists there would be no one place: one list is all that a sort may go through, and no position inside it.
func (r resolver) checkSort(sort mql.Sort) (err error) {
	lists := 0
	for i := range sort {
		if sort[i].Path, _, err = r.path(sort[i].Path); err != nil {
			return err
		}
		if err := r.comparable(sort[i].Path, "sort"); err != nil {
			return err
		}
		for segment := range strings.SplitSeq(sort[i].Path, ".") {
			if strings.Trim(segment, "0123456789") == "" {
				return errs.New(errs.Invalid, "bad_sort", "%s: a sort can't name a position in a list", sort[i].Path)
			}
		}
		if r.tree.FirstList(sort[i].Path) != "" {
			lists++
		}
	}
	if lists > 1 {
		return errs.New(errs.Invalid, "bad_sort", "a sort can go through one list only")
	}
	return nil
}

// visible leaves out of the collection's default sort what the caller may not see.
func (r resolver) visible(sort mql.Sort) mql.Sort {
	out := make(mql.Sort, 0, len(sort)+1)
	for _, f := range sort {
		if !r.hidden.Touches(f.Path) {
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
		if f.Path == "" || len(name)-len(f.Path) > 1 {
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

// parseSelect reads select and projection and checks their paths.
func (r resolver) parseSelect(c *Call, g access.Grant, selectText, projectionName string) (selection, error) {
	if projectionName != "" {
		if selectText != "" {
			return selection{}, errs.New(errs.Invalid, "bad_select", "use select or projection, not both")
		}
		p, ok := c.Collection.Projections[projectionName]
		if !ok || !g.AllProjections && !slices.Contains(g.Projections, projectionName) {
			return selection{}, errs.New(errs.Invalid, "unknown_projection", "unknown projection: %s", projectionName)
		}
		return r.visibleOf(p), nil
	}
	sel, err := parseSelectText(selectText)
	if err != nil {
		return selection{}, err
	}
	for _, list := range [][]string{sel.include, sel.exclude} {
		for i := range list {
			if list[i], _, err = r.path(list[i]); err != nil {
				return selection{}, err
			}
		}
	}
	return sel, nil
}

// visibleOf keeps a configured projection usable by a caller from whom some of its fields are hidden.
func (r resolver) visibleOf(p project.Projection) selection {
	sel := selection{exclude: p.Exclude}
	for _, path := range p.Include {
		if !r.hidden.Covers(path) {
			sel.include = append(sel.include, path)
		}
	}
	if len(p.Include) > 0 && len(sel.include) == 0 {
		sel.include = []string{"_id"}
	}
	return sel
}

func parseSelectText(text string) (selection, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return selection{}, nil
	}
	if text[0] == '{' {
		return parseSelectJSON(text)
	}
	var sel selection
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		switch {
		case name == "" || name == "-":
			return selection{}, errs.New(errs.Invalid, "bad_select", "select must look like title,seo.title or -body")
		case name[0] == '-':
			sel.exclude = append(sel.exclude, name[1:])
		default:
			sel.include = append(sel.include, name)
		}
	}
	return sel, sel.check()
}

func parseSelectJSON(text string) (selection, error) {
	doc, err := document.ParseJSON([]byte(text))
	if err != nil {
		return selection{}, inParameter("select", err)
	}
	var sel selection
	for _, e := range doc {
		switch e.Value {
		case int64(1), true:
			sel.include = append(sel.include, e.Key)
		case int64(0), false:
			sel.exclude = append(sel.exclude, e.Key)
		default:
			return selection{}, errs.New(errs.Invalid, "bad_select", "select: %s must be 1 or 0", e.Key)
		}
	}
	return sel, sel.check()
}

func (s selection) check() error {
	if len(s.include) > 0 && len(s.exclude) > 0 {
		return errs.New(errs.Invalid, "bad_select", "select either names fields or leaves fields out, not both")
	}
	return nil
}

// view is the selection as the caller may see it.
func (s selection) view(g access.Grant) (*document.View, error) {
	if len(s.include) == 0 && len(s.exclude) == 0 && g.Hidden == nil {
		return nil, nil //nolint:nilnil // a nil view shows everything, by the contract of document
	}
	return document.NewView(s.include, s.exclude, g.Hidden.Paths())
}

// limits gives the page's size and start.
func (r resolver) page(p ListParams) (limit, offset int64, err error) {
	limit = int64(r.limits.DefaultLimit)
	if p.Limit != nil {
		limit = *p.Limit
	}
	switch {
	case limit < 0 || p.Offset < 0:
		return 0, 0, errs.New(errs.Invalid, "bad_parameter", "limit and offset can't be negative")
	case limit > int64(r.limits.MaxLimit):
		return 0, 0, limitError("limit is %d, the highest allowed is %d", limit, r.limits.MaxLimit)
	case p.Offset > int64(r.limits.MaxOffset):
		return 0, 0, limitError("offset is %d, the highest allowed is %d; use after with the next cursor of a page", p.Offset, r.limits.MaxOffset)
	}
	return limit, p.Offset, nil
}

// cursor is the opaque position behind a record: its sort key, bound to the sort it was made for. It holds only
// values of fields that the caller sorts by, which are visible to them.
type cursor struct {
	Sort uint32          `bson:"s"`
	Key  []bson.RawValue `bson:"k"`
}

// maxCursor is how long a cursor may be, so that an address with it and a filter fits into what servers and proxies
// take.
const maxCursor = 2 << 10

func encodeCursor(sort mql.Sort, doc bson.Raw) (string, error) {
	key := sort.Key(doc)
	raw, err := bson.Marshal(cursor{Sort: fingerprint(sort), Key: key})
	if err != nil {
		return "", errs.Wrap(err, "encode cursor")
	}
	if base64.RawURLEncoding.EncodedLen(len(raw)) > maxCursor {
		longest := 0
		for i := range key {
			if len(key[i].Value) > len(key[longest].Value) {
				longest = i
			}
		}
		return "", errs.New(errs.Invalid, "sort_value_too_long",
			"there is a next page, but a value of %s is too long to page by: sort by something shorter", sort[longest].Path)
	}
	return base64.RawURLEncoding.EncodeToString(raw), nil
}

var errBadCursor = errs.New(errs.Invalid, "bad_cursor", "after must be the next cursor of a page of the same sort")

func decodeCursor(sort mql.Sort, text string) ([]bson.RawValue, error) {
	if text == "" {
		return nil, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(text) > maxCursor || bson.Raw(raw).Validate() != nil {
		return nil, errBadCursor
	}
	var c cursor
	if err := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(raw))).Decode(&c); err != nil {
		return nil, errBadCursor.With(err)
	}
	if c.Sort != fingerprint(sort) || len(c.Key) != len(sort) || slices.ContainsFunc(c.Key, noSortKey) {
		return nil, errBadCursor
	}
	return c.Key, nil
}

// noSortKey says that a value can't be of a cursor that was given out: of a type that no sort key has, or deeper than
// a record. A store would fail on it, or take it for something else.
func noSortKey(v bson.RawValue) bool { return !sortable(v, document.MaxDepth) }

func sortable(v bson.RawValue, levels int) bool {
	switch v.Type {
	case bson.TypeNull, bson.TypeBoolean, bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128, bson.TypeString,
		bson.TypeObjectID, bson.TypeDateTime, bson.TypeTimestamp, bson.TypeBinary,
		bson.TypeUndefined: // the key of an empty list
		return true
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		elements, err := bson.Raw(v.Value).Elements()
		return err == nil && levels > 0 && !slices.ContainsFunc(elements, func(e bson.RawElement) bool {
			return !sortable(e.Value(), levels-1)
		})
	default:
		return false
	}
}

// fingerprint tells sorts apart, so that a cursor is not used with another sort by mistake.
func fingerprint(sort mql.Sort) uint32 {
	h := fnv.New32a()
	for _, f := range sort {
		dir := "+"
		if f.Desc {
			dir = "-"
		}
		h.Write([]byte(dir + f.Path + "\x00")) //nolint:gosec // a hash never fails
	}
	return h.Sum32()
}

// inParameter says in which parameter a value is malformed.
func inParameter(name string, err error) error {
	e := *errs.From(err)
	e.Message = name + ": " + e.Message
	return &e
}

// query puts a list's parameters together for the store.
func (r resolver) query(p ListParams, defaultSort mql.Sort) (store.Query, error) {
	var q store.Query
	limit, offset, err := r.page(p)
	if err != nil {
		return q, err
	}
	if q.Filter, err = r.filter(p.Where); err != nil {
		return q, err
	}
	if q.Sort, err = r.parseSort(p.Sort, defaultSort); err != nil {
		return q, err
	}
	if q.After, err = decodeCursor(q.Sort, p.After); err != nil {
		return q, err
	}
	q.Limit, q.Skip = limit, offset
	return q, nil
}
