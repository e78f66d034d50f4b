package traced

import (
	"context"
	"errors"

	"github.com/svcctl/svc/pkg/script"
	"github.com/svcctl/svc/pkg/tracing"
)

// Runner runs scripts: *script.Engine does.
type Runner interface {
	Run(ctx context.Context, c script.Call) (script.Result, error)
}

// New gives a Runner whose runs have spans where they are part of what has; r itself if nothing is traced.
func New(r Runner, t *tracing.Tracer) Runner {
	if t == nil {
		return r
	}
	return &traced{r, t}
}

type traced struct {
	runner Runner
	tracer *tracing.Tracer
}

func (t *traced) Run(ctx context.Context, c script.Call) (script.Result, error) {
	if !tracing.Records(ctx) {
		return t.runner.Run(ctx, c)
	}
	stage, file := stageOf(&c), c.Program.Name()
	ctx, span := t.tracer.Within(ctx, stage+" "+file, tracing.Namespace(c.Project), tracing.Stage(stage), tracing.Script(file))
	if collection := textOf(&c, "collection"); collection != "" {
		span.Set(tracing.Collection(collection))
	}
	result, err := t.runner.Run(ctx, c)
	span.Set(tracing.Outcome(outcomeOf(err)))
	if f, ok := errors.AsType[*script.Failure](err); ok && f.Reason != script.Canceled {
		span.Bad()
	}
	span.End(nil)
	return result, err
}

// stageOf is what a script runs as, in the word that it sees itself (ctx.stage). What has no stage is a job.
func stageOf(c *script.Call) string {
	if stage := textOf(c, "stage"); stage != "" {
		return stage
	}
	return "job"
}

// textOf is a member of ctx, if it is a text.
func textOf(c *script.Call, name string) string {
	for _, members := range [][]script.Member{c.Ctx, c.Common} {
		for i := range members {
			if text, ok := members[i].Value.(string); ok && members[i].Name == name {
				return text
			}
		}
	}
	return ""
}

// outcomeOf is what became of a run, as svc_script_runs_total has it.
func outcomeOf(err error) string {
	if f, ok := errors.AsType[*script.Failure](err); ok {
		return string(f.Reason)
	}
	if err != nil {
		return "thrown"
	}
	return "ok"
}
