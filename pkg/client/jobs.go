package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/svcctl/svc/pkg/api"
)

// ListJobs describes the jobs of a project.
func (c *Client) ListJobs(ctx context.Context, namespace string) (*api.List[api.Job], error) {
	return list[api.Job](ctx, c, api.JobsPath(namespace), Query{})
}

// Job describes one job.
func (c *Client) Job(ctx context.Context, namespace, job string) (*api.Job, error) {
	return get[api.Job](ctx, c, api.JobPath(namespace, job), nil)
}

// NextJobTimes gives the next n times at which a job is due; 0: as many as the service gives by itself.
func (c *Client) NextJobTimes(ctx context.Context, namespace, job string, n int) (*api.JobTimes, error) {
	return get[api.JobTimes](ctx, c, api.JobNextPath(namespace, job), Query{Limit: n}.Values())
}

// SuspendJob keeps a job from being run by its schedule.
func (c *Client) SuspendJob(ctx context.Context, namespace, job string) (*api.Job, error) {
	return send[api.Job](ctx, c, http.MethodPost, api.JobSuspendPath(namespace, job))
}

// ResumeJob ends SuspendJob.
func (c *Client) ResumeJob(ctx context.Context, namespace, job string) (*api.Job, error) {
	return send[api.Job](ctx, c, http.MethodPost, api.JobResumePath(namespace, job))
}

// RunJob starts a run of a job, and does not wait for it.
func (c *Client) RunJob(ctx context.Context, namespace, job string) (*api.Run, error) {
	return send[api.Run](ctx, c, http.MethodPost, api.JobStartPath(namespace, job))
}

// ListJobRuns gives runs of a job, newest first. Of q, Limit and Offset count; status is one of runs, or "" for all.
func (c *Client) ListJobRuns(ctx context.Context, namespace, job, status string, q Query) (*api.List[api.Run], error) {
	if status != "" {
		q.Extra = url.Values{api.ParamStatus: {status}}
	}
	return list[api.Run](ctx, c, api.JobRunsPath(namespace, job), q)
}

// JobRun gives a run of a job with its events.
func (c *Client) JobRun(ctx context.Context, namespace, job, id string) (*api.Run, error) {
	return get[api.Run](ctx, c, api.JobRunPath(namespace, job, id), nil)
}

// CancelJobRun asks a run of a job to end.
func (c *Client) CancelJobRun(ctx context.Context, namespace, job, id string) (*api.Run, error) {
	return send[api.Run](ctx, c, http.MethodDelete, api.JobRunPath(namespace, job, id))
}

// FollowJobRun calls fn for each event of a run of a job behind one, until the last has come or fn fails.
func (c *Client) FollowJobRun(ctx context.Context, namespace, job, id string, after int64, fn func(api.RunEvent) error) error {
	return c.followRun(ctx, api.JobRunEventsPath(namespace, job, id), after, fn)
}

// get reads one thing.
func get[T any](ctx context.Context, c *Client, path string, query url.Values) (*T, error) {
	var out T
	_, err := c.do(ctx, call{method: http.MethodGet, path: path, query: query, out: &out})
	if err != nil {
		return nil, err
	}
	return &out, nil
}

// send makes a change that needs no body.
func send[T any](ctx context.Context, c *Client, method, path string) (*T, error) {
	var out T
	_, err := c.do(ctx, call{method: method, path: path, out: &out})
	if err != nil {
		return nil, err
	}
	return &out, nil
}
