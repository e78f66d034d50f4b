package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/svcctl/svc/pkg/api"
)

// SnapshotProfiles describes the profiles of a project that the caller may take snapshots by, and how these stand.
func (c *Client) SnapshotProfiles(ctx context.Context, namespace string) (*api.List[api.SnapshotProfile], error) {
	return list[api.SnapshotProfile](ctx, c, api.SnapshotProfilesPath(namespace), Query{})
}

// ListSnapshots gives the snapshots of a project, newest first, of a profile, "" for all. Of q, Limit and Offset count.
func (c *Client) ListSnapshots(ctx context.Context, namespace, profile string, q Query) (*api.List[api.Snapshot], error) {
	if profile != "" {
		q.Extra = url.Values{api.ParamProfile: {profile}}
	}
	return list[api.Snapshot](ctx, c, api.SnapshotsPath(namespace), q)
}

// Snapshot gives what is known of a snapshot, with the list of its files if files.
func (c *Client) Snapshot(ctx context.Context, namespace, id string, files bool) (*api.Snapshot, error) {
	q := url.Values{}
	if files {
		q.Set(api.ParamFiles, "true")
	}
	return get[api.Snapshot](ctx, c, api.SnapshotPath(namespace, id), q)
}

// PinSnapshot keeps a snapshot from being deleted, or lets it be again.
func (c *Client) PinSnapshot(ctx context.Context, namespace, id string, pinned bool) (*api.Snapshot, error) {
	return sendBody[api.Snapshot](ctx, c, http.MethodPut, api.SnapshotPath(namespace, id), api.SnapshotChange{Pinned: &pinned})
}

// DeleteSnapshot removes a snapshot.
func (c *Client) DeleteSnapshot(ctx context.Context, namespace, id string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: api.SnapshotPath(namespace, id)})
	return err
}

// CreateSnapshot starts a run that takes a snapshot by a profile. Of a project one run that changes snapshots goes on at a time: another is an
// *Error with status 409.
func (c *Client) CreateSnapshot(ctx context.Context, namespace, profile string) (*api.Run, error) {
	return sendBody[api.Run](ctx, c, http.MethodPost, api.SnapshotsPath(namespace), api.SnapshotStart{Profile: profile})
}

// VerifySnapshot starts a run that checks a snapshot.
func (c *Client) VerifySnapshot(ctx context.Context, namespace, id string, how api.SnapshotVerify) (*api.Run, error) {
	return sendBody[api.Run](ctx, c, http.MethodPost, api.SnapshotVerifyPath(namespace, id), how)
}

// DrillSnapshot starts a run that restores a snapshot on trial: beside the records, which stay as they are.
func (c *Client) DrillSnapshot(ctx context.Context, namespace, id string) (*api.Run, error) {
	return send[api.Run](ctx, c, http.MethodPost, api.SnapshotDrillPath(namespace, id))
}

// RestoreSnapshot starts a run that restores a snapshot, or tells what that would change.
func (c *Client) RestoreSnapshot(ctx context.Context, namespace, id string, how api.SnapshotRestore) (*api.Run, error) {
	return sendBody[api.Run](ctx, c, http.MethodPost, api.SnapshotRestorePath(namespace, id), how)
}

// PruneSnapshots starts a run that removes the snapshots of a profile which its retention does not keep; "": of all profiles.
func (c *Client) PruneSnapshots(ctx context.Context, namespace, profile string) (*api.Run, error) {
	return sendBody[api.Run](ctx, c, http.MethodPost, api.SnapshotPrunePath(namespace), api.SnapshotPrune{Profile: profile})
}

// PlanPrune tells what PruneSnapshots would remove and keep, and why.
func (c *Client) PlanPrune(ctx context.Context, namespace, profile string) (*api.SnapshotPrunePlan, error) {
	return sendBody[api.SnapshotPrunePlan](ctx, c, http.MethodPost, api.SnapshotPrunePath(namespace), api.SnapshotPrune{Profile: profile, DryRun: true})
}

// SnapshotDiffQuery says what DiffSnapshot compares.
type SnapshotDiffQuery struct {
	With       string // another snapshot; "": what is live now
	Collection string // "": all
	Limit      int    // records that are named of each collection; 0: as many as the service gives by itself
}

// DiffSnapshot tells how the records of a snapshot differ from others.
func (c *Client) DiffSnapshot(ctx context.Context, namespace, id string, d SnapshotDiffQuery) (*api.SnapshotDiff, error) {
	q := url.Values{}
	for name, value := range map[string]string{api.ParamWith: d.With, api.ParamCollection: d.Collection} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if d.Limit > 0 {
		q.Set(api.ParamLimit, strconv.Itoa(d.Limit))
	}
	return get[api.SnapshotDiff](ctx, c, api.SnapshotDiffPath(namespace, id), q)
}

// SnapshotRunsQuery says which runs of snapshots are listed. What is empty leaves nothing out.
type SnapshotRunsQuery struct {
	Status  string // one of api.RunQueued and so on
	Kind    string // one of api.RunKindSnapshot and so on
	Profile string
	Limit   int // 0: as the service has it
	Offset  int
}

// ListSnapshotRuns gives runs of a project's snapshots and backups, newest first.
func (c *Client) ListSnapshotRuns(ctx context.Context, namespace string, which SnapshotRunsQuery) (*api.List[api.Run], error) {
	q := Query{Limit: which.Limit, Offset: which.Offset, Extra: url.Values{}}
	for name, value := range map[string]string{api.ParamStatus: which.Status, api.ParamKind: which.Kind, api.ParamProfile: which.Profile} {
		if value != "" {
			q.Extra.Set(name, value)
		}
	}
	return list[api.Run](ctx, c, api.SnapshotRunsPath(namespace), q)
}

// SnapshotRun gives such a run with its events.
func (c *Client) SnapshotRun(ctx context.Context, namespace, id string) (*api.Run, error) {
	return get[api.Run](ctx, c, api.SnapshotRunPath(namespace, id), nil)
}

// FollowSnapshotRun calls fn for each event of such a run behind one, until the last has come or fn fails. id is the run's, or a
// snapshot's: then its newest run is followed.
func (c *Client) FollowSnapshotRun(ctx context.Context, namespace, id string, after int64, fn func(api.RunEvent) error) error {
	return c.followRun(ctx, api.SnapshotEventsPath(namespace, id), after, fn)
}

// CancelSnapshotRun asks a run to end, by an id as FollowSnapshotRun has it.
func (c *Client) CancelSnapshotRun(ctx context.Context, namespace, id string) (*api.Run, error) {
	return send[api.Run](ctx, c, http.MethodPost, api.SnapshotCancelPath(namespace, id))
}

// SnapshotResultOf reads what a run of snapshots or backups gave; of one that gave nothing, the zero value.
func SnapshotResultOf(run *api.Run) (api.SnapshotResult, error) {
	var out api.SnapshotResult
	if len(run.Result) == 0 {
		return out, nil
	}
	err := json.Unmarshal(run.Result, &out)
	return out, err
}

// DownloadSnapshot opens a snapshot as one archive, a tar in Zstandard, made while it is read: its Size is -1, and a connection that
// breaks off ends it with an error. ctx is for the reading, too.
func (c *Client) DownloadSnapshot(ctx context.Context, namespace, id string) (*File, error) {
	return c.open(ctx, api.SnapshotDownloadPath(namespace, id), nil)
}

// ImportSnapshot takes in an archive as DownloadSnapshot gives it, of size bytes, -1 if that is not known. It becomes a snapshot of the
// profile, "" for that which it was taken by, with the id that it has: if there is one of that id, it is an *Error with status 409.
// It is read once, and nothing is sent again by itself.
func (c *Client) ImportSnapshot(ctx context.Context, namespace, profile string, archive io.Reader, size int64) (*api.Snapshot, error) {
	q := url.Values{}
	if profile != "" {
		q.Set(api.ParamProfile, profile)
	}
	return sendArchive[api.Snapshot](ctx, c, api.SnapshotImportPath(namespace), q, archive, size)
}

// CreateBackup starts a run that makes a backup: a snapshot of everything, by the profile api.ProfileBackup.
func (c *Client) CreateBackup(ctx context.Context, namespace string) (*api.Run, error) {
	return send[api.Run](ctx, c, http.MethodPost, api.BackupPath(namespace))
}

// AnalyzeBackup tells what DownloadBackup would give.
func (c *Client) AnalyzeBackup(ctx context.Context, namespace, id string) (*api.BackupAnalysis, error) {
	return get[api.BackupAnalysis](ctx, c, api.BackupAnalyzePath(namespace), backupQuery(id))
}

// DownloadBackup opens a backup as DownloadSnapshot does: one that was made before, or with "" one that is made for it, of which nothing
// stays on the service.
func (c *Client) DownloadBackup(ctx context.Context, namespace, id string) (*File, error) {
	return c.open(ctx, api.BackupDownloadPath(namespace), backupQuery(id))
}

func backupQuery(id string) url.Values {
	q := url.Values{}
	if id != "" {
		q.Set(api.ParamID, id)
	}
	return q
}

// RestoreBackup sends a backup, as ImportSnapshot does, and starts a run that restores it.
func (c *Client) RestoreBackup(ctx context.Context, namespace string, how api.SnapshotRestore, archive io.Reader, size int64) (*api.Run, error) {
	q := url.Values{}
	for name, value := range map[string]string{api.ParamCollections: strings.Join(how.Collections, ","), api.ParamMode: how.Mode, api.ParamInto: how.Into} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if how.Media != nil {
		q.Set(api.ParamMedia, strconv.FormatBool(*how.Media))
	}
	if how.DryRun {
		q.Set(api.ParamDryRun, "true")
	}
	return sendArchive[api.Run](ctx, c, api.BackupRestorePath(namespace), q, archive, size)
}

// sendBody makes a change that is said by a body.
func sendBody[T any](ctx context.Context, c *Client, method, path string, in any) (*T, error) {
	var out T
	_, err := c.do(ctx, call{method: method, path: path, in: in, out: &out})
	if err != nil {
		return nil, err
	}
	return &out, nil
}

// sendArchive sends an archive as it is read.
func sendArchive[T any](ctx context.Context, c *Client, path string, query url.Values, archive io.Reader, size int64) (*T, error) {
	if strings.Contains(path, "//") {
		return nil, fmt.Errorf("POST %s: a name is empty", path)
	}
	header := http.Header{"Content-Type": {api.MediaZstd}, "Expect": {"100-continue"}} // what is refused by its head is not sent
	resp, err := c.Do(ctx, Request{Method: http.MethodPost, Path: path, Query: query, Header: header, Body: sized{archive, size}})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end below
	data, err := c.ReadAnswer(ctx, resp)
	if err != nil {
		return nil, err
	}
	var out T
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, c.notOurs(resp, err)
	}
	return &out, nil
}
