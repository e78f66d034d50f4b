package hooks

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/script"
)

// ruleSearch is the name that logs and metrics have for scripts that give the text of records to searches.
const ruleSearch = "search"

// maxSearchText is how many bytes the text of a record may have that a script gives.
const maxSearchText = 1 << 20

// Texts gives what runs the script of a search about a record; nil if it has none. It is told the language whose text is asked for,
// "" for the record's own, the time that the script sees, and of the record what the script is given. Nothing else makes a
// difference, so that the same record has the same text whenever and wherever it is asked for. An error with a RetryAfter
// is no fault of this record.
func (r *Runner) Texts(p *project.Project, c *project.Collection, search string) func(ctx context.Context, lang string, at time.Time, doc bson.Raw) ([]string, error) {
	s := c.SearchScripts[search]
	if s == nil {
		return nil
	}
	op := &Operation{Project: p, Collection: c}
	own := func() []slog.Attr { return append(where(op, ruleSearch), slog.String("search", search)) }
	return func(ctx context.Context, lang string, at time.Time, doc bson.Raw) ([]string, error) {
		call := script.Call{
			Project: p.Namespace, Program: s.Program, Still: at,
			Ctx: []script.Member{
				{Name: "stage", Value: ruleSearch}, {Name: "collection", Value: c.Name}, {Name: "lang", Value: lang}, {Name: "doc", Value: doc},
			},
			Limits:  script.Limits{Timeout: s.Timeout, Memory: int64(p.Hook.Memory), MaxResult: maxSearchText},
			Isolate: p.Hook.Isolation == "process",
			Log:     Lines(ctx, r.log, s.Program.Name(), own),
		}
		start := time.Now()
		result, err := r.opts.Engine.Run(ctx, call)
		r.metrics.ran(op, ruleSearch, time.Since(start), err)
		if r.opts.Recorder != nil {
			r.opts.Recorder.HookRan(p.Namespace, c.Name, ruleSearch, s.Program.Name(), err)
		}
		var texts []string
		if err == nil {
			texts, err = searchTexts(s, result)
		}
		if err != nil {
			return nil, r.failedSearch(ctx, p, search, err, own)
		}
		return texts, nil
	}
}

// searchTexts reads what a script gave: a text or a list of them.
func searchTexts(s *project.Script, result script.Result) ([]string, error) {
	list, ok := result.Value.(bson.A)
	if !ok {
		list = bson.A{result.Value}
	}
	out := make([]string, len(list))
	for i, item := range list {
		if out[i], ok = item.(string); !ok {
			return nil, &script.Failure{Reason: script.Exception, Script: s.Program.Name(), Message: "the eval of a search returns a text or a list of texts; '' is none"}
		}
	}
	return out, nil
}

// failedSearch makes of the failure of a run what is told of it. Each is in the log once for a config: it can be that of many records.
func (r *Runner) failedSearch(ctx context.Context, p *project.Project, search string, err error, where func() []slog.Attr) error {
	f, ok := errors.AsType[*script.Failure](err)
	if !ok {
		return Fail(ctx, r.log, err, where())
	}
	report, out := failed(f)
	if report && f.Reason != script.Busy && r.once(p.Namespace+"\x00"+strconv.FormatInt(p.Generation, 10)+"\x00"+search+"\x00"+f.Error()) {
		r.log.LogAttrs(ctx, slog.LevelError, "script failed", slices.Concat(where(), []slog.Attr{
			slog.String("at", f.Place()), slog.String("reason", string(f.Reason)), slog.String("error", f.Message), slog.String("stack", f.Stack),
		})...)
	}
	if f.Reason == script.Suspended || f.Reason == script.Busy {
		e := *errs.From(out)
		e.RetryAfter = max(time.Second, f.RetryAfter)
		return &e
	}
	if errs.From(out).Code == codeFailed { // its own text may have something of the record in it
		return errs.New(errs.Internal, codeFailed, "the eval of the search %s failed at %s; the log has the reason", search, f.Place()).With(f)
	}
	return out
}
