package runs

import (
	"encoding/json"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/snapshot/retention"
)

// outcome makes a result that is kept with its run.
func outcome(result *api.SnapshotResult) (operation.Outcome, error) {
	text, err := encoded(result)
	if err != nil {
		return operation.Outcome{}, err
	}
	doc, err := document.ParseJSON(text)
	if err != nil {
		return operation.Outcome{}, errs.Wrap(err, "encode the result of a run")
	}
	return operation.Outcome{Result: doc, Subject: result.Snapshot}, nil
}

func encoded(result *api.SnapshotResult) ([]byte, error) {
	text, err := json.Marshal(result)
	if err != nil {
		return nil, errs.Wrap(err, "encode the result of a run")
	}
	return text, nil
}

// SnapshotOut is what callers are told of a snapshot, without the list of its files.
func SnapshotOut(info *snapshot.Info) api.Snapshot {
	out := api.Snapshot{
		ID: info.ID, Profile: info.Profile, Project: info.Namespace, ConsistentAt: api.Time{Time: info.ConsistentAt},
		Revision: info.Revision, Generation: info.Generation, Store: info.Store, Tool: info.Tool, Mode: string(info.Mode), Media: info.Media,
		Collections: CollectionsOut(info.Collections, info.Files), Counts: *countsOut(&info.Counts), Warnings: info.Warnings,
		Pinned: info.State.Pinned, Verified: VerificationOut(info.State.Verified), WholeAt: api.Time{Time: info.State.WholeAt},
		Damage: VerificationOut(info.State.Damage), Problem: info.Problem,
	}
	if at := info.State.ImportedAt; !at.IsZero() { // here it has taken all of its room
		out.ImportedAt, out.Counts.NewBytes = &api.Time{Time: at}, out.Counts.Bytes
	}
	if at := info.State.LostAt; !at.IsZero() {
		out.LostAt = &api.Time{Time: at}
	}
	if info.State.Damaged && out.Problem == "" {
		out.Problem = "whether it is pinned, and how it was checked, can't be read: it counts as pinned; pin or unpin it, and check it again"
	}
	return out
}

// CollectionsOut is what callers are told of collections, with the sizes of their files where these are given.
func CollectionsOut(list []snapshot.Collection, files []snapshot.File) []api.SnapshotCollection {
	out := make([]api.SnapshotCollection, 0, len(list))
	sizes := snapshot.ExportSizes(files)
	for _, c := range list {
		out = append(out, api.SnapshotCollection{Name: c.Name, Undeclared: c.Undeclared, Documents: c.Documents, Bytes: c.Bytes, DiskBytes: sizes[c.File]})
	}
	return out
}

// FilesOut lists the files of a snapshot.
func FilesOut(list []snapshot.File) []api.SnapshotFile {
	out := make([]api.SnapshotFile, 0, len(list))
	for _, f := range list {
		out = append(out, api.SnapshotFile{Path: f.Path, Size: f.Size, SHA256: f.SHA256, Count: f.Count, How: string(f.How)})
	}
	return out
}

func countsOut(c *snapshot.Counts) *api.SnapshotCounts {
	out := api.SnapshotCounts(*c)
	return &out
}

// VerificationOut is what callers are told of a check; nil of none.
func VerificationOut(v *snapshot.Verification) *api.SnapshotVerification {
	if v == nil {
		return nil
	}
	return &api.SnapshotVerification{
		At: api.Time{Time: v.At}, Sample: v.Sample, Files: v.Files, Bytes: v.Bytes, Problems: v.Problems, Dangling: v.Dangling,
		Found: findingsOut(v.Found), Without: findingsOut(v.Without),
	}
}

// Of a check of many snapshots so many that are damaged are told of, with so many findings each; all are counted.
const (
	maxDamaged   = 100
	maxFoundEach = 20
)

func checkedOut(c *snapshot.Checked) *api.SnapshotsChecked {
	out := &api.SnapshotsChecked{Snapshots: int64(c.Snapshots), Damaged: int64(len(c.Damaged)), Problems: c.Problems()}
	for _, one := range c.Damaged[:min(len(c.Damaged), maxDamaged)] {
		v := one.Verified
		out.Found = append(out.Found, api.SnapshotDamage{
			Snapshot: one.ID, Problems: v.Problems, Found: findingsOut(v.Found[:min(len(v.Found), maxFoundEach)]),
		})
	}
	return out
}

func findingsOut(list []snapshot.Finding) []api.SnapshotFinding {
	var out []api.SnapshotFinding
	for _, f := range list {
		out = append(out, api.SnapshotFinding(f))
	}
	return out
}

// DecisionsOut is what a retention has decided for snapshots of a profile.
func DecisionsOut(profile string, list []retention.Decision) []api.SnapshotDecision {
	out := make([]api.SnapshotDecision, 0, len(list))
	for _, d := range list {
		out = append(out, api.SnapshotDecision{
			ID: d.ID, Profile: profile, ConsistentAt: api.Time{Time: d.Time}, Keep: d.Keep, Reasons: d.Reasons,
		})
	}
	return out
}
