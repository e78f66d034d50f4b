package openapi

import (
	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/project"
)

// View is what an asker may know of a project. It is not changed.
type View struct {
	Project     *project.Project
	Lang        string // of the texts for people; "" for their default
	Collections []Collection
	Actions     []Action
}

// Collection is a collection of which the asker may do something.
type Collection struct {
	*project.Collection
	Grants      map[access.Method]access.Grant // without the methods that the asker may not use
	Projections []string                       // those that they may name
	Searches    []string                       // those that find something for them, by name
	Unnameable  *document.PathSet              // what they may not name in a query; nil: nothing
}

// Action is an action that the asker may call.
type Action struct {
	*project.Action
	Methods []access.Method // Get, Post or both
}

// readable gives the view of a collection by its name; nil: the asker may not read it.
func (v *View) readable(name string) *Collection {
	for i, c := range v.Collections {
		if _, may := c.Grants[access.Get]; c.Name == name && may {
			return &v.Collections[i]
		}
	}
	return nil
}
