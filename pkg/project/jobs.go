package project

import (
	"strconv"
	"time"

	"github.com/svcctl/svc/pkg/schedule"
	"github.com/svcctl/svc/pkg/schema"
)

// Job is one compiled job. It is immutable.
type Job struct {
	Name     string
	Config   *schema.Job
	Schedule schedule.Schedule // nil: it runs by hand only
	Timeout  time.Duration
	Script   *Script
}

// jobs compiles the jobs of a config.
func (c *compiler) jobs(config *schema.Project) []*Job {
	jobs := make([]*Job, 0, len(config.Jobs))
	for i, j := range config.Jobs {
		at := "jobs[" + strconv.Itoa(i) + "]"
		jobs = append(jobs, &Job{
			Name: j.JobName(), Config: j, Timeout: j.Timeout.Std(), Schedule: c.schedule(j.Cron, at+".cron"),
			Script: c.script(j.File, at+".file", j.Timeout.Std()),
		})
	}
	return jobs
}
