package script

import (
	"context"

	"github.com/dop251/goja"
)

// InWorker says whether a call of a Host comes from a worker process.
func InWorker(ctx context.Context) bool { return ctx.Value(withinKey{}) == inWorker }

// TakesApart says whether the text that runs has {...rest} = object as the instruction that it is.
func TakesApart(p *Program) bool {
	tree, err := goja.Parse(p.name, p.text)
	return err != nil || takesApart(tree, p.text)
}

// IdleWorkers says how many worker processes wait for a run.
func (e *Engine) IdleWorkers() int {
	e.workers.mu.Lock()
	defer e.workers.mu.Unlock()
	return len(e.workers.idle)
}
