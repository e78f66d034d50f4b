package auth

import (
	"context"

	"github.com/svcctl/svc/pkg/access"
)

// PrincipalOf gives the caller that a user would be now, with a session, and whether they are active: those who are not
// are refused as callers. It is for telling what somebody may do, never for letting them.
func (a *Auth) PrincipalOf(ctx context.Context, userID string) (p *access.Principal, active bool, err error) {
	u, err := a.users.get(ctx, userID)
	if err != nil {
		return nil, false, err
	}
	return principal(u), u.Active, nil
}
