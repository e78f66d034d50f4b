// Package runs makes search indexes anew as runs that anybody can follow: package operation keeps them, package engine does the work.
//
// Start reading at Service.
package runs

import (
	"context"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/search/engine"
)

// name is that of all runs which make indexes anew.
const name = "regenerate"

// Service starts such runs, and tells of them. It is safe for concurrent use.
type Service struct {
	*engine.Engine

	runs *operation.Runs
}

// New makes a Service.
func New(e *engine.Engine, runs *operation.Runs) *Service { return &Service{e, runs} }

// Target is what is made anew.
type Target struct {
	Collection string // "": all
	Search     string // "": all of the collection
}

// Start starts a run that makes indexes anew. What there is none of is errs.NotFound.
func (s *Service) Start(ctx context.Context, p *project.Project, what Target, by operation.Actor) (*operation.Run, error) {
	c, err := find(p, what)
	if err != nil {
		return nil, err
	}
	spec := operation.Spec{
		Database: project.DatabaseName(p.Namespace), Kind: operation.Search, Name: name, Trigger: operation.Manual, By: by,
		Input: bson.D{{Key: "collection", Value: what.Collection}, {Key: "search", Value: what.Search}},
	}
	return s.runs.Start(ctx, spec, func(ctx context.Context, live *operation.Live) (operation.Outcome, error) {
		err := s.Regenerate(ctx, p, c, what.Search, func(collection, search string, done, total int64) {
			message := collection + "/" + search
			if why := s.heldUp(p, collection, search); why != "" {
				message += ": " + why
			}
			live.Progress(operation.Progress{Phase: search, Collection: collection, Done: done, Total: max(done, total), Message: message})
		})
		return operation.Outcome{}, err
	})
}

// heldUp says why the vectors of a search don't come; "": they do.
func (s *Service) heldUp(p *project.Project, collection, name string) string {
	for _, c := range p.Collections {
		if c.Name != collection {
			continue
		}
		for _, one := range s.Queue(p, c).Searches {
			if one.Name == name && one.Failure != nil {
				return errs.From(one.Failure).Message
			}
		}
	}
	return ""
}

// Check says whether there is something to make anew; what there is none of is errs.NotFound.
func Check(p *project.Project, what Target) error {
	_, err := find(p, what)
	return err
}

// find gives the collection that is meant, nil for all of them, if there is something to make anew.
func find(p *project.Project, what Target) (*project.Collection, error) {
	var in *project.Collection
	for _, c := range p.Collections {
		if what.Collection != "" && c.Name != what.Collection {
			continue
		}
		if what.Collection != "" {
			in = c
		}
		for _, one := range c.Searches {
			if one.Mode.Indexed() && (what.Search == "" || what.Search == one.Name) {
				return in, nil
			}
		}
	}
	switch {
	case what.Collection == "":
		return nil, errs.New(errs.NotFound, "unknown_search", "%s has no search with an index", p.Namespace)
	case in == nil:
		return nil, errs.ErrCollectionNotFound
	case what.Search == "":
		return nil, errs.New(errs.NotFound, "unknown_search", "%s has no search with an index", what.Collection)
	}
	var known []string
	for _, one := range in.Searches {
		if one.Mode.Indexed() {
			known = append(known, one.Name)
		}
	}
	if len(known) == 0 {
		return nil, errs.New(errs.NotFound, "unknown_search", "%s has no search with an index", what.Collection)
	}
	return nil, errs.New(errs.NotFound, "unknown_search", "%s has no search %.60s with an index; it has %s", what.Collection, what.Search, strings.Join(known, ", "))
}

// Get gives a run.
func (s *Service) Get(ctx context.Context, p *project.Project, id string) (*operation.Run, error) {
	return s.runs.Get(ctx, project.DatabaseName(p.Namespace), operation.Ref{Kind: operation.Search, Name: name, ID: id})
}

// Follow is operation.Runs.Follow for such a run.
func (s *Service) Follow(ctx context.Context, p *project.Project, id string, after int64, fn func(operation.Event) error) error {
	return s.runs.Follow(ctx, project.DatabaseName(p.Namespace), operation.Ref{Kind: operation.Search, Name: name, ID: id}, after, fn)
}
