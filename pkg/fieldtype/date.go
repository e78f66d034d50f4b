package fieldtype

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// dateType holds a moment, given as RFC 3339 and stored as a BSON date (milliseconds, UTC).
type dateType struct{}

func (dateType) Name() string { return "date" }

func (dateType) Parse(_ *Field, v any, c *Check) any {
	switch v := v.(type) {
	case bson.DateTime:
		return v
	case time.Time:
		return bson.NewDateTimeFromTime(v)
	case string:
		moment, err := document.ParseTime(v)
		if err != nil {
			c.Fail("type", "must be a date in RFC 3339, such as 2006-01-02T15:04:05Z")
			return v
		}
		return bson.NewDateTimeFromTime(moment)
	}
	c.wrongType("a date in RFC 3339", v)
	return v
}

func (dateType) Cast(_ *Field, v any) (any, error) {
	text, untyped := v.(Untyped)
	if untyped {
		if text == "null" {
			return nil, nil
		}
		moment, err := document.ParseTime(string(text))
		if err != nil {
			return nil, untypedError("a date in RFC 3339, such as 2006-01-02T15:04:05Z", text)
		}
		return bson.NewDateTimeFromTime(moment), nil
	}
	switch v := v.(type) {
	case time.Time:
		return bson.NewDateTimeFromTime(v), nil
	case string:
		if moment, err := document.ParseTime(v); err == nil {
			return bson.NewDateTimeFromTime(moment), nil
		}
	}
	return v, nil
}
