package script

import (
	"context"
	"time"
)

type workers struct{}

func (*workers) close() {}

func (e *Engine) runIsolated(ctx context.Context, c *Call) (Result, time.Duration, error) {
	return e.runHere(ctx, c)
}
