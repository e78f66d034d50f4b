package system

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/store"
)

// ErrLastAdmin refuses a change after which nobody could administer the service.
var ErrLastAdmin = errs.New(errs.Conflict, "last_admin",
	"the last active administrator can't be deleted, deactivated or demoted; make another one first")

// User is a person or program that logs in (decisions, section 7).
type User struct {
	ID           bson.ObjectID `bson:"_id"`
	Rev          int64         `bson:"_rev"`     // grows with each write
	Username     string        `bson:"username"` // folded
	Email        string        `bson:"email"`
	Name         string        `bson:"name"`
	PasswordHash string        `bson:"passwordHash" json:"-"`
	IsAdmin      bool          `bson:"isAdmin"`
	Active       bool          `bson:"active"`
	Language     string        `bson:"language"`
	Scopes       []string      `bson:"scopes"`
	OrgIDs       []string      `bson:"orgIds"`  // in hex; empty: no limit to orgs
	TeamIDs      []string      `bson:"teamIds"` // in hex
	// TokenVersion is carried by session tokens; those with another one are void.
	TokenVersion int64 `bson:"tokenVersion"`
	// PATVersion is the same for personal access tokens. A logout leaves it, unless it is one of everything.
	PATVersion  int64     `bson:"patVersion"`
	CreatedAt   time.Time `bson:"createdAt"`
	UpdatedAt   time.Time `bson:"updatedAt"`
	LastLoginAt time.Time `bson:"lastLoginAt,omitempty"` // zero: never
}

// LogValue keeps all but the identity of a user out of logs.
func (u User) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", u.ID.Hex()), slog.String("username", u.Username))
}

// Users are the users of the service.
type Users struct {
	model[User]
	listeners

	hash  func(ctx context.Context, password string) (string, error)
	orgs  *Orgs
	teams *Teams

	tokens *Tokens
}

// Create adds a user from a request body, on behalf of by. Of a caller who is limited to orgs, the user gets the orgs
// when the body has none.
func (us *Users) Create(ctx context.Context, by *access.Principal, doc bson.D) (User, error) {
	u := us.blank()
	if !unlimited(by) && by != nil {
		u.OrgIDs = slices.Clone(by.OrgIDs)
	}
	password, err := us.parse(ctx, by, &u, doc, true)
	if err != nil {
		return User{}, err
	}
	if err := mayGive(by, User{}, u); err != nil {
		return User{}, err
	}
	if u.PasswordHash, err = us.hash(ctx, password); err != nil {
		return User{}, err
	}
	if err := us.create(ctx, u); err != nil {
		return User{}, conflict(err, u)
	}
	return u, nil
}

// blank is a new user before the body is read.
func (us *Users) blank() User {
	now := us.now()
	return User{
		ID: bson.NewObjectID(), Rev: 1, Active: true, Scopes: []string{}, OrgIDs: []string{}, TeamIDs: []string{},
		CreatedAt: now, UpdatedAt: now,
	}
}

// Get reads a user that the caller may see, or gives errs.ErrNotFound.
func (us *Users) Get(ctx context.Context, by *access.Principal, id string) (User, error) {
	return us.reveal(ctx, id, func(u User) bool { return maySeeUser(by, u) })
}

// ByID reads a user, whoever asks, or gives errs.ErrNotFound.
func (us *Users) ByID(ctx context.Context, id string) (User, error) { return us.byID(ctx, id) }

// ByUsername reads a user by name in any case, or gives errs.ErrNotFound.
func (us *Users) ByUsername(ctx context.Context, username string) (User, error) {
	return first[User](ctx, us.coll, bson.D{{Key: "username", Value: FoldUsername(username)}})
}

// List reads one page of the users that the caller may see: those who share an org with them and they themselves, or all
// without a limit to orgs.
func (us *Users) List(ctx context.Context, by *access.Principal, params query.Params) (query.Page[User], error) {
	limited := func() bson.A { return bson.A{anyOf("orgIds", by.OrgIDs), anyOf("_id", []string{by.ID})} }
	return us.list(ctx, visible(by, limited), params)
}

// Update changes the members of a user that a request body gives, on behalf of by; null resets one. A new password or
// a deactivation makes the user's session tokens and personal access tokens void.
func (us *Users) Update(ctx context.Context, by *access.Principal, id string, doc bson.D) (User, error) {
	// Checked and hashed once, before the loop that may repeat.
	given, err := us.Get(ctx, by, id)
	if err != nil {
		return User{}, err
	}
	password, err := us.parse(ctx, by, &given, doc, false)
	if err != nil {
		return User{}, err
	}
	if password != "" && by.IsUser(given.ID.Hex()) {
		return User{}, errs.Validation([]errs.FieldError{{
			Path: "password", Rule: "readonly", Message: "change your own password at /me/password, which asks for the present one",
		}})
	}
	var hash string
	if password != "" {
		if hash, err = us.hash(ctx, password); err != nil {
			return User{}, err
		}
	}
	op := audit.OpUpdate
	if hash != "" {
		op = audit.OpPassword
	}
	return us.mutate(ctx, op, given.ID, func(u *User) error {
		old := *u
		if _, err := us.parse(ctx, by, u, doc, false); err != nil {
			return err
		}
		if err := us.mayChange(ctx, by, old, *u, hash != ""); err != nil {
			return err
		}
		if hash != "" {
			u.PasswordHash = hash
		}
		if hash != "" || old.Active && !u.Active {
			u.revoke()
		}
		u.UpdatedAt = us.now()
		return nil
	})
}

// revoke makes all session tokens and personal access tokens void.
func (u *User) revoke() {
	u.TokenVersion++
	u.PATVersion++
}

// SetPassword gives a user a new password, whose length the caller has checked, and makes its session tokens and
// personal access tokens void. from is the user as their present password was confirmed: when anything has made their
// sessions void since, another new password for one, it is errs.ErrDenied.
func (us *Users) SetPassword(ctx context.Context, from User, password string) (User, error) {
	hash, err := us.hash(ctx, password)
	if err != nil {
		return User{}, err
	}
	return us.mutate(ctx, audit.OpPassword, from.ID, func(u *User) error {
		if !u.Active || u.TokenVersion != from.TokenVersion {
			return errs.ErrDenied
		}
		u.PasswordHash = hash
		u.revoke()
		u.UpdatedAt = us.now()
		return nil
	})
}

// RevokeTokens makes a user's session tokens void, and with pats the personal access tokens, too.
func (us *Users) RevokeTokens(ctx context.Context, id bson.ObjectID, pats bool) error {
	_, err := us.mutate(ctx, audit.OpLogout, id, func(u *User) error {
		u.TokenVersion++
		if pats {
			u.PATVersion++
		}
		return nil
	})
	return err
}

// LoggedIn notes a login of from, the user as their password was verified. A rehash that is not "" is a new hash of it.
// When they have another password since, or are not active, it is errs.ErrDenied.
func (us *Users) LoggedIn(ctx context.Context, from User, rehash string) (User, error) {
	return us.mutate(ctx, audit.OpLogin, from.ID, func(u *User) error {
		// A new password makes personal access tokens void, a new hash of the same one does not.
		same := u.PasswordHash == from.PasswordHash
		if !u.Active || !same && u.PATVersion != from.PATVersion {
			return errs.ErrDenied
		}
		u.LastLoginAt = us.now()
		if rehash != "" && same {
			u.PasswordHash = rehash
		}
		return nil
	})
}

// Delete removes a user on behalf of by. All tokens of theirs are void with them.
func (us *Users) Delete(ctx context.Context, by *access.Principal, id string) error {
	err := retry(ctx, func() error {
		u, err := us.Get(ctx, by, id)
		if err != nil {
			return err
		}
		if err := us.mayChange(ctx, by, u, u, true); err != nil {
			return err
		}
		return us.apply(ctx, audit.OpDelete, u, nil, store.Op{Kind: store.Delete, ID: idValue(u.ID), If: atRev(u.Rev)})
	})
	us.changed(strings.ToLower(id))
	return err
}

// mutate applies fn to the user as it is when the write happens. op is what that is to the audit log.
func (us *Users) mutate(ctx context.Context, op string, id bson.ObjectID, fn func(*User) error) (User, error) {
	u, err := us.rewrite(ctx, id.Hex(), fn, func(old, next *User, replace store.Op) error {
		return us.apply(ctx, op, *old, next, replace)
	})
	us.changed(id.Hex()) // also after an error, when nobody knows what was written
	if err != nil {
		return User{}, conflict(err, u)
	}
	return u, nil
}

// apply writes what turns old into next; nil is gone. When that takes an administrator away, another one is written with it, as
// it is: so of two that take each other away at once, one fails and sees the other's work when it tries again.
func (us *Users) apply(ctx context.Context, op string, old User, next *User, change store.Op) error {
	if !old.IsAdmin || !old.Active || next != nil && next.IsAdmin && next.Active {
		return us.replace(ctx, op, old, next, change)
	}
	other, err := first[User](ctx, us.coll, bson.D{
		{Key: "isAdmin", Value: true},
		{Key: "active", Value: true},
		{Key: "_id", Value: bson.D{{Key: "$ne", Value: old.ID}}},
	})
	if errors.Is(err, errs.ErrNotFound) {
		return ErrLastAdmin
	}
	if err != nil {
		return err
	}
	rev := other.Rev
	other.Rev++
	keep, err := replaceOp(other, rev)
	if err != nil {
		return err
	}
	err = us.replace(ctx, op, old, next, change, keep)
	if errors.Is(err, errs.ErrNotFound) {
		return store.ErrStale // one of the two went meanwhile: look again
	}
	return err
}

// replace writes what turns old into next, with its entry in the audit log. The personal access tokens that are void by
// that go in the same step, each with an entry of its own.
func (us *Users) replace(ctx context.Context, op string, old User, next *User, ops ...store.Op) error {
	valid := int64(math.MaxInt64) // of one who is gone, no version is
	if next != nil {
		valid = next.PATVersion
	}
	if valid == old.PATVersion {
		return us.commit(ctx, op, &old, next, ops...)
	}
	entry, err := us.entry(op, &old, next)
	if err != nil {
		return err
	}
	return us.log.WriteAll(ctx, func(ctx context.Context, tx store.Tx) ([]audit.Entry, error) {
		if err := store.WriteAll(ctx, tx.Collection(usersName), ops...); err != nil {
			return nil, err
		}
		revoked, err := us.tokens.forget(ctx, tx.Collection(tokensName), old.ID.Hex(), valid)
		return append([]audit.Entry{entry}, revoked...), err
	})
}

func conflict(err error, u User) error {
	if isDuplicate(err) {
		return taken("username", u.Username)
	}
	return err
}

// parse takes a body into u and gives the new password. It reports every problem at once.
func (us *Users) parse(ctx context.Context, by *access.Principal, u *User, doc bson.D, create bool) (string, error) {
	orgs, teams := u.OrgIDs, u.TeamIDs
	b := newBody(doc, api.UserWrite{}, create)
	b.username(&u.Username)
	b.text("email", &u.Email)
	b.text("name", &u.Name)
	b.flag("isAdmin", &u.IsAdmin, false)
	b.flag("active", &u.Active, true)
	b.language(&u.Language)
	b.scopes(&u.Scopes)
	b.ids("orgIds", &u.OrgIDs)
	b.ids("teamIds", &u.TeamIDs)
	password := b.password()
	if err := b.exists(ctx, "orgIds", orgs, u.OrgIDs, us.orgs.seenBy(by)); err != nil {
		return "", err
	}
	if err := b.exists(ctx, "teamIds", teams, u.TeamIDs, us.teams.seenBy(by)); err != nil {
		return "", err
	}
	return password, b.done()
}
