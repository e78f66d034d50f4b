package command

import (
	"context"
	"encoding/json"
	"fmt"
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

// findBy reads a record by id or by a field that is unique.
func findBy[T, W any](ctx context.Context, m client.Model[T, W], noun, field, ref string) (*T, error) {
	if isID(ref) {
		return m.Get(ctx, ref)
	}
	filter, err := json.Marshal(map[string]string{field: ref})
	if err != nil {
		return nil, fmt.Errorf("ask for the %s: %w", noun, err)
	}
	page, err := m.List(ctx, client.Query{Filter: string(filter), Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(page.Items) == 0 {
		return nil, &Error{
			Exit: ExitNotFound, Code: "not_found", Message: fmt.Sprintf("%s not found: %s", noun, ref),
			Hint: "svcctl " + noun + " list shows those that you may see",
		}
	}
	return &page.Items[0], nil
}

// isID says that a reference is an id: 24 hex digits.
func isID(ref string) bool {
	return len(ref) == 24 && strings.Trim(strings.ToLower(ref), "0123456789abcdef") == ""
}

// OrgID gives the id of an organization that is named by slug or id; "" is none.
func OrgID(ctx context.Context, c *client.Client, ref string) (string, error) {
	if ref == "" || isID(ref) {
		return strings.ToLower(ref), nil
	}
	o, err := FindOrg(ctx, c, ref)
	if err != nil {
		return "", err
	}
	return o.ID, nil
}

// TeamID gives the id of a team that is named by slug or id.
func TeamID(ctx context.Context, c *client.Client, ref string) (string, error) {
	if isID(ref) {
		return strings.ToLower(ref), nil
	}
	t, err := FindTeam(ctx, c, ref)
	if err != nil {
		return "", err
	}
	return t.ID, nil
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
