package query

import (
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/errs"
)

// FacetField is a field whose values are counted.
type FacetField struct {
	Name string // as the caller gives it
	Path string // as it is stored
}

// maxFacetFields is how many fields one request may count.
const maxFacetFields = 16

// Facets reads the names of fields to count the values of: "status,tags".
func (r Resolver) Facets(names string) ([]FacetField, error) {
	var out []FacetField
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		if name == "" || slices.ContainsFunc(out, func(f FacetField) bool { return f.Name == name }) {
			continue
		}
		path, _, err := r.Path(name)
		if err != nil {
			return nil, err
		}
		if err := r.comparable(path, name, "facet", nil); err != nil {
			return nil, err
		}
		out = append(out, FacetField{Name: name, Path: path})
	}
	switch {
	case len(out) == 0:
		return nil, errs.New(errs.Invalid, "missing_parameter", "missing required parameter: facet")
	case len(out) > maxFacetFields:
		return nil, limitError("facets of %d fields are asked for, the limit is %d", len(out), maxFacetFields)
	}
	return out, nil
}
