package records_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/script"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// What a script does asUser goes by what its caller may now, which is asked anew when it was found out a while ago.
func TestCallerAgain(t *testing.T) {
	t.Parallel()
	now := start
	w := newWorldAt(t, teststore.Memory(t), `
collections:
- name: items
  permissions: {public: {methods: {}}, user: {methods: {get: true}}}
  fields: [{name: title, type: string}]
`, func() time.Time { return now })
	asked := 0
	var who *access.Principal
	var refused error
	host := w.service.Host(w.project, records.Caller{Principal: as("alice"), Again: func(context.Context) (*access.Principal, error) {
		asked++
		return who, refused
	}}, "run.js")
	defer host.Close()
	count := func(asUser bool) string {
		_, err := host.Call(t.Context(), "db.count", bson.A{bson.D{{Key: "collection", Value: "items"}, {Key: "asUser", Value: asUser}}})
		if err == nil {
			return ""
		}
		// To the caller it is their own refusal, rather than the script's failing.
		return errs.From(hooks.Fail(t.Context(), slog.New(slog.DiscardHandler), &script.Failure{Reason: script.Exception, Cause: err}, nil)).Code
	}
	for _, step := range []struct {
		name    string
		later   time.Duration
		who     string
		refused error
		service bool
		want    string
		asked   int
	}{
		{"the service's own needs nobody", 0, "alice", nil, true, "", 0},
		{"first: the run may have waited", 0, "alice", nil, false, "", 1},
		{"at once", 0, "alice", errs.ErrDenied, false, "", 1},
		{"within 3 s", 3 * time.Second, "alice", errs.ErrDenied, false, "", 1},
		{"later, refused", time.Millisecond, "alice", errs.ErrDenied, false, "permission_denied", 2},
		{"a refusal is not kept", 0, "alice", nil, false, "", 3},
		{"later, with no right", 4 * time.Second, "public", nil, false, "permission_denied", 4},
		{"as the service all the same", 4 * time.Second, "public", errs.ErrDenied, true, "", 4},
		{"a clock that is set back", -time.Hour, "alice", nil, false, "", 5},
		{"nobody knows", 4 * time.Second, "alice", errs.New(errs.Unavailable, "store_unavailable", "later"), false, "store_unavailable", 6},
	} {
		now, who, refused = now.Add(step.later), as(step.who), step.refused
		if got := count(!step.service); got != step.want || asked != step.asked {
			t.Errorf("%s: %q, asked %d times; want %q, %d", step.name, got, asked, step.want, step.asked)
		}
	}
}
