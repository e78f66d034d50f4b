package system

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/store"
)

// MaxTokens is how many personal access tokens a user can have, expired ones included.
const MaxTokens = 100

var errTooManyTokens = errs.New(errs.Conflict, "too_many_tokens",
	"a user has at most %d personal access tokens, and you have as many: delete one that you no longer need (GET /token lists them)", MaxTokens)

// Token is a personal access token. Its value is not kept, only a keyed hash of it.
type Token struct {
	ID         bson.ObjectID `bson:"_id"`
	Rev        int64         `bson:"_rev"` // grows with each write
	UserID     string        `bson:"userId"`
	Name       string        `bson:"name"`
	Scopes     []string      `bson:"scopes"`
	ExpiresAt  time.Time     `bson:"expiresAt,omitempty"`  // zero: never
	LastUsedAt time.Time     `bson:"lastUsedAt,omitempty"` // zero: never yet
	Hash       []byte        `bson:"hash" json:"-"`
	// PATVersion is its owner's when it was made; with another one, it is void.
	PATVersion int64     `bson:"patVersion"`
	CreatedAt  time.Time `bson:"createdAt"`
	UpdatedAt  time.Time `bson:"updatedAt"`
}

// LogValue keeps the hash of a token out of logs.
func (t Token) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", t.ID.Hex()), slog.String("user_id", t.UserID))
}

// Tokens are the personal access tokens.
type Tokens struct {
	model[Token]
	listeners

	secrets            *Secrets
	defaultTTL, maxTTL time.Duration

	mu      sync.Mutex
	hashKey []byte // once it has been read
}

// Create adds a token of the calling user from a request body and gives its value, which nobody can get again. Its
// scopes have to be among grantable.
func (ts *Tokens) Create(ctx context.Context, by *access.Principal, doc bson.D, grantable []string) (Token, string, error) {
	if by == nil || by.Kind != access.KindUser || by.ID == "" {
		return Token{}, "", errs.ErrDenied
	}
	now := ts.now()
	t := Token{
		ID: bson.NewObjectID(), Rev: 1, UserID: by.ID, Scopes: []string{}, PATVersion: by.PATVersion,
		ExpiresAt: ts.defaultExpiry(now), CreatedAt: now, UpdatedAt: now,
	}
	if err := ts.parse(&t, doc, true, grantable); err != nil {
		return Token{}, "", err
	}
	value := newTokenValue(t.ID)
	var err error
	if t.Hash, err = ts.HashOf(ctx, value); err != nil {
		return Token{}, "", err
	}
	if err := ts.insert(ctx, by, t); err != nil {
		return Token{}, "", err
	}
	ts.changed(t.ID.Hex())
	return t, value, nil
}

// insert adds a token of the calling user. The user's record is written with it, as it is: so of tokens that are made at
// once each counts the other, and none is made for somebody whose tokens have just been made void.
func (ts *Tokens) insert(ctx context.Context, by *access.Principal, t Token) error {
	owner, err := document.ParseID(by.ID)
	if err != nil {
		return err
	}
	still := mql.MustCompile(bson.D{{Key: "active", Value: true}, {Key: "patVersion", Value: by.PATVersion}})
	touch := mql.MustCompileUpdate(bson.D{{Key: "$inc", Value: bson.D{{Key: "_rev", Value: int64(1)}}}})
	own := mql.MustCompile(bson.D{{Key: "userId", Value: t.UserID}})
	err = ts.audited(ctx, audit.OpCreate, nil, &t, func(ctx context.Context, tx store.Tx) error {
		op := store.Op{Kind: store.Update, ID: idValue(owner), Update: touch, If: still}
		if err := store.WriteAll(ctx, tx.Collection(usersName), op); err != nil {
			return err
		}
		tokens := tx.Collection(tokensName)
		if n, err := tokens.Count(ctx, own, MaxTokens); err != nil {
			return err
		} else if n >= MaxTokens {
			return errTooManyTokens
		}
		return insert(ctx, tokens, t)
	})
	if errors.Is(err, store.ErrStale) || errors.Is(err, errs.ErrNotFound) { // the owner is gone, or not who they were
		return errs.ErrDenied
	}
	return err
}

// Get reads a token that the caller may see, or gives errs.ErrNotFound.
func (ts *Tokens) Get(ctx context.Context, by *access.Principal, id string) (Token, error) {
	return ts.reveal(ctx, id, func(t Token) bool { return by.Full() || by.IsUser(t.UserID) })
}

// ByID reads a token, whoever asks, or gives errs.ErrNotFound.
func (ts *Tokens) ByID(ctx context.Context, id string) (Token, error) { return ts.byID(ctx, id) }

// List reads one page of the tokens that the caller may see: their own, or all for administrators.
func (ts *Tokens) List(ctx context.Context, by *access.Principal, params query.Params) (query.Page[Token], error) {
	only := nothing()
	switch {
	case by.Full():
		only = nil
	case by != nil && by.ID != "":
		only = bson.D{{Key: "userId", Value: by.ID}}
	}
	return ts.list(ctx, only, params)
}

// Update changes the members of a token that a request body gives. Only its owner may; scopes that are given have to be
// among grantable, also those that it has already.
func (ts *Tokens) Update(ctx context.Context, by *access.Principal, id string, doc bson.D, grantable []string) (Token, error) {
	t, err := ts.update(ctx, id, func(t *Token) error {
		switch {
		case by.IsUser(t.UserID):
		case by.Full():
			return errs.ErrDenied
		default:
			return errs.ErrNotFound
		}
		t.UpdatedAt = ts.now()
		return ts.parse(t, doc, false, grantable)
	})
	ts.changed(t.ID.Hex()) // also after an error, when nobody knows what was written
	if err != nil {
		return Token{}, err
	}
	return t, nil
}

// Delete revokes a token that the caller may see.
func (ts *Tokens) Delete(ctx context.Context, by *access.Principal, id string) error {
	t, err := ts.Get(ctx, by, id)
	if err != nil {
		return err
	}
	err = ts.remove(ctx, t.ID, t)
	ts.changed(t.ID.Hex())
	return err
}

// Used notes the use of a token, unless one has been noted less than every ago, by whichever instance.
func (ts *Tokens) Used(ctx context.Context, id bson.ObjectID, every time.Duration) error {
	now := ts.now()
	due := mql.MustCompile(bson.D{{Key: "lastUsedAt", Value: bson.D{{Key: "$not", Value: bson.D{{Key: "$gt", Value: now.Add(-every)}}}}}})
	note := mql.MustCompileUpdate(bson.D{
		{Key: "$set", Value: bson.D{{Key: "lastUsedAt", Value: now}}},
		{Key: "$inc", Value: bson.D{{Key: "_rev", Value: int64(1)}}},
	})
	err := store.WriteAll(ctx, ts.coll, store.Op{Kind: store.Update, ID: idValue(id), Update: note, If: due})
	if errors.Is(err, store.ErrStale) || errors.Is(err, errs.ErrNotFound) {
		return nil
	}
	return err
}

// forget removes a user's tokens that are void, those of an earlier version than valid, and gives the entries about that.
func (ts *Tokens) forget(ctx context.Context, tokens store.TxCollection, userID string, valid int64) ([]audit.Entry, error) {
	void := mql.MustCompile(bson.D{{Key: "userId", Value: userID}, {Key: "patVersion", Value: bson.D{{Key: "$lt", Value: valid}}}})
	var entries []audit.Entry
	var ops []store.Op
	err := tokens.Find(ctx, store.Query{Filter: void, Sort: mql.Sort{{Path: "_id"}}}, func(doc bson.Raw) error {
		t, err := decode[Token](doc)
		if err != nil {
			return err
		}
		entry, err := ts.entry(audit.OpDelete, &t, nil)
		entries, ops = append(entries, entry), append(ops, store.Op{Kind: store.Delete, ID: idValue(t.ID)})
		return err
	})
	if err != nil || len(ops) == 0 {
		return nil, err
	}
	return entries, store.WriteAll(ctx, tokens, ops...)
}

// defaultExpiry is when a token expires whose body does not say.
func (ts *Tokens) defaultExpiry(now time.Time) time.Time {
	ttl := ts.defaultTTL
	if ttl <= 0 || ts.maxTTL > 0 && ttl > ts.maxTTL {
		ttl = ts.maxTTL
	}
	if ttl <= 0 {
		return time.Time{}
	}
	return now.Add(ttl)
}

// parse takes a body into t. It reports every problem at once.
func (ts *Tokens) parse(t *Token, doc bson.D, create bool, grantable []string) error {
	ends := t.ExpiresAt
	b := newBody(doc, api.TokenWrite{}, create)
	b.text("name", &t.Name)
	b.list("scopes", &t.Scopes, "scope names", func(s string) string {
		switch {
		case !access.ValidScope(s):
			return noScope(s)
		case !slices.Contains(grantable, s):
			return "is no scope that you may grant: GET /token/_scopes lists them"
		}
		return ""
	})
	if b.date("expiresAt", &t.ExpiresAt) {
		if wrong := ts.wrongExpiry(t, ends); wrong != "" {
			b.problem("expiresAt", "expiry", "%s", wrong)
		}
	}
	return b.done()
}

// lasting is a time in the words of settings: 366d, and 12h0m0s where it is no number of days.
func lasting(d time.Duration) string {
	const day = 24 * time.Hour
	if d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	return d.String()
}

// wrongExpiry says what is wrong with the new end of a token that was to end at before; "" when nothing is.
func (ts *Tokens) wrongExpiry(t *Token, before time.Time) string {
	now, at := ts.now(), t.ExpiresAt
	switch {
	case !before.IsZero() && !now.Before(before):
		return "can't be changed any more: the token has expired, make a new one"
	case at.IsZero() && ts.maxTTL > 0:
		return fmt.Sprintf("can't be null: a token lasts at most %s (auth.patMaxTTL)", lasting(ts.maxTTL))
	case at.IsZero():
		return ""
	case !at.After(now):
		return "must be in the future"
	case ts.maxTTL > 0 && at.After(t.CreatedAt.Add(ts.maxTTL)):
		return fmt.Sprintf("a token lasts at most %s from when it was made (auth.patMaxTTL)", lasting(ts.maxTTL))
	}
	return ""
}
