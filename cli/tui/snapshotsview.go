package tui

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/runs"
	"github.com/svcctl/svc/cli/snapshot"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

func (s *snapshots) sections() []widget.Section {
	now := s.host.Now()
	list := widget.Section{Title: "Runs, the latest first", None: "none yet: s takes a snapshot", Columns: []widget.Column{
		{Name: "BEGAN", Right: true}, {Name: "KIND"}, {Name: "PROFILE", Rank: 3, Least: 8}, {Name: "STATUS"}, {Name: "TOOK", Right: true, Rank: 4},
		{Name: "SNAPSHOT", Rank: 2}, {Name: "BY", Rank: 5}, {Name: "MESSAGE", Rank: 1, Least: 12},
	}}
	shown := s.read.runs
	if s.most > 0 && len(shown) > s.most {
		shown = shown[:s.most]
		list.Title += fmt.Sprintf(" (%d of %d)", len(shown), len(s.read.runs))
	}
	for i := range shown {
		r := &shown[i]
		message := widget.Text(snapshot.MessageOf(r))
		switch {
		case r.Error != nil:
			message.Tone = output.ToneBad
		case !r.Active() && r.Progress.Warnings > 0:
			message.Tone = output.ToneWarn
		}
		took := ""
		if !r.StartedAt.IsZero() && !r.FinishedAt.IsZero() {
			took = runs.Span(r.FinishedAt.Sub(r.StartedAt.Time).Seconds())
		}
		list.Rows = append(list.Rows, widget.Row{ID: kindRun + "/" + r.ID, Cells: []widget.Cell{
			widget.Text(output.Age(now, r.CreatedAt.Time)), widget.Text(r.Kind), widget.Text(r.Name), widget.State(r.Status), widget.Text(took),
			widget.Text(r.Subject), widget.Text(runs.Who(r.By)), message,
		}})
	}
	return []widget.Section{list, s.snapshotSection(now)}
}

func (s *snapshots) snapshotSection(now time.Time) widget.Section {
	section := widget.Section{Title: "Snapshots, the newest first", None: "none yet: s takes one", Columns: []widget.Column{
		{Name: "AGE", Right: true}, {Name: "ID"}, {Name: "PROFILE", Rank: 2, Least: 8}, {Name: "RECORDS", Right: true, Rank: 3},
		{Name: "FILES", Right: true, Rank: 4}, {Name: "SIZE", Right: true, Rank: 5}, {Name: "NEW", Right: true, Rank: 6}, {Name: "STATE", Rank: 1},
	}}
	if s.read.more {
		section.Title += fmt.Sprintf(" (the first %d)", len(s.read.snapshots))
	}
	for i := range s.read.snapshots {
		one := &s.read.snapshots[i]
		state, tone := snapshot.StateOf(one)
		cells := []widget.Cell{
			widget.Text(output.Age(now, one.ConsistentAt.Time)), widget.Text(one.ID), widget.Text(one.Profile), {}, {}, {}, {}, {Text: state, Tone: tone},
		}
		if one.Problem == "" {
			cells[3], cells[4] = widget.Text(strconv.FormatInt(one.Counts.Documents, 10)), widget.Text(strconv.FormatInt(one.Counts.MediaFiles, 10))
			cells[5], cells[6] = widget.Text(output.Size(one.Counts.Bytes)), widget.Text(output.Size(one.Counts.NewBytes))
		}
		section.Rows = append(section.Rows, widget.Row{ID: kindSnapshot + "/" + one.ID, Cells: cells})
	}
	return section
}

// runDoc is the page about a run.
func (r *snapshotsRead) runDoc(id string) (d widget.Doc, ok bool) {
	run := r.run(id)
	if run == nil {
		return d, false
	}
	d.Heading("Run " + run.ID)
	d.Field("Does", titleOfRun(run))
	d.State("Status", run.Status, output.ToneOf(run.Status))
	d.Field("Profile", run.Name)
	d.Field("Snapshot", run.Subject)
	d.Field("Trigger", run.Trigger)
	d.Field("By", runs.Who(run.By))
	d.Field("Instance", run.Instance)
	d.Field("Began", when(run.StartedAt))
	d.Field("Ended", when(run.FinishedAt))
	if run.Error != nil {
		d.State("Error", run.Error.Message, output.ToneBad)
	}
	var phases runs.Phases
	phases.Run(run)
	d.Field("Files", strings.Join(phases.Files(), ", "))
	if all := phases.All(); len(all) > 0 {
		d.Heading("Phases")
		for i := range all {
			d.Field(all[i].Name, strings.Join(append(all[i].Facts(), runs.Span(secondsOf(run, all[i].Name))), ", "))
		}
	}
	result, err := client.SnapshotResultOf(run)
	if err != nil {
		return d, true
	}
	foundDoc(&d, run, &result)
	resultDoc(&d, &result)
	return d, true
}

// foundDoc tells what a check or a drill has found.
func foundDoc(d *widget.Doc, run *api.Run, result *api.SnapshotResult) {
	found, all := snapshot.FoundBy(run, result)
	if len(found) == 0 {
		return
	}
	d.Heading("Found")
	for _, f := range found {
		text := f.Path + ": " + f.Text
		if result.Checked != nil {
			text = f.Snapshot + ": " + text
		}
		d.State("Problem", text, output.ToneBad)
	}
	if more := all - int64(len(found)); more > 0 {
		d.Text(fmt.Sprintf("… and %d more", more))
	}
}

// secondsOf is how long a run was in a phase.
func secondsOf(run *api.Run, phase string) (sum float64) {
	for _, p := range run.Phases {
		if p.Phase == phase {
			sum += p.Seconds
		}
	}
	return sum
}

// resultDoc tells what a run has come to.
func resultDoc(d *widget.Doc, result *api.SnapshotResult) {
	if r := result.Restored; r != nil {
		d.Heading("Restored into " + r.Into)
		d.Field("Mode", r.Mode)
		for _, c := range r.Collections {
			d.Field(c.Name, fmt.Sprintf("%s, %d of the snapshot", output.Count(c.Documents, "record"), c.FromSnapshot))
		}
		d.Field("Files", snapshot.FilesOf(r))
		d.Field("Before", r.Safety)
		for _, text := range r.SafetyWarnings {
			d.Field("Lacking", text)
		}
		driftDoc(d, r.Drift)
	}
	if r := result.Would; r != nil {
		d.Heading("A restore into " + r.Into + " would have")
		d.Field("Mode", r.Mode)
		for _, c := range r.Collections {
			d.Field(c.Name, fmt.Sprintf("%s, %d of the snapshot", output.Count(c.Documents, "record"), c.FromSnapshot))
		}
		driftDoc(d, r.Drift)
	}
	if len(result.Removed) > 0 {
		d.Heading("Removed")
		for _, x := range result.Removed {
			d.Field(x.ID, strings.Join(x.Reasons, "; "))
		}
	}
	if len(result.Warnings) > 0 {
		d.Heading("Warnings")
		for _, text := range result.Warnings {
			d.Text(text)
		}
	}
}

func driftDoc(d *widget.Doc, drift []api.RestoreDrift) {
	for _, x := range drift {
		tone := output.ToneWarn
		if !x.Warns() {
			tone = output.ToneNone
		}
		d.State("Drift", strings.TrimPrefix(x.Collection+": "+x.Text, ": "), tone)
	}
}

// snapshotDoc is the page about a snapshot.
func (r *snapshotsRead) snapshotDoc(namespace, id string, now time.Time, reach func(string) string) (d widget.Doc, ok bool) {
	s := r.snapshot(id)
	if s == nil {
		return d, false
	}
	state, tone := snapshot.StateOf(s)
	d.Heading("Snapshot " + s.ID)
	d.State("State", state, tone)
	d.State("Problem", s.Problem, output.ToneBad)
	d.Field("Profile", s.Profile)
	if s.Problem != "" {
		return d, true
	}
	d.Field("Moment", when(s.ConsistentAt))
	d.Field("Config", fmt.Sprintf("generation %d, revision %s", s.Generation, output.Cut(s.Revision, 12)))
	d.Field("Made by", "svcd "+s.Tool+", store "+s.Store)
	d.Field("Mode", s.Mode)
	d.Field("Size", output.Size(s.Counts.Bytes)+" on disk, of which "+output.Size(s.Counts.NewBytes)+" are new")
	d.Field("Media", output.Count(s.Counts.MediaFiles, "file")+", "+output.Size(s.Counts.MediaBytes))
	d.Field("Files", fmt.Sprintf("written %d, hardlinked %d, copied %d, deduplicated %d", s.Counts.Written, s.Counts.Linked, s.Counts.Copied, s.Counts.Deduplicated))
	if s.Counts.Missing > 0 {
		d.State("Missing", output.Count(s.Counts.Missing, "file")+" of records", output.ToneWarn)
	}
	if v := s.Verified; v == nil {
		d.Field("Verified", "never: v checks it")
	} else {
		d.State("Verified", fmt.Sprintf("%s ago, %s, %s, %s", output.Age(now, v.At.Time), output.Count(v.Files, "file"), output.Size(v.Bytes), output.Count(v.Problems, "problem")), tone)
	}
	if damage := snapshot.DamageOf(s); damage != nil {
		for _, x := range damage.Found {
			d.State("Damage", x.Path+": "+x.Text, output.ToneBad)
		}
	}
	if v := s.Verified; v != nil && v.Dangling > 0 {
		d.State("Dangling", output.Count(v.Dangling, "file")+" of records, not in it", output.ToneWarn)
	}
	d.Field("Download", reach("svcctl snapshot export "+namespace+" "+s.ID))
	d.Heading("Collections")
	for _, c := range s.Collections {
		note := ""
		if c.Undeclared {
			note = ", not in the config"
		}
		d.Field(c.Name, output.Count(c.Documents, "record")+", "+output.Size(c.Bytes)+" uncompressed"+note)
	}
	if len(s.Warnings) > 0 {
		d.Heading("Warnings")
		for _, text := range s.Warnings {
			d.Text(text)
		}
	}
	return d, true
}
