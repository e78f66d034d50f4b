package runs

import (
	"log/slog"

	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/snapshot"
)

// maxWarnings is how many warnings are events, and in the result. A run that warns of all its files tells of nothing else then.
const maxWarnings = 100

// teller tells of a run's progress. It belongs to the goroutine of the run.
type teller struct {
	live     *operation.Live
	warnings []string
	warned   int64
}

// report is a snapshot.Report.
func (t *teller) report(p snapshot.Progress) {
	if p.Warning != "" {
		t.warn(p.Warning)
	}
	t.live.Progress(operation.Progress{
		Phase: string(p.Phase), Collection: p.Collection, Message: messageOf(p),
		Done: p.Done, Total: atLeast(p.Total, p.Done), BytesDone: p.BytesDone, BytesTotal: atLeast(p.BytesTotal, p.BytesDone),
		Counters: operation.Counters{Written: p.Written, Linked: p.Linked, Copied: p.Copied, Deduplicated: p.Deduplicated, Warnings: t.warned},
	})
}

// atLeast is a total that is not below what is done already; 0, which is unknown, stays so.
func atLeast(total, done int64) int64 {
	if total == 0 {
		return 0
	}
	return max(total, done)
}

func (t *teller) warn(text string) {
	t.warned++
	switch n := len(t.warnings); {
	case n < maxWarnings:
		t.warnings = append(t.warnings, text)
		t.live.Log(slog.LevelWarn, text)
	case t.warned == maxWarnings+1:
		t.live.Log(slog.LevelWarn, "there are more warnings: they are counted from here on")
	}
}

// messageOf says in words what a phase does.
func messageOf(p snapshot.Progress) string {
	switch p.Phase {
	case snapshot.Plan:
		return "looks at what there is"
	case snapshot.Collections:
		if p.Collection != "" {
			return "exports " + p.Collection
		}
		return "exports records"
	case snapshot.Media:
		return "goes through files of records"
	case snapshot.Manifesting:
		return "writes to disk what is not there yet"
	case snapshot.Verifying:
		return "reads the files of the snapshot"
	case snapshot.Pruning:
		return "removes snapshots that are not kept"
	case snapshot.Unpacking:
		return "unpacks the archive"
	case snapshot.Comparing:
		if p.Collection != "" {
			return "compares " + p.Collection
		}
		return "compares records"
	case snapshot.Safety:
		return "takes a snapshot of what is there"
	case snapshot.Loading:
		return "loads " + p.Collection
	case snapshot.Indexing:
		return "makes the indexes of " + p.Collection
	case snapshot.Swapping:
		return "puts what was loaded in its place"
	}
	return ""
}
