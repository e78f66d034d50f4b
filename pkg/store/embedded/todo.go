package embedded

import (
	"context"

	"github.com/svcctl/svc/pkg/store"
)

// TODO(contracts): all of this file is to be replaced.

func (d database) Validate(ctx context.Context, report func(store.Problem)) error { panic("not yet") }
