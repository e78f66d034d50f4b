package system

import (
	"context"
	"slices"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/errs"
)

// Standing is what a user has by themselves and by their teams and orgs (decisions, section 7).
type Standing struct {
	Scopes  []string // own and the teams' together, each once
	Limited bool     // has to do with the orgs of OrgIDs only
	OrgIDs  []string // the active orgs, in hex
	TeamIDs []string // the teams that count, in hex: those of no org and those of active ones
	Teams   []string // the slugs of these teams
}

// Standing reads a user's teams and orgs. An id that leads nowhere gives nothing; it still limits.
func (us *Users) Standing(ctx context.Context, u User) (Standing, error) {
	st := Standing{Scopes: slices.Clone(u.Scopes), Limited: len(u.OrgIDs) > 0}
	var err error
	if st.OrgIDs, err = us.orgs.active(ctx, u.OrgIDs); err != nil || len(u.TeamIDs) == 0 {
		return st, err
	}
	var teams []Team
	if err := us.teams.each(ctx, u.TeamIDs, func(t Team) { teams = append(teams, t) }); err != nil {
		return st, err
	}
	var orgs []string
	for _, t := range teams {
		if t.OrgID != "" {
			orgs = append(orgs, t.OrgID)
		}
	}
	active, err := us.orgs.active(ctx, orgs)
	if err != nil {
		return st, err
	}
	for _, t := range teams {
		if t.OrgID == "" || slices.Contains(active, t.OrgID) {
			st.Scopes = append(st.Scopes, t.Scopes...)
			st.TeamIDs = append(st.TeamIDs, t.ID.Hex())
			st.Teams = append(st.Teams, t.Slug)
		}
	}
	slices.Sort(st.Scopes)
	st.Scopes = slices.Compact(st.Scopes)
	return st, nil
}

func maySeeUser(by *access.Principal, u User) bool {
	if unlimited(by) || by.IsUser(u.ID.Hex()) {
		return true
	}
	return by != nil && slices.ContainsFunc(u.OrgIDs, func(id string) bool { return slices.Contains(by.OrgIDs, id) })
}

// mayChange says whether by, who has got this far by a user.* right, may turn old into next. Administrators may do
// everything. Others can give nobody what they don't have themselves, and can't touch who has what they lack: with a new
// password they would have it. credentials: the change takes over or ends the account.
func (us *Users) mayChange(ctx context.Context, by *access.Principal, old, next User, credentials bool) error {
	if err := mayGive(by, old, next); err != nil {
		return err
	}
	if by.Full() || by.IsUser(old.ID.Hex()) && !credentials && old.Active == next.Active {
		return nil
	}
	st, err := us.Standing(ctx, old)
	if err != nil {
		return err
	}
	return holds(by, old, st)
}

// teamsOf are the teams that a caller may give, and whose users they may change: their own. A personal access token has
// none, since no scope of it stands for what a team's permission set allows.
func teamsOf(by *access.Principal) []string {
	if by.Kind == access.KindPAT {
		return nil
	}
	return by.TeamIDs
}

// mayGive says whether by may give a user what next has and old has not. Rights are an administrator's to give; orgs
// and teams are given by those who are in them. Nobody who is limited to orgs makes somebody who isn't.
func mayGive(by *access.Principal, old, next User) error {
	switch {
	case by.Full():
		return nil
	case by == nil, old.IsAdmin, next.IsAdmin, !slices.Equal(old.Scopes, next.Scopes):
		return errs.ErrDenied
	case !unlimited(by) && (len(next.OrgIDs) == 0 || !within(by.OrgIDs, changed(old.OrgIDs, next.OrgIDs))):
		return errs.ErrDenied
	case !within(teamsOf(by), missing(old.TeamIDs, next.TeamIDs)):
		return errs.ErrDenied
	}
	return nil
}

// holds says whether by has all that a user has.
func holds(by *access.Principal, u User, st Standing) error {
	for _, s := range st.Scopes {
		if !by.Has(s) {
			return errs.ErrDenied
		}
	}
	if !within(teamsOf(by), u.TeamIDs) || !unlimited(by) && (len(u.OrgIDs) == 0 || !within(by.OrgIDs, u.OrgIDs)) {
		return errs.ErrDenied
	}
	return nil
}

// within says that every item is in list.
func within(list, items []string) bool { return len(missing(list, items)) == 0 }

// missing gives the items that are not in list.
func missing(list, items []string) []string {
	var out []string
	for _, item := range items {
		if !slices.Contains(list, item) {
			out = append(out, item)
		}
	}
	return out
}

// changed gives the items that are in one of two lists only.
func changed(a, b []string) []string { return append(missing(a, b), missing(b, a)...) }
