package httpapi

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/assets"
	"github.com/svcctl/svc/pkg/errs"
)

// paramVersion is whatever a site puts behind the path of an asset so that caches take it for another file.
const paramVersion = "v"

func (s *Server) listAssets(w http.ResponseWriter, r *request) error {
	out := api.List[api.Asset]{Items: []api.Asset{}, Limit: len(r.project.Assets)}
	for _, a := range r.project.Assets {
		out.Items = append(out.Items, api.Asset{Name: a.Name, Path: a.Path, Src: api.AssetPath(r.project.Namespace, a.Name, "")})
	}
	return r.json(w, http.StatusOK, out)
}

// getAsset answers with a file of an asset. Nobody is told why a path is none.
func (s *Server) getAsset(w http.ResponseWriter, r *request) error {
	asset, ok := r.project.Asset(r.param("asset"))
	name, sound := r.filePath()
	if !ok || !sound {
		return errs.ErrNotFound
	}
	download, err := r.boolean(api.ParamDownload)
	if err != nil {
		return err
	}
	f, err := s.cfg.Assets.Open(r.Context(), assets.Folder{Dir: r.project.Dir, Path: asset.Path}, name)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return r.serveFile(w, content{name: f.Name, media: f.Type, tag: f.Hash, modified: f.Modified, body: f, shared: true, download: download})
}

// filePath is the end of the request's path that names a file. An escaped slash is no slash: what stands between here and
// the client may not take it for one either.
func (r *request) filePath() (name string, ok bool) {
	given := chi.URLParam(r.Request, "*")
	if r.URL.RawPath == "" {
		return given, true
	}
	parts := strings.Split(given, "/")
	for i, part := range parts {
		var err error
		if parts[i], err = url.PathUnescape(part); err != nil || strings.Contains(parts[i], "/") {
			return "", false
		}
	}
	return strings.Join(parts, "/"), true
}
