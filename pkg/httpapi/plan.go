package httpapi

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
)

// The bounds of a config that is sent.
const (
	maxBundle      = 8 << 20 // bytes, of the archive and of all that is in it
	maxBundleFile  = 1 << 20
	maxBundleFiles = 1000
)

// plan tells what a reload would change: with the files on disk, or with those of the archive in the body.
func (s *Server) plan(w http.ResponseWriter, r *request) error {
	data, err := r.body(w)
	if err != nil {
		return err
	}
	var bundle *project.Bundle
	if len(data) > 0 {
		if _, err := r.mediaType(api.MediaTar); err != nil {
			return err
		}
		if bundle, err = readBundle(data); err != nil {
			return err
		}
	}
	// What records fail a rule tells what is in them: of rules that the caller has sent, nobody learns more than they may read.
	counting := bundle == nil || s.seesAll(r)
	p, err := s.cfg.Control.Plan(r.Context(), r.project.ID, bundle, counting)
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, p)
}

// seesAll says that the caller may read every record of the project: administrators, and its admin tokens that grant records.
func (s *Server) seesAll(r *request) bool {
	if r.principal.Kind == access.KindToken {
		t, ok := r.project.AdminTokens.Match(r.principal.TokenHash, s.cfg.Now())
		return ok && t.Has("collections")
	}
	return r.principal.Full()
}

// planHash is the form of a plan's hash.
var planHash = regexp.MustCompile(`^[0-9a-f]{32}$`)

// planned gives what a reload has to be like.
func (r *request) planned() (hash string, allow api.Risk, err error) {
	if hash, err = r.one(api.ParamPlan); err != nil {
		return "", "", err
	}
	if r.query.Has(api.ParamPlan) && !planHash.MatchString(hash) {
		return "", "", errs.New(errs.Invalid, "bad_parameter", "plan is the hash of a plan, 32 hex digits: the member hash of what POST …/admin/plan answers")
	}
	allow, err = r.allow()
	return hash, allow, err
}

// allow gives the greatest risk that is allowed; "": the request does not say.
func (r *request) allow() (api.Risk, error) {
	text, err := r.one(api.ParamAllow)
	if err != nil {
		return "", err
	}
	allow := api.Risk(text)
	if r.query.Has(api.ParamAllow) && !slices.Contains(api.Risks(), allow) {
		return "", errs.New(errs.Invalid, "bad_parameter", "allow is a risk: safe, slow, breaking or destructive")
	}
	return allow, nil
}

// readBundle reads the files of a tar archive, whose paths are as from the project's directory. Nothing of it is written
// anywhere. What can't be a config's is refused, not left out, so that a plan is never of something else than was sent.
func readBundle(data []byte) (*project.Bundle, error) {
	refused := func(format string, args ...any) *errs.Error {
		return errs.New(errs.Invalid, "bad_bundle", format, args...)
	}
	files := map[string][]byte{}
	total := 0
	for archive := tar.NewReader(bytes.NewReader(data)); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, refused("the body is no tar archive, or its end is missing").With(err)
		}
		name := strings.TrimSuffix(strings.TrimPrefix(head.Name, "./"), "/")
		switch head.Typeflag {
		case tar.TypeXGlobalHeader:
			continue
		case tar.TypeDir:
			if name != "" && !fs.ValidPath(name) {
				return nil, refused("the path %q leads out of the project's directory, or is not a plain one", shortened(head.Name))
			}
			continue
		case tar.TypeReg:
		default:
			return nil, refused("%q is no regular file: an archive of a config has files and folders, no links", shortened(head.Name))
		}
		_, twice := files[name]
		switch {
		case !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\\\x00"):
			return nil, refused("the path %q leads out of the project's directory, or is not a plain one", shortened(head.Name))
		case twice:
			return nil, refused("the archive has %q twice", shortened(name))
		case len(files) >= maxBundleFiles:
			return nil, errs.New(errs.TooLarge, "bundle_too_large", "the archive has more than %d files", maxBundleFiles)
		}
		content, err := io.ReadAll(io.LimitReader(archive, maxBundleFile+1)) // a sparse file has more than its bytes
		if err != nil {
			return nil, refused("the archive ends within %q", shortened(name))
		}
		if total += len(content); len(content) > maxBundleFile || total > maxBundle {
			return nil, errs.New(errs.TooLarge, "bundle_too_large", "%q is too large: a file has %d bytes at most, all of them %d", shortened(name), maxBundleFile, maxBundle)
		}
		files[name] = content
	}
	if len(files) == 0 {
		return nil, refused("the archive has no files")
	}
	return &project.Bundle{Files: files}, nil
}
