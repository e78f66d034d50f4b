package system

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// firstAdminName is a document that those who make the first user write, so that they meet.
const firstAdminName = "first-admin"

// CreateFirst makes an administrator if there is no user at all, and says whether it did. Of several instances that do so
// at once, one does.
func (us *Users) CreateFirst(ctx context.Context, username, password string) (made bool, err error) {
	if some, err := us.exist(ctx, us.coll); some || err != nil { // nearly every start
		return false, err
	}
	u := us.blank()
	password, err = us.parse(ctx, &access.Principal{Kind: access.KindAdmin}, &u, bson.D{
		{Key: "username", Value: username}, {Key: "password", Value: password}, {Key: "isAdmin", Value: true},
	}, true)
	if err != nil {
		return false, err
	}
	if u.PasswordHash, err = us.hash(ctx, password); err != nil {
		return false, err
	}
	mark := mql.MustCompileUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: "userId", Value: u.ID}}}})
	err = us.audited(ctx, audit.OpCreate, nil, &u, func(ctx context.Context, tx store.Tx) error {
		// Who comes second to this document is tried again, and then sees the user of who came first.
		op := store.Op{Kind: store.Update, ID: store.Name(firstAdminName), Update: mark, Upsert: true}
		if err := store.WriteAll(ctx, tx.Collection(secretsName), op); err != nil {
			return err
		}
		users := tx.Collection(usersName)
		if some, err := us.exist(ctx, users); err != nil {
			return err
		} else if some {
			return errNotFirst
		}
		return insert(ctx, users, u)
	})
	if errors.Is(err, errNotFirst) {
		return false, nil
	}
	return err == nil, err
}

// errNotFirst ends the making of a first administrator when there is somebody already.
var errNotFirst = errors.New("there is a user")

// exist says whether there is any user.
func (us *Users) exist(ctx context.Context, users store.Reader) (bool, error) {
	n, err := users.Count(ctx, nil, 1)
	return n > 0, err
}
