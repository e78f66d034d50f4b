package records

import (
	"bytes"
	"context"
	"errors"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/search"
)

// FacetParams are the parameters of facets.
type FacetParams struct {
	query.Where
	Fields string // "status,tags"
	// Window is how many of the records that were found are counted, the best; 0: the topK of a search of mode rrf, else as many as can be;
	// negative: as many as can be.
	Window int64
}

// Facet is the values of a field, with how many records have each: those that most have come first.
type Facet struct {
	Field  string // as the caller names it
	Values []pipeline.FacetValue
}

// Facets are those of some fields.
type Facets struct {
	Facets    []Facet
	Window    int64 // how many records were looked at
	Truncated bool  // a field has more values than are listed, or more records were found than were looked at
}

// maxFacetValues is how many values a facet lists.
const maxFacetValues = 1000

var errFacetTooLarge = errs.New(errs.Invalid, "facet_too_large",
	"the values of these fields are too large to be listed: ask for fewer fields, or for fields with shorter values")

// Facets counts the values of fields in the records that the caller may read.
func (s *Service) Facets(ctx context.Context, c *Call, p FacetParams) (*Facets, error) {
	g, err := s.grant(ctx, c, access.Get)
	if err != nil {
		return nil, err
	}
	if !g.Facet {
		return nil, withoutFlag(c, "facet")
	}
	r := s.resolver(ctx, c, g)
	fields, err := r.Facets(p.Fields)
	if err != nil {
		return nil, err
	}
	look := p.Search
	p.Search = query.Search{}
	filter, err := r.Filter(p.Where)
	if err != nil {
		return nil, err
	}
	filter, cut, err := s.windowed(ctx, c, g, r, filter, look, p.Window)
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(fields))
	for i, f := range fields {
		paths[i] = f.Path
	}
	counts, err := pipeline.Facets(mql.And(g.Filter, filter), paths, maxFacetValues+1)
	if err != nil {
		return nil, err
	}
	out := &Facets{Truncated: cut}
	err = s.runPipeline(ctx, c, counts, func(doc bson.Raw) error { out.read(doc, fields); return nil })
	if errors.Is(err, pipeline.ErrResultSize) {
		return nil, errFacetTooLarge.With(err)
	}
	return out, err
}

// maxFacetWindow is how many of the records that were found are counted at most.
const maxFacetWindow = 100_000

// windowed narrows a filter to the best of what was found, and says whether there was more.
func (s *Service) windowed(
	ctx context.Context, c *Call, g access.Grant, r query.Resolver, own *mql.Filter, look query.Search, window int64,
) (*mql.Filter, bool, error) {
	config, err := searchOf(c, g, look)
	if err != nil || config == nil {
		return own, false, err
	}
	if config.Mode == search.Regex {
		pattern, err := byPattern(r, config, g, look.Text)
		return mql.And(own, pattern), false, err
	}
	topK, n := 0, maxFacetWindow
	if window > 0 {
		topK, n = int(min(window, maxFacetWindow)), int(min(window, maxFacetWindow))
	} else if window < 0 {
		topK = maxFacetWindow
	}
	f, err := s.seek(ctx, c, g, config, look, own, topK)
	if err != nil {
		return nil, false, err
	}
	defer f.close()
	ctx, cancel := s.paced(ctx, c)
	defer cancel()
	ids, cut, err := f.window(ctx, n)
	return mql.And(own, withIDs(ids)), cut || f.Cut(), s.storeError(ctx, err)
}

// read takes the one result of pipeline.Facets.
func (f *Facets) read(doc bson.Raw, fields []query.FacetField) {
	documents, values := pipeline.ReadFacets(bytes.Clone(doc))
	f.Window = documents
	for i, list := range values {
		if len(list) > maxFacetValues {
			list, f.Truncated = list[:maxFacetValues], true
		}
		f.Facets = append(f.Facets, Facet{Field: fields[i].Name, Values: list})
	}
}

// AppendJSON appends the answer to dst.
func (f *Facets) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"facets":{`...)
	for i, facet := range f.Facets {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendText(dst, facet.Field), `:[`...)
		for j, one := range facet.Values {
			if j > 0 {
				dst = append(dst, ',')
			}
			dst = document.AppendJSONValue(append(dst, `{"value":`...), one.Value, nil)
			dst = strconv.AppendInt(append(dst, `,"count":`...), one.Count, 10)
			dst = append(dst, '}')
		}
		dst = append(dst, ']')
	}
	dst = strconv.AppendInt(append(dst, `},"window":`...), f.Window, 10)
	dst = strconv.AppendBool(append(dst, `,"truncated":`...), f.Truncated)
	return append(dst, '}')
}

func appendText(dst []byte, text string) []byte {
	v, err := document.MarshalValue(text)
	if err != nil { // a path that was resolved is text
		return dst
	}
	return document.AppendJSONValue(dst, v, nil)
}
