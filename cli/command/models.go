package command

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// FindOrg reads an organization by slug or id.
func FindOrg(ctx context.Context, c *client.Client, ref string) (*api.Org, error) {
	return findBy(ctx, c.Orgs(), "org", "slug", ref)
}

// FindTeam reads a team by slug or id.
func FindTeam(ctx context.Context, c *client.Client, ref string) (*api.Team, error) {
	return findBy(ctx, c.Teams(), "team", "slug", ref)
}

// FindUser reads a user by username, in any case, or id.
func FindUser(ctx context.Context, c *client.Client, ref string) (*api.User, error) {
	return findBy(ctx, c.Users(), "user", "username", strings.ToLower(ref))
}

// FindToken reads a personal access token by name or id.
func FindToken(ctx context.Context, c *client.Client, ref string) (*api.Token, error) {
	return findBy(ctx, c.Tokens(), "token", "name", ref)
}

// findBy reads the record that has ref in a field, or else as its id: who can choose a name can't take another record's place
// in the commands of those who use names.
func findBy[T, W any](ctx context.Context, m client.Model[T, W], noun, field, ref string) (*T, error) {
	filter, err := json.Marshal(map[string]string{field: ref})
	if err != nil {
		return nil, fmt.Errorf("ask for the %s: %w", noun, err)
	}
	page, err := m.List(ctx, client.Query{Filter: string(filter), Limit: 2})
	switch {
	case client.IsStatus(err, http.StatusForbidden) && isID(ref): // some may read one, but no list
		return m.Get(ctx, ref)
	case err != nil:
		return nil, err
	case len(page.Items) > 1:
		return nil, Usagef("several %ss are named %s: give the id of one; svcctl %s list -o wide shows them", noun, ref, noun)
	case len(page.Items) == 1:
		return &page.Items[0], nil
	case isID(ref):
		return m.Get(ctx, strings.ToLower(ref))
	}
	return nil, &Error{
		Exit: ExitNotFound, Code: "not_found", Message: fmt.Sprintf("%s not found: %s", noun, ref),
		Hint: "svcctl " + noun + " list shows those that you may see",
	}
}

// isID says that a reference has the form of an id: 24 hex digits.
func isID(ref string) bool {
	return len(ref) == 24 && strings.Trim(strings.ToLower(ref), "0123456789abcdef") == ""
}

// OrgID gives the id of an organization that is named by slug or id; "" is none.
func OrgID(ctx context.Context, c *client.Client, ref string) (string, error) {
	if ref == "" {
		return "", nil
	}
	return idOf(ref, func() (*api.Org, error) { return FindOrg(ctx, c, ref) }, func(o *api.Org) string { return o.ID })
}

// TeamID gives the id of a team that is named by slug or id.
func TeamID(ctx context.Context, c *client.Client, ref string) (string, error) {
	return idOf(ref, func() (*api.Team, error) { return FindTeam(ctx, c, ref) }, func(t *api.Team) string { return t.ID })
}

// IDs gives the ids of what is named by slug or id, each as one finds it: OrgID or TeamID.
func IDs(ctx context.Context, c *client.Client, refs []string, one func(context.Context, *client.Client, string) (string, error)) ([]string, error) {
	ids := make([]string, len(refs))
	for i, ref := range refs {
		var err error
		if ids[i], err = one(ctx, c, ref); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// idOf gives the id of what find finds. An id that it can't read is given as it is: the service says what it is worth.
func idOf[T any](ref string, find func() (*T, error), id func(*T) string) (string, error) {
	item, err := find()
	if isID(ref) && (client.IsStatus(err, http.StatusForbidden) || client.IsStatus(err, http.StatusNotFound)) {
		return strings.ToLower(ref), nil
	}
	if err != nil {
		return "", err
	}
	return id(item), nil
}
