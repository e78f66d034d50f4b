package document

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
)

// ParseID reads the id of a record as clients write it, in either case. Its error is errs.Invalid with code "bad_id".
func ParseID(hex string) (bson.ObjectID, error) {
	id, err := bson.ObjectIDFromHex(hex)
	if err != nil {
		return id, errs.New(errs.Invalid, "bad_id", "invalid id: must be 24 hex digits")
	}
	return id, nil
}
