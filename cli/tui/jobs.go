package tui

import (
	"context"
	"strconv"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/runs"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
)

// rightToRun is what running, cancelling and suspending jobs takes.
const rightToRun = rightToReload

// jobs lists the jobs of a project: when each is due, what its last run came to, and how far one is that goes on. It runs, cancels and suspends them.
type jobs struct {
	table

	namespace string
	all       []api.Job
	next      map[string][]api.Time // the times at which a job is due, as they were asked for
}

func newJobs(h *frame.Host, of frame.Place) frame.Screen {
	j := &jobs{table: table{host: h}, namespace: of.Namespace, next: map[string][]api.Time{}}
	j.value = func(id string) any {
		if job := j.job(id); job != nil {
			return job
		}
		return nil
	}
	return j
}

func (j *jobs) Title() string { return "Jobs" }

// Every implements frame.Reader: it looks more often while something is going on.
func (j *jobs) Every() time.Duration {
	for i := range j.all {
		if last := j.all[i].LastRun; last != nil && last.Active() {
			return time.Second
		}
	}
	return 3 * time.Second
}

func (j *jobs) Read(ctx context.Context) (tea.Msg, error) {
	return j.host.Client.ListJobs(ctx, j.namespace)
}

// jobTimes are the times at which a job is due.
type jobTimes struct {
	job   string
	times []api.Time
}

func (j *jobs) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case *api.List[api.Job]:
		j.all = msg.Items
		j.list.Set(j.section())
	case jobTimes:
		j.next[msg.job] = msg.times
	case tea.KeyPressMsg:
		return j.press(msg.String())
	}
	return nil
}

func (j *jobs) press(pressed string) tea.Cmd {
	before := j.of
	if j.key(pressed) {
		if j.of != before {
			return j.askTimes(j.of)
		}
		return nil
	}
	job := j.job(j.list.Selected())
	if j.of != "" || job == nil {
		return nil
	}
	switch name := job.Name; pressed {
	case "enter":
		return j.host.Push(func(h *frame.Host) frame.Screen { return newJobRuns(h, j.namespace, name) })
	case "x":
		return askRun(j.host, j.namespace, name, job.LastRun)
	case "s":
		return askSuspend(j.host, j.namespace, job)
	}
	return nil
}

// askTimes asks when a job is due.
func (j *jobs) askTimes(name string) tea.Cmd {
	return j.host.Ask(func(ctx context.Context) (tea.Msg, error) {
		times, err := j.host.Client.NextJobTimes(ctx, j.namespace, name, 0)
		if err != nil {
			return nil, err
		}
		return jobTimes{name, times.Times}, nil
	})
}

// askRun asks whether a job is to be run, or where a run goes on, whether that is to be cancelled.
func askRun(h *frame.Host, namespace, job string, last *api.Run) tea.Cmd {
	if !h.May(rightToRun) {
		return h.Lack(rightToRun)
	}
	if last != nil && last.Active() {
		id := last.ID
		h.Confirm("Cancel the run of "+job+", "+id+"? What it has done stays.", func() tea.Cmd {
			return h.Act("cancelling "+id, func(ctx context.Context) (string, error) {
				_, err := h.Client.CancelJobRun(ctx, namespace, job, id)
				return id + " ends", err
			})
		})
		return nil
	}
	h.Confirm("Run "+job+" of "+namespace+" now?", func() tea.Cmd {
		return h.Act("starting "+job, func(ctx context.Context) (string, error) {
			run, err := h.Client.RunJob(ctx, namespace, job)
			if err != nil {
				return "", err
			}
			return job + " runs: " + run.ID, nil
		})
	})
	return nil
}

// askSuspend asks whether a job is to rest, or to be run by its schedule again.
func askSuspend(h *frame.Host, namespace string, job *api.Job) tea.Cmd {
	if !h.May(rightToRun) {
		return h.Lack(rightToRun)
	}
	name, question, doing, done := job.Name, "Suspend "+job.Name+"? Its schedule does not run it until it is resumed; x still does.", "suspending ", " is suspended"
	act := h.Client.SuspendJob
	if job.Suspended {
		question, doing, done = "Resume "+name+"? What it was due for meanwhile does not come later.", "resuming ", " is run by its schedule again"
		act = h.Client.ResumeJob
	}
	h.Confirm(question, func() tea.Cmd {
		return h.Act(doing+name, func(ctx context.Context) (string, error) {
			_, err := act(ctx, namespace, name)
			return name + done, err
		})
	})
	return nil
}

func (j *jobs) job(name string) *api.Job {
	return first(j.all, func(job *api.Job) bool { return job.Name == name })
}

func (j *jobs) Keys() []key.Binding {
	if j.of != "" {
		return j.pageKeys()
	}
	const onJob = "there is a job"
	job := j.job(j.list.Selected())
	run, rest := "run", "suspend"
	if job != nil && job.LastRun != nil && job.LastRun.Active() {
		run = "cancel the run"
	}
	if job != nil && job.Suspended {
		rest = "resume"
	}
	return []key.Binding{
		frame.When(job != nil, "enter", "runs and logs", onJob), j.host.AllowedWhen(rightToRun, job != nil, "x", run, onJob), j.host.AllowedWhen(rightToRun, job != nil, "s", rest, onJob), frame.When(job != nil, "d", "describe", onJob), frame.When(job != nil, "y", "YAML", onJob),
	}
}

func (j *jobs) View(width, height int) string { return j.view(width, height, j.doc) }

func (j *jobs) section() widget.Section {
	now := j.host.Now()
	s := widget.Section{None: "no jobs: the key jobs of the project's config declares them", Columns: []widget.Column{
		{Name: "NAME", Least: 12}, {Name: "NEXT"}, {Name: "LAST", Right: true, Rank: 1}, {Name: "STATUS", Rank: 1}, {Name: "TOOK", Right: true, Rank: 5},
		{Name: "SCHEDULE", Rank: 3, Least: 12}, {Name: "SKIPPED", Right: true, Rank: 7}, {Name: "MISSED", Right: true, Rank: 6}, {Name: "MESSAGE", Rank: 2, Least: 12}, {Name: "FILE", Rank: 8, Least: 12},
	}}
	for i := range j.all {
		job := &j.all[i]
		last, status, took, message := "never", widget.Cell{}, "", widget.Cell{}
		if r := job.LastRun; r != nil {
			last, status, took, message = output.Age(now, r.CreatedAt.Time), widget.State(r.Status), tookOf(r, now), messageOf(r)
		}
		s.Rows = append(s.Rows, widget.Row{ID: job.Name, Cells: []widget.Cell{
			widget.Text(job.Name), nextOf(job, now), widget.Text(last), status, widget.Text(took), widget.Text(job.Cron),
			widget.Text(numberOf(job.Slots.Skipped)), widget.Text(numberOf(job.Slots.Missed)), message, widget.Text(job.File),
		}})
	}
	return s
}

// numberOf is a number that is "" where there is none.
func numberOf(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// nextOf says when a job is due.
func nextOf(job *api.Job, now time.Time) widget.Cell {
	switch {
	case job.Suspended:
		return widget.Cell{Text: "suspended", Tone: output.ToneWarn}
	case job.NextRun.IsZero():
		return widget.Text("by hand")
	}
	return widget.Text(inTime(job.NextRun.Time, now))
}

// inTime says how long it is until a moment.
func inTime(at, now time.Time) string {
	if !at.After(now) {
		return "now"
	}
	return "in " + output.Age(at, now)
}

// tookOf is how long a run has taken, or has gone on for.
func tookOf(r *api.Run, now time.Time) string {
	switch {
	case r.StartedAt.IsZero():
		return ""
	case r.FinishedAt.IsZero():
		return runs.Span(now.Sub(r.StartedAt.Time).Seconds())
	}
	return runs.Span(r.FinishedAt.Sub(r.StartedAt.Time).Seconds())
}

// messageOf says how far a run is, or why it has failed.
func messageOf(r *api.Run) widget.Cell {
	cell := widget.Text(runs.MessageOf(r))
	if r.Error != nil {
		cell.Tone = output.ToneBad
	}
	return cell
}

// doc is the page about a job.
func (j *jobs) doc(name string) (d widget.Doc, ok bool) {
	job := j.job(name)
	if job == nil {
		return d, false
	}
	now := j.host.Now()
	d.Heading("Job " + job.Name)
	d.Field("File", job.File)
	d.Field("Schedule", job.Cron)
	if job.TimeoutMS > 0 {
		d.Field("Timeout", (time.Duration(job.TimeoutMS) * time.Millisecond).String())
	}
	if job.Suspended {
		by := ""
		if job.SuspendedBy != nil {
			by = " by " + runs.Who(*job.SuspendedBy)
		}
		d.State("Suspended", when(job.SuspendedAt)+by, output.ToneWarn)
	}
	if r := job.LastRun; r != nil {
		d.State("Last run", r.Status+", "+output.Age(now, r.CreatedAt.Time)+" ago, run "+r.ID, output.ToneOf(r.Status))
		if r.Error != nil {
			d.State("Error", r.Error.Message, output.ToneBad)
		}
	}
	d.Field("Its times", strconv.FormatInt(job.Slots.Run, 10)+" run, "+strconv.FormatInt(job.Slots.Skipped, 10)+" skipped since a run went on, "+strconv.FormatInt(job.Slots.Missed, 10)+" missed since no instance was there")
	if times := j.next[name]; len(times) > 0 {
		d.Heading("Due")
		for _, at := range times {
			d.Field(inTime(at.Time, now), when(at))
		}
	}
	return d, true
}
