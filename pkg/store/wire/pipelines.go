package wire

import (
	"context"
	"sync"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store"
)

const (
	// maxPipelines is how many pipelines there may be at once, those of open cursors included.
	maxPipelines = 64
	// pipelinesMemory is what they share, of which each has pipelineMemory at most: the more there are, the less has one that begins.
	pipelinesMemory = 1 << 30
	pipelineMemory  = pipeline.DefaultMemory
)

// pipelines counts those that there are.
type pipelines struct{ n atomic.Int64 }

// enter counts one more until release is called, and says what it may hold.
func (p *pipelines) enter() (o store.AggregateOptions, release func(), err error) {
	n := p.n.Add(1)
	release = sync.OnceFunc(func() { p.n.Add(-1) })
	if n > maxPipelines {
		release()
		return o, nil, fail(codeExceededMemory, "there are %d aggregations: read their cursors to the end, or close them", maxPipelines)
	}
	o.Memory = min(pipelineMemory, pipelinesMemory/n)
	return o, release, nil
}

// held is the source of what a read gives that may hold much: that of a pipeline, or any in a transaction, for that is
// taken at once. limit is as newFinding has it.
func (k *call) held(limit int64, read func(ctx context.Context, o store.AggregateOptions, fn func(bson.Raw) error) error) (source, error) {
	o, release, err := k.server.pipelines.enter()
	if err != nil {
		return nil, err
	}
	run := func(ctx context.Context, fn func(bson.Raw) error) error { return read(ctx, o, fn) }
	if k.tx == nil {
		return &holding{source: newFinding(k.server.life, limit, run), release: release}, nil
	}
	src, err := buffered(k.ctx, run)
	if err != nil {
		release()
		return nil, err
	}
	return &holding{source: src, release: release}, nil
}

// holding is a source that counts as a pipeline until it is closed.
type holding struct {
	source
	release func()
}

func (h *holding) close() {
	h.source.close()
	h.release()
}

// compileStages makes stages runnable. Administrators may use all that scripts may. let binds variables; nil: none.
func compileStages(stages bson.A, let bson.D) (*pipeline.Pipeline, error) {
	return pipeline.Compile(stages, pipeline.Options{Stages: pipeline.Scripts, Let: let})
}

// errStageFields is the error of a stage that has not one name.
func errStageFields() *failure {
	return fail(codeStageFields, "A pipeline stage specification object must contain exactly one field.")
}

// errStageType is the error of a stage that is no object.
func errStageType() *failure {
	return fail(codeTypeMismatch, "Each element of the 'pipeline' array must be an object")
}

// aggregate runs a pipeline to its end.
func (k *call) aggregate(ctx context.Context, r store.Reader, p *pipeline.Pipeline, fn func(bson.Raw) error) error {
	o, release, err := k.server.pipelines.enter()
	if err != nil {
		return err
	}
	defer release()
	return r.Aggregate(ctx, p, o, fn)
}

// runOver runs a pipeline over documents that are there already.
func (k *call) runOver(docs documents, p *pipeline.Pipeline, fn func(bson.Raw) error) error {
	o, release, err := k.server.pipelines.enter()
	if err != nil {
		return err
	}
	defer release()
	b := o.Budget()
	b.Now = k.server.opts.Now()
	return p.Run(k.ctx, docs, b, fn)
}
