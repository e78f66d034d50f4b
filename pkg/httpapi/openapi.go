package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/jsonyaml"
	"github.com/svcctl/svc/pkg/openapi"
)

// openAPI describes the project to the caller: what they may do in it, as it is now.
func (s *Server) openAPI(w http.ResponseWriter, r *request) error {
	format, err := r.one(api.ParamFormat)
	switch {
	case err != nil:
		return err
	case format == "":
		format = api.FormatJSON
	case format != api.FormatJSON && format != api.FormatYAML:
		return errs.New(errs.Invalid, "bad_parameter", "%s must be %s or %s", api.ParamFormat, api.FormatJSON, api.FormatYAML)
	}
	view, err := s.catalog.OpenAPI(r.Context(), r.asker())
	if err != nil {
		return err
	}
	doc, err := openapi.AppendJSON(nil, openapi.Document(view))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(doc)
	tag := fmt.Sprintf(`"%d-%s-%s"`, r.project.Generation, format, hex.EncodeToString(sum[:8]))
	w.Header().Set(api.HeaderETag, tag)
	if matchesAny(strings.Join(r.Header.Values(api.HeaderIfNoneMatch), ","), tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	if format == api.FormatJSON {
		return r.respond(w, http.StatusOK, func(dst []byte) []byte { return append(dst, doc...) })
	}
	text, err := jsonyaml.Convert(doc)
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, api.MediaYAML, text)
}
