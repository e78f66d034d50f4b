package openapi

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

// AppendJSON appends a document as JSON.
func AppendJSON(dst []byte, doc bson.D) ([]byte, error) {
	raw, err := bson.Marshal(doc)
	if err != nil {
		return dst, errs.Wrap(err, "encode the OpenAPI document")
	}
	return document.AppendJSON(dst, raw, nil), nil
}
