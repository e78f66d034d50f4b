package snapshot

import (
	"slices"
	"strings"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

// Found is something that a check or a drill has found.
type Found struct {
	Snapshot string
	api.SnapshotFinding
}

// FoundBy gives what a run has found that is wrong, as far as its result names it, and how much that is in all.
func FoundBy(run *api.Run, result *api.SnapshotResult) (found []Found, all int64) {
	add := func(snapshot string, list []api.SnapshotFinding, problems int64) {
		for _, f := range list {
			found = append(found, Found{snapshot, f})
		}
		all += problems
	}
	if v := result.Verified; v != nil {
		add(run.Subject, v.Found, v.Problems)
	}
	if d := result.Drill; d != nil {
		add(run.Subject, d.Found, d.Problems)
	}
	if c := result.Checked; c != nil {
		for _, one := range c.Found {
			add(one.Snapshot, one.Found, 0)
		}
		all += c.Problems
	}
	return found, all
}

// showFound prints what a run has found, and says whether it was anything.
func showFound(st *command.State, run *api.Run, result *api.SnapshotResult) (bool, error) {
	found, all := FoundBy(run, result)
	if len(found) == 0 {
		return false, nil
	}
	t := output.NewTable("SNAPSHOT", "FILE", "PROBLEM")
	if result.Checked == nil { // all are of one
		t = output.NewTable("FILE", "PROBLEM")
	}
	out := output.Result{Value: run, Table: t}
	for _, f := range found {
		if result.Checked == nil {
			t.Row(f.Path, f.Text)
		} else {
			t.Row(f.Snapshot, f.Path, f.Text)
		}
		if name := command.SnapshotName + f.Snapshot; !slices.Contains(out.Names, name) {
			out.Names = append(out.Names, name)
		}
	}
	err := st.Printer().Print(out)
	if more := all - int64(len(found)); more > 0 {
		st.Notef("and %s", output.Count(more, "more problem"))
	}
	return true, err
}

// withoutFound is the error of a run whose findings were printed: it counts them only.
func withoutFound(run *api.Run, result *api.SnapshotResult) *api.RunError {
	found, all := FoundBy(run, result)
	if len(found) == 0 || run.Error == nil {
		return run.Error
	}
	first := found[0].Path
	if result.Checked != nil {
		first = found[0].Snapshot
	}
	what, _, ok := strings.Cut(run.Error.Message, ": "+first+": ")
	if !ok {
		return run.Error
	}
	return &api.RunError{Code: run.Error.Code, Message: what + ": " + output.Count(all, "problem")}
}
