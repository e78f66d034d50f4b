package jobs_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/jobs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schedule"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/storetest"
)

// clock is the wall clock of all instances: the machine's, which a test sets.
type clock struct {
	mu sync.Mutex
	by time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.by)
}

func (c *clock) jump(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by += by
}

// set has the clock show a time.
func (c *clock) set(text string) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by = time.Until(at)
}

// runnerFunc is a Runner.
type runnerFunc func(ctx context.Context, call jobs.Call, run *operation.Live) (any, error)

func (f runnerFunc) RunJob(ctx context.Context, call jobs.Call, run *operation.Live) (any, error) {
	return f(ctx, call, run)
}

// instance is one of several processes on one store.
type instance struct {
	*jobs.Jobs
	runs     *operation.Runs
	link     *storetest.Outage
	registry *prometheus.Registry
	stopOnce sync.Once
	stopWork []context.CancelFunc
	work     sync.WaitGroup
}

func newInstance(t *testing.T, s store.Store, c *clock, runner jobs.Runner) *instance {
	t.Helper()
	i := &instance{link: storetest.NewOutage(s), registry: prometheus.NewRegistry()}
	var err error
	i.runs, err = operation.New(operation.Options{Store: i.link, Now: c.now, Registerer: i.registry})
	if err != nil {
		t.Fatal(err)
	}
	i.Jobs, err = jobs.New(jobs.Options{Store: i.link, Runs: i.runs, Runner: runner, Now: c.now, Registerer: i.registry})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.stop(context.WithoutCancel(t.Context())) })
	return i
}

// start has the instance do what the service does: look after runs, and pass after pass.
func (i *instance) start(ctx context.Context, c *clock, p *project.Project) {
	ctx, stop := context.WithCancel(ctx)
	i.stopWork = append(i.stopWork, stop)
	i.work.Go(func() {
		i.runs.Run(ctx, func(context.Context) ([]string, error) { return []string{project.DatabaseName(p.Namespace)}, nil })
	})
	i.pass(ctx, c, p, 30*time.Second)
}

// pass has the instance pass again when a slot is due, and at least once in a while.
func (i *instance) pass(ctx context.Context, c *clock, p *project.Project, atLeast time.Duration) {
	ctx, stop := context.WithCancel(ctx)
	i.stopWork = append(i.stopWork, stop)
	i.work.Go(func() {
		for ctx.Err() == nil {
			pause := atLeast
			switch report, err := i.Pass(ctx, p); {
			case err != nil:
				pause = time.Second
			case !report.Next.IsZero():
				pause = min(pause, max(report.Next.Sub(c.now()), time.Millisecond))
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	})
}

// stop ends what the instance does, its runs included.
func (i *instance) stop(ctx context.Context) {
	i.stopOnce.Do(func() {
		for _, stop := range i.stopWork {
			stop()
		}
		i.work.Wait()
		ended, cancel := context.WithCancel(ctx)
		cancel()
		i.runs.Close(ended)
	})
}

// kill is the end of the process: nothing that it does reaches the store any more.
func (i *instance) kill(ctx context.Context) {
	i.link.Kill()
	i.stop(ctx)
}

// aProject has jobs by name and schedule.
func aProject(t *testing.T, schedules map[string]string) *project.Project {
	t.Helper()
	p := &project.Project{ID: "1", Namespace: "jobs-" + strings.ToLower(rand.Text())[:8], Generation: 1}
	for name, text := range schedules {
		job := &project.Job{Name: name, Timeout: 5 * time.Minute}
		if text != "" {
			var err error
			if job.Schedule, err = schedule.Parse(text); err != nil {
				t.Fatal(err)
			}
		}
		p.Jobs = append(p.Jobs, job)
	}
	return p
}

// insert writes a document in a transaction of a run.
func insert(ctx context.Context, db store.Database, collection string, run *operation.Live, doc bson.D) error {
	raw, err := bson.Marshal(doc)
	if err != nil {
		return err
	}
	return db.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := run.Fence(ctx, tx); err != nil {
			return err
		}
		results, err := tx.Collection(collection).Write(ctx, []store.Op{{Kind: store.Insert, Doc: raw}}, true)
		return errors.Join(err, firstError(results))
	})
}

func firstError(results []store.Result) error {
	for _, r := range results {
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}

func pass(t *testing.T, i *instance, p *project.Project) jobs.Report {
	t.Helper()
	report, err := i.Pass(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func storeQuery() store.Query { return store.Query{} }
