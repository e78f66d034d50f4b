package command

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// notFound is how refusals end that say what kind of thing is not there, and not which one: the service gives no names back, since one may be a
// secret in the wrong place. Who has typed it may read it again.
const notFound = "not found"

// missed is what a refusal says, with the name of what is not found where its path has it: project not found: blgo.
func missed(e *client.Error) string {
	detail := e.Problem.Detail
	if e.Status != http.StatusNotFound {
		return detail
	}
	if e.Code() == "snapshot_not_found" && snapshotIn(e.Path) != "" {
		return strings.Replace(detail, "no snapshot of this id", "no snapshot "+snapshotIn(e.Path), 1)
	}
	if !strings.HasSuffix(detail, notFound) {
		return detail
	}
	if name := nameOf(e); name != "" {
		return detail + ": " + name
	}
	return detail
}

// nameOf finds in the path of a refusal what is not found; "": the path has no name of it.
func nameOf(e *client.Error) string {
	path := strings.TrimPrefix(e.Path, api.Prefix)
	_, rest, ok := strings.Cut(path, "/_/")
	if !ok {
		if namespace, ok := strings.CutPrefix(path, "/_openapi/"); ok && e.Code() == "project_not_found" {
			return namespace
		}
		return ""
	}
	parts := strings.Split(rest, "/")
	behind := func(word string) string {
		if i := slices.Index(parts[1:], word); i >= 0 && i+2 < len(parts) {
			return parts[i+2]
		}
		return ""
	}
	ofProject := len(parts) > 1 && parts[1] == "_"
	switch {
	case e.Code() == "project_not_found":
		return parts[0]
	case e.Code() == "collection_not_found" && !ofProject && len(parts) > 1:
		return parts[1]
	case e.Code() == "collection_not_found":
		return behind("collections")
	case e.Code() == "job_not_found":
		return behind("jobs")
	case e.Code() == "action_not_found":
		return behind("actions")
	case e.Code() == "run_not_found":
		if run := behind("runs"); run != "" {
			return run
		}
		return behind("regenerate-search")
	case e.Code() == "not_found" && ofProject && len(parts) > 2 && parts[2] == "assets":
		return strings.Join(parts[3:], "/")
	case e.Code() == "not_found" && !ofProject:
		return strings.Join(parts[1:], "/")
	}
	return ""
}

// Named is err with the name of what is not found, where a refusal says that something isn't and the path of the request has no name.
func Named(err error, name string) error {
	refused, ok := errors.AsType[*client.Error](err)
	if !ok || name == "" || refused.Status != http.StatusNotFound || !strings.HasSuffix(refused.Problem.Detail, notFound) || nameOf(refused) != "" {
		return err
	}
	named := *refused
	named.Problem.Detail += ": " + name
	return &named
}
