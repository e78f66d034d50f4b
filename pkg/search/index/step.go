package index

import "context"

type stepKey struct{}

// WithStep has what is done with the context call step every now and then, from the goroutine that called it: step may let others go
// first, and its error ends what is done.
func WithStep(ctx context.Context, step func(ctx context.Context) error) context.Context {
	return context.WithValue(ctx, stepKey{}, step)
}

// step is called between parts of what takes long. Its error is that of the context, if that has ended.
func step(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if f, ok := ctx.Value(stepKey{}).(func(context.Context) error); ok {
		return f(ctx)
	}
	return nil
}
