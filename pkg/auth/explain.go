package auth

import (
	"context"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/system"
)

// PrincipalOf gives the caller that a user would be now, with a session, and whether they are active: those who are not
// are refused as callers. It is for telling what somebody may do, never for letting them.
func (a *Auth) PrincipalOf(ctx context.Context, userID string) (p *access.Principal, active bool, err error) {
	u, err := a.users.get(ctx, userID)
	if err != nil {
		return nil, false, err
	}
	return u.principal, u.Active, nil
}

// PrincipalOfToken gives the caller that a personal access token stands for now, and whether it is taken: one that has
// expired or was revoked, or whose owner isn't active, is refused. It is for telling what a token may do, never for
// letting it.
func (a *Auth) PrincipalOfToken(ctx context.Context, t system.Token) (p *access.Principal, taken bool, err error) {
	u, err := a.users.get(ctx, t.UserID)
	if err != nil {
		return nil, false, err
	}
	return principalOfPAT(u, t.ID.Hex(), &t), a.takes(u, &t), nil
}
