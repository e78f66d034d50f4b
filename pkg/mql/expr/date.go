package expr

import (
	"time"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

func parseDate(s string) (int64, error) {
	t, err := document.ParseTime(s)
	if err != nil {
		return 0, fail(codeConversion, "%s", errs.From(err).Message)
	}
	return t.UnixMilli(), nil
}

// appendISO writes a date as ISO 8601 text in UTC.
func (env *Env) appendISO(ms int64) error {
	t := time.UnixMilli(ms).UTC()
	if t.Year() < 0 || t.Year() > 9999 {
		return fail(18537, "a date outside of the years 0 to 9999 can't be written as text")
	}
	env.arena = t.AppendFormat(env.arena, "2006-01-02T15:04:05.000Z")
	return nil
}
