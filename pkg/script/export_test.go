package script

import "context"

// InWorker says whether a call of a Host comes from a worker process.
func InWorker(ctx context.Context) bool { return ctx.Value(withinKey{}) == inWorker }
