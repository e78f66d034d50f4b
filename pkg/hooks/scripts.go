package hooks

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
)

// Problems reads what a script for the stage validate returned: nothing, a message, or a list of {path, message}.
func Problems(v any) ([]errs.FieldError, error) { return problemsOf(v) }

// HeadersOf gives the headers of a request as scripts see them: in lower case, without credentials.
func (r *Request) HeadersOf() bson.D { return headersOf(r.Headers) }
