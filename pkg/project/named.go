package project

import (
	"cmp"
	"slices"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/schema"
)

// Named is somebody of the service whom a config gives rights by name.
type Named struct {
	Kind  NamedKind
	Name  string
	Where []string // the collections, actions and snapshot profiles, in words
}

// NamedKind is what a name is of.
type NamedKind string

// What a config names: a team by a set of permissions, and by the permissions of a snapshot profile all of these.
const (
	NamedTeam   NamedKind = "team"
	NamedHolder NamedKind = "user or team"
	NamedScope  NamedKind = "scope"
)

// Named lists whom the config gives rights by name, by kind and name. Whether there is anybody by that name it does not know; scripts may know more.
func (p *Project) Named() []Named {
	type key struct {
		kind NamedKind
		name string
	}
	where := map[key][]string{}
	teams := func(permissions *schema.Permissions, at string) {
		if permissions == nil {
			return
		}
		for slug := range permissions.Teams {
			where[key{NamedTeam, slug}] = append(where[key{NamedTeam, slug}], at)
		}
	}
	for _, c := range p.Config.Collections {
		teams(c.Permissions, "collection "+c.Name)
	}
	for _, a := range p.Config.Actions {
		teams(a.Permissions, "action "+a.Name)
	}
	for _, s := range p.Config.Snapshots {
		for _, name := range s.Permissions {
			k := key{NamedHolder, name}
			if access.ValidScope(name) {
				k.kind = NamedScope
			}
			where[k] = append(where[k], "snapshots "+s.Name)
		}
	}
	out := make([]Named, 0, len(where))
	for k, places := range where {
		out = append(out, Named{k.kind, k.name, places})
	}
	slices.SortFunc(out, func(a, b Named) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return out
}
