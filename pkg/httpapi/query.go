package httpapi

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/schema"
)

// maxQueryParameters bounds how many parameters a URL may carry; more are refused before they are parsed.
const maxQueryParameters = 1000

// parseQuery reads the URL's parameters. A malformed or oversized query is refused, never cut.
func parseQuery(raw string) (url.Values, error) {
	if strings.Count(raw, "&") >= maxQueryParameters {
		return nil, errs.New(errs.Invalid, "too_many_parameters", "more than %d query parameters", maxQueryParameters)
	}
	q, err := url.ParseQuery(raw)
	if err != nil {
		return nil, errs.New(errs.Invalid, "bad_query", "the query string is malformed: check its percent-encoding").With(err)
	}
	for name, values := range q {
		if !utf8.ValidString(name) || slices.ContainsFunc(values, func(v string) bool { return !utf8.ValidString(v) }) {
			return nil, errs.New(errs.Invalid, "bad_query", "the query string is not UTF-8")
		}
	}
	return q, nil
}

// known refuses parameters that the route does not have, so that a misspelled filter is never silently dropped.
// The parameters of every route are allowed, and so are those that the collection's meta.query declares.
func (r *request) known() error {
	if r.route.right.kind == rightAction && r.route.right.method != 0 { // the action holds its parameters against its fields
		return nil
	}
	if err := r.knownExtra(); err != nil { // also where others may send anything
		return err
	}
	if r.route.anyQuery { // nothing is done
		return nil
	}
	if r.project != nil && r.project.LooseQuery {
		if !r.safe() && r.query.Has(api.ParamDryRun) && !slices.Contains(r.route.query, api.ParamDryRun) { // who asks for one does not want it done
			return errs.New(errs.Invalid, "unknown_parameter", "unknown query parameter: %s", api.ParamDryRun)
		}
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(r.query)) {
		base := name
		if strings.HasPrefix(name, api.ParamFilter+"[") && r.route.right.kind != rightFile { // the only one with a short form
			base = api.ParamFilter
		}
		switch {
		case name == api.ParamPretty, isTokenParameter(name), name == api.ParamLang && r.hasLanguage(), slices.Contains(r.route.query, base):
		case r.collection != nil && r.collection.QueryParams[name] != nil:
		default:
			return errs.New(errs.Invalid, "unknown_parameter", "unknown query parameter: %s%s", name, r.meant(name))
		}
	}
	return nil
}

// meant asks whether a parameter that is not known is one that the route has, mistyped.
func (r *request) meant(name string) string {
	known := slices.Clone(r.route.query)
	if r.collection != nil {
		known = slices.AppendSeq(known, maps.Keys(r.collection.QueryParams))
		slices.Sort(known)
	}
	if near := schema.Nearest(name, known); near != "" {
		return "; did you mean " + near + "?"
	}
	if r.route.pattern == api.RouteFile && isPictureParam(name) {
		return "; a picture of another size or type is asked for by " + api.ParamFilter + "=<name>, with a name from the collection's imageFilter"
	}
	return ""
}

// isPictureParam says that other services take a parameter of that name for a picture to be made.
func isPictureParam(name string) bool {
	switch strings.ToLower(name) {
	case "width", "height", "w", "h", "size", "thumb", "resize", "fit", "crop", "quality", "q", "format", "fm", "type":
		return true
	}
	return false
}

// safe says that the request changes nothing.
func (r *request) safe() bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// one gives a parameter that may be given once. A list between commas may come item by item, too: some generators of clients send every list so, whatever
// the OpenAPI document says.
func (r *request) one(name string) (string, error) {
	v := r.query[name]
	if len(v) > 1 {
		switch name {
		case api.ParamSort, api.ParamSelect, api.ParamLookup, api.ParamFacet, api.ParamFields:
			return strings.Join(v, ","), nil
		}
		return "", errs.New(errs.Invalid, "bad_parameter", "%s is given %d times", name, len(v))
	}
	if len(v) == 0 {
		return "", nil
	}
	return v[0], nil
}

// boolean gives a parameter that is true or false, false where it is absent. One that is empty is neither, such as a variable of a shell that is not set: taken for false,
// it would do what the caller wanted to try only.
func (r *request) boolean(name string) (bool, error) {
	text, err := r.given(name)
	if err != nil {
		return false, err
	}
	switch text {
	case "", "false", "0":
		return false, nil
	case "true", "1":
		return true, nil
	}
	return false, errs.New(errs.Invalid, "bad_parameter", "%s must be true or false", name)
}

// given is one for a parameter that has to have a value where it is not left out.
func (r *request) given(name string) (string, error) {
	text, err := r.one(name)
	if err == nil && text == "" && r.query.Has(name) {
		err = errs.New(errs.Invalid, "bad_parameter", "%s is empty: give it a value, or leave it out", name)
	}
	return text, err
}

// hasLanguage says that the route's answer depends on a language.
func (r *request) hasLanguage() bool { return r.route.right.kind == rightRecords || r.route.labels }

// language gives the language that the answer is to be in. Which of them there are, each collection knows.
func (r *request) language() (string, error) {
	if !r.hasLanguage() {
		return "", nil
	}
	tag, err := r.one(api.ParamLang)
	if err == nil && tag != "" && !schema.IsLanguage(tag) {
		err = errs.New(errs.Invalid, "bad_parameter", "%s must be a language tag such as en or de-AT", api.ParamLang)
	}
	return tag, err
}

// integer gives a whole number, or nil when the parameter is absent.
func (r *request) integer(name string) (*int64, error) {
	text, err := r.given(name)
	if err != nil || text == "" {
		return nil, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, errs.New(errs.Invalid, "bad_parameter", "%s must be a whole number", name)
	}
	return &n, nil
}

// listParams reads the parameters of a list.
func (r *request) listParams() (query.Params, error) {
	var p query.Params
	var err error
	for name, dst := range map[string]*string{
		api.ParamSort: &p.Sort, api.ParamSelect: &p.Select, api.ParamProjection: &p.Projection, api.ParamAfter: &p.After,
		api.ParamLookup: &p.Lookup,
	} {
		if *dst, err = r.one(name); err != nil {
			return p, err
		}
	}
	if p.Limit, err = r.integer(api.ParamLimit); err != nil {
		return p, err
	}
	offset, err := r.integer(api.ParamOffset)
	if err != nil {
		return p, err
	}
	if offset != nil {
		p.Offset = *offset
	}
	if p.Count, err = r.boolean(api.ParamCount); err != nil {
		return p, err
	}
	if p.Where, err = r.filter(); err != nil {
		return p, err
	}
	if p.Search, err = r.search(); err != nil {
		return p, err
	}
	if p.Search.Highlight, err = r.boolean(api.ParamHighlight); err != nil {
		return p, err
	}
	if r.query.Has(api.ParamQLimit) {
		return p, errs.New(errs.Invalid, "bad_parameter", "%s is for facets: a list has limit", api.ParamQLimit)
	}
	p.Search.Explain, err = r.boolean(api.ParamExplain)
	return p, err
}

// search reads what is looked for.
func (r *request) search() (q query.Search, err error) {
	if q.Text, err = r.one(api.ParamQ); err != nil {
		return q, err
	}
	if q.Text == "" && r.query.Has(api.ParamQ) {
		return q, errs.New(errs.Invalid, "bad_search", "q has no word to look for")
	}
	q.Name, err = r.one(api.ParamQName)
	return q, err
}

// window reads how many of what was found are counted.
func (r *request) window() (int64, error) {
	text, err := r.given(api.ParamQLimit)
	switch {
	case err != nil || text == "":
		return 0, err
	case !r.query.Has(api.ParamQ):
		return 0, errs.New(errs.Invalid, "bad_parameter", "%s needs %s, the words to look for", api.ParamQLimit, api.ParamQ)
	case text == "all":
		return -1, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, errs.New(errs.Invalid, "bad_parameter", "%s must be a whole number above 0, or all", api.ParamQLimit)
	}
	return n, nil
}

// filter reads the filter in either form: filter={…JSON…}, or filter[status]=published&filter[views][gte]=10.
func (r *request) filter() (query.Where, error) {
	whole := r.query[api.ParamFilter]
	short, size, err := r.shortFilter()
	switch {
	case err != nil:
		return query.Where{}, err
	case len(whole) > 1, len(whole) == 1 && len(short) > 0:
		return query.Where{}, errs.New(errs.Invalid, "bad_filter", "give one filter: either filter={…} or filter[field]=value")
	case len(whole) == 1 && strings.TrimSpace(whole[0]) != "":
		doc, err := document.ParseJSON([]byte(whole[0]))
		if err != nil {
			e := *errs.From(err)
			e.Message = "filter: " + e.Message
			return query.Where{}, &e
		}
		return query.Where{Filter: doc, Bytes: len(whole[0])}, nil
	}
	return query.Where{Filter: short, Bytes: size}, nil
}

// hasFilter tells whether the request names a filter, even an empty one.
func (r *request) hasFilter() bool {
	for name, v := range r.query {
		if name == api.ParamFilter && strings.TrimSpace(v[0]) != "" || strings.HasPrefix(name, api.ParamFilter+"[") {
			return true
		}
	}
	return false
}

func (r *request) shortFilter() (bson.D, int, error) {
	var names []string
	for name := range r.query {
		if strings.HasPrefix(name, api.ParamFilter+"[") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var clauses bson.A
	size := 0
	for _, name := range names {
		path, op, ok := shortName(strings.TrimPrefix(name, api.ParamFilter))
		if !ok {
			return nil, 0, errs.New(errs.Invalid, "bad_filter", "%s must look like filter[field]=value or filter[field][gte]=value", name)
		}
		options := r.query[api.ParamFilter+"["+path+"][options]"]
		for i, v := range r.query[name] {
			size += len(name) + len(v)
			if op == "options" && len(r.query[api.ParamFilter+"["+path+"][regex]"]) > i { // goes with that
				continue
			}
			condition := bson.D{{Key: "$" + op, Value: shortValue(op, v)}}
			if op == "regex" && len(options) > i {
				condition = append(condition, bson.E{Key: "$options", Value: options[i]})
			}
			clauses = append(clauses, bson.D{{Key: path, Value: condition}})
		}
	}
	switch len(clauses) {
	case 0:
		return nil, 0, nil
	case 1:
		doc, _ := clauses[0].(bson.D)
		return doc, size, nil
	}
	return bson.D{{Key: "$and", Value: clauses}}, size, nil
}

// shortName takes "[path]" or "[path][op]" apart. Logical operators have no short form.
func shortName(s string) (path, op string, ok bool) {
	s, ok = strings.CutPrefix(s, "[")
	if !ok || !strings.HasSuffix(s, "]") {
		return "", "", false
	}
	path, op, nested := strings.Cut(strings.TrimSuffix(s, "]"), "][")
	if !nested {
		op = "eq"
	}
	valid := path != "" && op != "" && !strings.ContainsAny(path+op, "[]$")
	return path, op, valid
}

// shortValue gives a constant whose type the field decides; lists are separated by commas.
func shortValue(op, v string) any {
	switch op {
	case "in", "nin", "all":
		list := bson.A{}
		for item := range strings.SplitSeq(v, ",") {
			list = append(list, fieldtype.Untyped(item))
		}
		return list
	}
	if op == "regex" || op == "options" { // patterns, whatever the field's type
		return v
	}
	return fieldtype.Untyped(v)
}

// isTokenParameter recognizes the query form of the header Token, whose name is not case-sensitive.
func isTokenParameter(name string) bool { return strings.EqualFold(name, api.ParamToken) }
