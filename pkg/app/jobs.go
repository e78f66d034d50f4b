package app

import (
	"context"
	"errors"
	"log/slog"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/jobs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/script"
)

// jobRunner runs the scripts of jobs. What the script logs, and where it failed, is in the log of the run.
type jobRunner struct {
	engine  hooks.Engine
	records *records.Service
	hooks   *hooks.Runner
	log     *slog.Logger
	moment  func(ctx context.Context) context.Context // has a script see one state of the records (gate.Gate.Moment); nil: nobody replaces them
}

// errJobScript is what the record of a run says of a script that failed.
var errJobScript = errs.New(errs.Internal, "script_failed", "the script failed; the run's log says where")

// RunJob runs a job's script once.
func (r *jobRunner) RunJob(ctx context.Context, call jobs.Call, run *operation.Live) (any, error) {
	if r.moment != nil {
		ctx = r.moment(ctx)
	}
	job := bson.D{{Key: "name", Value: call.Job.Name}, {Key: "run", Value: run.Run().ID}, {Key: "trigger", Value: string(call.Trigger)}}
	if !call.Slot.IsZero() {
		job = append(job, bson.E{Key: "slot", Value: call.Slot})
	}
	hook := call.Project.Hook
	host := r.records.Host(call.Project, records.Caller{Fence: run.Fence}, call.Job.Script.Program.Name())
	defer host.Close()
	result, err := r.engine.Run(ctx, script.Call{
		Project: call.Project.Namespace, Program: call.Job.Script.Program,
		Ctx: []script.Member{
			{Name: "project", Value: hooks.ProjectOf(call.Project)},
			{Name: "job", Value: job},
			{Name: "now", Value: run.Run().StartedAt},
			{Name: "state", Value: bson.D{}},
		},
		Host: host, Env: r.hooks.Env(call.Project),
		Limits:  script.Limits{Timeout: call.Job.Timeout, Memory: int64(hook.Memory)},
		Isolate: hook.Isolation != "none", Long: true,
		Log: func(line script.Line) { run.Log(line.SlogLevel(), line.Message) },

		Progress: func(v any) { run.Progress(operation.ProgressOf(v)) },
	})
	if err != nil {
		return nil, r.failed(ctx, call, run, err)
	}
	if !result.Returned {
		return nil, nil //nolint:nilnil // a script may give nothing
	}
	return result.Value, nil
}

// failed tells the run's log and ours where the script failed, and gives what the record says.
func (r *jobRunner) failed(ctx context.Context, call jobs.Call, run *operation.Live, err error) error {
	if thrown, ok := errors.AsType[*script.Thrown](err); ok {
		run.Log(slog.LevelError, thrown.Error())
		return &errs.Error{Kind: errs.Limit, Code: "script_error", Message: thrown.Message, Fields: thrown.Fields}
	}
	failure, ok := errors.AsType[*script.Failure](err)
	if !ok {
		return err
	}
	if failure.Reason != script.Canceled { // that it was cancelled is said as its end
		run.Log(slog.LevelError, failure.Error())
	}
	r.log.WarnContext(ctx, "the script of a job failed", "namespace", call.Project.Namespace, "job", call.Job.Name, "run", run.Run().ID,
		"error", failure, "stack", failure.Stack)
	if failure.Reason == script.Timeout {
		return operation.ErrTimeout.With(err)
	}
	return errJobScript.With(err)
}
