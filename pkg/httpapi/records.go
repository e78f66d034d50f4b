package httpapi

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/records"
)

func (s *Server) listRecords(w http.ResponseWriter, r *request) error {
	switch {
	case r.query.Has(api.ParamAggregate):
		return s.aggregateRecords(w, r)
	case r.query.Has(api.ParamFacet):
		return s.facets(w, r, api.ParamFacet)
	case r.isOnly():
		return s.getRecord(w, r)
	}
	p, err := r.listParams()
	if err != nil {
		return err
	}
	page, err := s.cfg.Records.List(r.Context(), r.call(), p)
	if err != nil {
		return err
	}
	linkNext(w, r, api.RecordsPath(r.project.Namespace, r.collection.Name), page.Next)
	return r.respond(w, http.StatusOK, func(dst []byte) []byte { return appendPage(dst, page) })
}

// appendPage writes the list envelope around the records' own JSON.
func appendPage(dst []byte, page *records.Page) []byte {
	dst = append(dst, `{"items":[`...)
	for i, rec := range page.Items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = rec.AppendJSON(dst)
	}
	dst = append(dst, `],"limit":`...)
	dst = strconv.AppendInt(dst, page.Limit, 10)
	dst = append(dst, `,"offset":`...)
	dst = strconv.AppendInt(dst, page.Offset, 10)
	dst = append(dst, `,"hasMore":`...)
	dst = strconv.AppendBool(dst, page.HasMore)
	if page.Total >= 0 {
		dst = append(dst, `,"total":`...)
		dst = strconv.AppendInt(dst, page.Total, 10)
	}
	if page.Next != "" {
		dst = append(dst, `,"next":"`...)
		dst = append(dst, page.Next...) // base64url: nothing to escape
		dst = append(dst, '"')
	}
	return append(page.AppendExtra(dst), '}')
}

// linkNext names the next page of a list: this request's own address with the page's cursor. A token in the query is
// left out: links are kept and shared.
func linkNext(w http.ResponseWriter, r *request, path, cursor string) {
	if cursor == "" {
		return
	}
	q := make(url.Values, len(r.query)+1)
	for name, v := range r.query {
		if !isTokenParameter(name) && name != api.ParamOffset {
			q[name] = v
		}
	}
	q.Set(api.ParamAfter, cursor)
	w.Header().Set(api.HeaderLink, "<"+path+"?"+q.Encode()+`>; rel="next"`)
}

func (s *Server) countRecords(w http.ResponseWriter, r *request) error {
	where, err := r.filter()
	if err != nil {
		return err
	}
	if where.Search, err = r.search(); err != nil {
		return err
	}
	n, err := s.cfg.Records.Count(r.Context(), r.call(), where)
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, api.CountResult{Count: n})
}

func (s *Server) getRecord(w http.ResponseWriter, r *request) error {
	var p records.GetParams
	var err error
	for name, dst := range map[string]*string{api.ParamSelect: &p.Select, api.ParamProjection: &p.Projection, api.ParamLookup: &p.Lookup} {
		if *dst, err = r.one(name); err != nil {
			return err
		}
	}
	rec, err := s.readOne(r, p)
	if err != nil {
		return err
	}
	tag := etag(rec.Rev())
	w.Header().Set(api.HeaderETag, tag)
	if !rec.Made() && matchesAny(strings.Join(r.Header.Values(api.HeaderIfNoneMatch), ","), tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return r.respond(w, http.StatusOK, rec.AppendJSON)
}

// etag is the entity tag of a revision (RFC 9110).
func etag(rev int64) string { return `"` + strconv.FormatInt(rev, 10) + `"` }

// matchesAny says whether a list of entity tags names tag, by weak comparison.
func matchesAny(list, tag string) bool {
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimPrefix(strings.TrimSpace(item), "W/")
		if item == tag || item == "*" {
			return true
		}
	}
	return false
}

// ifMatch gives the revisions of which If-Match asks for one; none when there is no condition. Tags that no read gave,
// weak ones too, fit nothing (RFC 9110).
func (r *request) ifMatch() (revs []int64, err error) {
	if err := r.noIfNoneMatch(); err != nil {
		return nil, err
	}
	given := strings.Join(r.Header.Values(api.HeaderIfMatch), ",")
	if strings.TrimSpace(given) == "" {
		return nil, nil
	}
	for item := range strings.SplitSeq(given, ",") {
		item = strings.TrimSpace(item)
		if item == "*" {
			return nil, nil
		}
		if rev, err := strconv.ParseInt(strings.Trim(item, `"`), 10, 64); err == nil && rev > 0 && item == etag(rev) {
			revs = append(revs, rev)
		}
	}
	if len(revs) == 0 {
		return nil, errs.New(errs.Precondition, "stale", `If-Match must name an ETag that a read of the record gave, with its quotes, such as "3"`)
	}
	return revs, nil
}

func (s *Server) createRecords(w http.ResponseWriter, r *request) error {
	if err := r.noIfMatch(); err != nil {
		return err
	}
	body, err := r.record(w, access.Post)
	if err != nil {
		return err
	}
	items, bulk, err := r.bulkItems(body)
	if err != nil {
		return err
	}
	if bulk {
		return s.bulkCreate(w, r, items)
	}
	call, err := r.writeCall()
	if err != nil {
		return err
	}
	res, err := s.cfg.Records.Create(r.Context(), call, body)
	switch {
	case err != nil:
		return err
	case call.DryRun:
		return s.dryRun(w, r, nil, []records.Item{{}})
	}
	if res.ID != "" { // else a hook did something else
		w.Header().Set(api.HeaderLocation, api.RecordPath(r.project.Namespace, r.collection.Name, res.ID))
	}
	return r.written(w, http.StatusCreated, res)
}

// written answers with a written record as the caller may read it, or with its id alone.
func (r *request) written(w http.ResponseWriter, status int, res records.Written) error {
	if res.Record != nil && res.Record.Rev() > 0 {
		w.Header().Set(api.HeaderETag, etag(res.Record.Rev()))
	}
	if r.minimal(w.Header()) || res.Record == nil {
		return r.json(w, status, api.DeleteResult{ID: res.ID, Warning: res.Warning})
	}
	return r.respond(w, status, res.Record.AppendJSON)
}

func (s *Server) updateRecord(w http.ResponseWriter, r *request) error {
	change, err := r.change(w)
	if err != nil {
		return err
	}
	return s.update(w, r, change)
}

// change reads the body of a PUT.
func (r *request) change(w http.ResponseWriter) (change records.Change, err error) {
	replace, err := r.boolean(api.ParamReplace)
	if err != nil {
		return change, err
	}
	if replace {
		change.Mode = records.Overwrite
	}
	change.Body, err = r.record(w, access.Put)
	return change, err
}

func (s *Server) update(w http.ResponseWriter, r *request, change records.Change) (err error) {
	if change.IfRev, err = r.ifMatch(); err != nil {
		return err
	}
	call, err := r.writeCall()
	if err != nil {
		return err
	}
	res, err := s.cfg.Records.Update(r.Context(), call, r.param("id"), change)
	switch {
	case err != nil:
		return err
	case call.DryRun:
		return s.dryRun(w, r, nil, []records.Item{{ID: res.ID}})
	}
	return r.written(w, http.StatusOK, res)
}

func (s *Server) patchRecord(w http.ResponseWriter, r *request) error {
	media, err := r.mediaType(api.MediaMergePatch, api.MediaJSONPatch, api.MediaJSON, api.MediaForm)
	if err != nil {
		return err
	}
	if media == api.MediaForm {
		body, err := r.form(w, access.Put)
		if err != nil {
			return err
		}
		return s.update(w, r, records.Change{Mode: records.Merge, Body: body})
	}
	data, err := r.body(w)
	if err != nil {
		return err
	}
	if media == api.MediaJSONPatch {
		return s.update(w, r, records.Change{Mode: records.JSONPatch, Patch: data})
	}
	body, err := document.ParseJSON(data)
	if err != nil {
		return err
	}
	return s.update(w, r, records.Change{Mode: records.Merge, Body: body})
}

func (s *Server) deleteRecord(w http.ResponseWriter, r *request) error {
	revs, err := r.ifMatch()
	if err != nil {
		return err
	}
	call, err := r.writeCall()
	if err != nil {
		return err
	}
	res, err := s.cfg.Records.Delete(r.Context(), call, r.param("id"), revs...)
	switch {
	case err != nil:
		return err
	case call.DryRun:
		return s.dryRun(w, r, nil, []records.Item{{ID: res.ID}})
	}
	return r.written(w, http.StatusOK, res)
}
