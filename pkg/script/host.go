package script

import (
	"context"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
)

// RunHost is the Host of one run. Who has made it tells it of the end of the run.
type RunHost interface {
	Host
	Close()
}

// Hosts is a Host made of one for each module, by the part of an operation before the dot: "db", "http", "files".
type Hosts map[string]Host

// Call hands the call to the module's host.
func (h Hosts) Call(ctx context.Context, op string, args bson.A) (any, error) {
	name, _, _ := strings.Cut(op, ".")
	if host := h[name]; host != nil {
		return host.Call(ctx, op, args)
	}
	return nil, errs.New(errs.Invalid, "no_module", "%s is not there in a script of this kind", op)
}

// errNoHost refuses what a script asks of the outside that has none.
func errNoHost(op string) *errs.Error {
	return errs.New(errs.Invalid, "no_module", "%s is not there in filters, validators and expressions: they have env, crypto and console, and decide by ctx alone", op)
}
