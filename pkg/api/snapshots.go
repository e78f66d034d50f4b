package api

// Parameters of snapshots and backups.
const (
	ParamProfile     = "profile"     // only snapshots of it; of an import: the profile that the snapshot comes to be of
	ParamFiles       = "files"       // "true": with the list of its files
	ParamWith        = "with"        // of a diff: the snapshot that is compared with
	ParamKind        = "kind"        // of runs: one of RunKindSnapshot and so on
	ParamID          = "id"          // of a backup: the snapshot that it is made of
	ParamCollections = "collections" // of a restore: names with commas in between
	ParamMedia       = "media"       // of a restore: "false" leaves files of records as they are
	ParamMode        = "mode"        // of a restore
	ParamInto        = "into"        // of a restore: another namespace
)

// ProfileBackup is the profile that backups are snapshots of: every project has it, with everything in it.
const ProfileBackup = "backup"

// The kinds of runs of snapshots and backups.
const (
	RunKindSnapshot = "snapshot"
	RunKindVerify   = "verify"
	RunKindRestore  = "restore"
	RunKindPrune    = "prune"
	RunKindImport   = "import"
	RunKindDrill    = "drill"
	RunKindBackup   = "backup"
)

// The phases of these runs, in the order in which they come.
const (
	RunPhasePlan        = "plan" // of a snapshot and a backup
	RunPhaseCollections = "collections"
	RunPhaseMedia       = "media"
	RunPhaseManifest    = "manifest"
	RunPhaseVerify      = "verify"  // of a check, an import and a drill; of a restore, before anything changes
	RunPhaseSafety      = "safety"  // of a restore: the snapshot that is taken before
	RunPhaseCompare     = "compare" // of a restore's dry run
	RunPhaseLoad        = "load"
	RunPhaseIndex       = "index"
	RunPhaseSwap        = "swap"
	RunPhasePrune       = "prune"
	RunPhaseImport      = "import" // an archive is unpacked
)

// SnapshotProfile is a profile of a project's config, and how its snapshots stand.
type SnapshotProfile struct {
	Name            string             `json:"name"`
	Description     string             `json:"description,omitempty"`
	Own             bool               `json:"own,omitempty"` // the service keeps it for itself: backups, or what restores have replaced
	Enabled         bool               `json:"enabled"`
	Schedule        string             `json:"schedule,omitempty"` // "": it is started by hand only
	NextAt          Time               `json:"nextAt"`             // null: it is not enabled, or has no schedule
	Collections     []string           `json:"collections"`        // those that are taken; none: all but Excluded
	Excluded        []string           `json:"excluded"`
	IncludeMedia    bool               `json:"includeMedia"`
	CollectionDedup bool               `json:"collectionDedup"`
	Mode            string             `json:"mode"`      // json, db or both
	Retention       *SnapshotRetention `json:"retention"` // null: all are kept

	Verify *SnapshotProfileVerify `json:"verify,omitempty"` // when its snapshots are checked by themselves
	Drill  *SnapshotProfileDrill  `json:"drill,omitempty"`  // when the newest is restored on trial

	LastSnapshot *Snapshot `json:"lastSnapshot"` // the newest; null: there is none
	Snapshots    int       `json:"snapshots"`    // how many there are
}

// SnapshotProfileVerify is how a profile's snapshots are checked by themselves.
type SnapshotProfileVerify struct {
	Schedule  string  `json:"schedule"`
	Sample    float64 `json:"sample"`    // the part of the files that is read; 1: all
	Snapshots string  `json:"snapshots"` // all or newest
}

// SnapshotProfileDrill is when the newest of a profile's snapshots is restored on trial.
type SnapshotProfileDrill struct {
	Schedule string `json:"schedule"`
}

// SnapshotRetention says which snapshots pruning keeps: those that any rule keeps.
type SnapshotRetention struct {
	KeepLast    int    `json:"keepLast,omitempty"`
	KeepHourly  int    `json:"keepHourly,omitempty"`
	KeepDaily   int    `json:"keepDaily,omitempty"`
	KeepWeekly  int    `json:"keepWeekly,omitempty"`
	KeepMonthly int    `json:"keepMonthly,omitempty"`
	KeepYearly  int    `json:"keepYearly,omitempty"`
	KeepWithin  string `json:"keepWithin,omitempty"` // such as 1y5m7d2h
}

// Snapshot is what is known of a snapshot.
type Snapshot struct {
	ID           string                `json:"id"`
	Profile      string                `json:"profile"`
	Project      string                `json:"project"` // the namespace that it was taken of
	ConsistentAt Time                  `json:"consistentAt"`
	ImportedAt   *Time                 `json:"importedAt,omitempty"` // when it has come in as an archive; absent: it was taken here
	LostAt       *Time                 `json:"lostAt,omitempty"`     // when what was known of it could not be read any more and was written anew: since then it counts as one that has come in
	Run          string                `json:"run,omitempty"`        // in the answer to an import alone: the id of the run that took it in
	Revision     string                `json:"revision"`             // of the config that was served
	Generation   int64                 `json:"generation"`
	Store        string                `json:"store"`
	Tool         string                `json:"tool"` // the version of svcd
	Mode         string                `json:"mode"` // json, db or both
	Media        bool                  `json:"media"`
	Collections  []SnapshotCollection  `json:"collections"`
	Counts       SnapshotCounts        `json:"counts"`
	Warnings     []string              `json:"warnings,omitempty"` // the first hundred
	Pinned       bool                  `json:"pinned"`             // it can't be deleted
	Verified     *SnapshotVerification `json:"verified"`           // the last check; null: it was never checked
	WholeAt      Time                  `json:"wholeAt"`            // when a check of everything has last found it whole; null: none has, or damage was found since
	Damage       *SnapshotVerification `json:"damage,omitempty"`   // the last check that has found damage, until one of everything finds it whole
	Problem      string                `json:"problem,omitempty"`  // why it can't be read: of such a one no more is known than id and profile
	Files        []SnapshotFile        `json:"files,omitempty"`    // where ParamFiles asks for them
}

// SnapshotCollection is a collection in a snapshot.
type SnapshotCollection struct {
	Name       string `json:"name"`
	Undeclared bool   `json:"undeclared,omitempty"` // the config did not have it
	Documents  int64  `json:"documents"`
	Bytes      int64  `json:"bytes"`               // of its records as BSON, uncompressed
	DiskBytes  int64  `json:"diskBytes,omitempty"` // of its files in the snapshot as they are on the disk, compressed; absent in lists, which don't look at files
}

// SnapshotCounts sum up a snapshot.
type SnapshotCounts struct {
	Documents    int64 `json:"documents"`
	MediaFiles   int64 `json:"mediaFiles"`
	MediaBytes   int64 `json:"mediaBytes"`
	Missing      int64 `json:"missing"`  // files that records name and that were not there
	Bytes        int64 `json:"bytes"`    // of all its files as they are on the disk: of records compressed
	NewBytes     int64 `json:"newBytes"` // of those that are no links
	Written      int64 `json:"written"`  // files, as those below
	Linked       int64 `json:"linked"`   // to the file of the record
	Copied       int64 `json:"copied"`   // of that, where links can't be
	Deduplicated int64 `json:"deduplicated"`
	Warnings     int64 `json:"warnings"`
}

// SnapshotFile is a file of a snapshot.
type SnapshotFile struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	Count  int64  `json:"count,omitempty"` // of records
	How    string `json:"how"`             // written, linked, copied or deduplicated
}

// SnapshotVerification is how a check has ended.
type SnapshotVerification struct {
	At       Time              `json:"at"`
	Sample   float64           `json:"sample,omitempty"` // the part of the files that was read; 0: all
	Files    int64             `json:"files"`            // that were read
	Bytes    int64             `json:"bytes"`
	Problems int64             `json:"problems"`
	Found    []SnapshotFinding `json:"found,omitempty"` // the first hundred problems
	Dangling int64             `json:"dangling"`        // files that records name and that are not in it
	Without  []SnapshotFinding `json:"without,omitempty"`
}

// SnapshotFinding is something that a check has found.
type SnapshotFinding struct {
	Path string `json:"path"` // of the file in the snapshot, or what names it
	Text string `json:"text"`
}

// SnapshotStart is the body of POST snapshots.
type SnapshotStart struct {
	Profile string `json:"profile"`
}

// SnapshotChange is the body of PUT snapshots/<id>.
type SnapshotChange struct {
	Pinned *bool `json:"pinned"`
}

// SnapshotVerify is the body of POST snapshots/<id>/verify.
type SnapshotVerify struct {
	Sample float64 `json:"sample,omitempty"` // the part of the files that is read, above 0 and at most 1; 0: all
}

// The modes of a restore.
const (
	RestoreReplace = "replace" // what is not in the snapshot goes
	RestoreMerge   = "merge"   // what is not in the snapshot stays
)

// SnapshotRestore is the body of POST snapshots/<id>/restore; of POST backup/restore, whose body is the backup, its members are parameters.
type SnapshotRestore struct {
	Collections []string `json:"collections,omitempty"` // none: all that are in the snapshot
	Media       *bool    `json:"media,omitempty"`       // whether files of records come back; true by default
	Mode        string   `json:"mode,omitempty"`        // RestoreReplace by default
	DryRun      bool     `json:"dryRun,omitempty"`      // the run tells what would change, in SnapshotResult.Diff, and changes nothing
	Into        string   `json:"into,omitempty"`        // a namespace to restore into, registered or not; "": the project's own
}

// SnapshotPrune is the body of POST snapshots/prune.
type SnapshotPrune struct {
	Profile string `json:"profile,omitempty"` // "": of all profiles that have a retention
	DryRun  bool   `json:"dryRun,omitempty"`  // the answer is a SnapshotPrunePlan, and nothing is removed
}

// SnapshotPrunePlan is what a retention decides, the newest snapshot of each profile first.
type SnapshotPrunePlan struct {
	Items []SnapshotDecision `json:"items"`
}

// SnapshotDecision is what becomes of a snapshot.
type SnapshotDecision struct {
	ID           string   `json:"id"`
	Profile      string   `json:"profile"`
	ConsistentAt Time     `json:"consistentAt"`
	Keep         bool     `json:"keep"`
	Reasons      []string `json:"reasons"`
}

// SnapshotDiff is how records differ from those of a snapshot: those that are live now, or those of another snapshot. What is added is in
// these and not in the snapshot. Of the dry run of a restore it is the other way: from what is live now to what would be.
type SnapshotDiff struct {
	ID          string                   `json:"id"`
	With        string                   `json:"with"` // the other snapshot; "": what is live
	Same        bool                     `json:"same"` // nothing differs
	Collections []SnapshotCollectionDiff `json:"collections"`
}

// SnapshotCollectionDiff is how the records of a collection differ.
type SnapshotCollectionDiff struct {
	Collection string               `json:"collection"`
	Only       string               `json:"only,omitempty"`       // DiffBefore or DiffAfter: one side alone has the collection
	NotCovered bool                 `json:"notCovered,omitempty"` // one side was not taken of the collection: it is not compared, and no difference
	Added      int64                `json:"added"`
	Removed    int64                `json:"removed"`
	Changed    int64                `json:"changed"`
	Same       int64                `json:"same"`
	Records    []SnapshotRecordDiff `json:"records"`             // the first that differ
	Files      int64                `json:"files"`               // that records of both sides name, and that one side does not have, or has with another size
	FileDiffs  []SnapshotFileDiff   `json:"fileDiffs,omitempty"` // the first of them
	More       bool                 `json:"more"`                // there are more of either
}

// The sides of a diff. Before is the snapshot, of a restore's dry run what is live now.
const (
	DiffBefore = "before"
	DiffAfter  = "after"
)

// The ways in which a record differs.
const (
	DiffAdded   = "added"
	DiffRemoved = "removed"
	DiffChanged = "changed"
)

// SnapshotRecordDiff is how a record differs.
type SnapshotRecordDiff struct {
	ID     string   `json:"id"`              // hex of an ObjectID, else canonical Extended JSON
	Change string   `json:"change"`          // DiffAdded, DiffRemoved or DiffChanged
	Paths  []string `json:"paths,omitempty"` // of the fields that have changed, the first twenty
	More   bool     `json:"more,omitempty"`  // there are more
}

// SnapshotFileDiff is a file of a record that is there, or as large, on one side only. Between what is live and a snapshot what it has in it is not read.
type SnapshotFileDiff struct {
	Record string `json:"record"` // hex of its ObjectID
	Field  string `json:"field"`
	Name   string `json:"name"`
	Change string `json:"change"` // DiffAdded, DiffRemoved or DiffChanged
}

// SnapshotResult is Run.Result of a run of snapshots or backups. Which members it has depends on its kind.
type SnapshotResult struct {
	Snapshot string                `json:"snapshot,omitempty"`     // the id of what was taken, checked, restored or imported
	Profile  string                `json:"profile,omitempty"`      // its profile
	Counts   *SnapshotCounts       `json:"counts,omitempty"`       // of what was taken or imported
	Warnings []string              `json:"warnings,omitempty"`     // the first hundred
	Verified *SnapshotVerification `json:"verified,omitempty"`     // of verify of a snapshot, also where that has failed by what it found, and import
	Checked  *SnapshotsChecked     `json:"checked,omitempty"`      // of verify of the snapshots of a profile, likewise
	Restored *SnapshotRestored     `json:"restored,omitempty"`     // of restore, if it was no dry run
	Would    *SnapshotWouldRestore `json:"wouldRestore,omitempty"` // of a restore's dry run: nothing was changed
	Diff     *SnapshotDiff         `json:"diff,omitempty"`         // likewise
	Drill    *SnapshotDrill        `json:"drill,omitempty"`        // of drill, likewise
	Removed  []SnapshotDecision    `json:"removed,omitempty"`      // of prune: the snapshots that are gone
	Kept     []SnapshotDecision    `json:"kept,omitempty"`         // of prune
}

// SnapshotsChecked is what the snapshots of a profile were found to be.
type SnapshotsChecked struct {
	Snapshots int64            `json:"snapshots"`       // that were checked
	Damaged   int64            `json:"damaged"`         // of these
	Problems  int64            `json:"problems"`        // in all of them
	Found     []SnapshotDamage `json:"found,omitempty"` // the first hundred that are damaged, the newest first
}

// SnapshotDamage is what is wrong with one of several snapshots.
type SnapshotDamage struct {
	Snapshot string            `json:"snapshot"`
	Problems int64             `json:"problems"`
	Found    []SnapshotFinding `json:"found"` // the first twenty; the snapshot has more of them in verified
}

// SnapshotWouldRestore is what a restore would do, of which this is the dry run. Files are not looked at.
type SnapshotWouldRestore struct {
	Into        string                   `json:"into"`           // the namespace
	Made        bool                     `json:"made,omitempty"` // the project would be made for it
	Mode        string                   `json:"mode"`
	Collections []WouldRestoreCollection `json:"collections"`
	Drift       []RestoreDrift           `json:"drift,omitempty"`
}

// WouldRestoreCollection is a collection that would be restored.
type WouldRestoreCollection struct {
	Name         string `json:"name"`
	Documents    int64  `json:"documents"`           // that it would have
	FromSnapshot int64  `json:"fromSnapshot"`        // of those
	Unchanged    bool   `json:"unchanged,omitempty"` // neither side has the collection: there is nothing to do
}

// SnapshotRestored is what a restore has done.
type SnapshotRestored struct {
	Into        string               `json:"into"`             // the namespace
	Made        bool                 `json:"made,omitempty"`   // the project was made for it, of the config of the snapshot
	Safety      string               `json:"safety,omitempty"` // the id of the snapshot of what was replaced; "": there was nothing
	Mode        string               `json:"mode"`
	Collections []RestoredCollection `json:"collections"`
	Files       RestoredFiles        `json:"files"`
	Drift       []RestoreDrift       `json:"drift,omitempty"`
	// SafetyWarnings are those of the snapshot Safety, the first hundred: of what was missing or damaged already. They are none of the restore.
	SafetyWarnings []string `json:"safetyWarnings,omitempty"`
}

// RestoredCollection is a collection that was restored.
type RestoredCollection struct {
	Name         string `json:"name"`
	Documents    int64  `json:"documents"`    // that it has now
	FromSnapshot int64  `json:"fromSnapshot"` // of those
	Bytes        int64  `json:"bytes"`
	Unchanged    bool   `json:"unchanged,omitempty"` // neither side has the collection: there was nothing to do
}

// RestoredFiles count the files of records that were brought back.
type RestoredFiles struct {
	Linked    int64 `json:"linked"`
	Copied    int64 `json:"copied"`
	WereThere int64 `json:"wereThere"`
	Missing   int64 `json:"missing"` // neither in the snapshot nor in their place
}

// RestoreDrift is where what was restored and the config that is served differ.
type RestoreDrift struct {
	Collection string `json:"collection,omitempty"`
	Kind       string `json:"kind"` // undeclared, indexes, config, fields or elsewhere
	Text       string `json:"text"`
}

// Warns says that this is to be looked at: all but that the config has changed in nothing that concerns what is restored.
func (d RestoreDrift) Warns() bool { return d.Kind != "elsewhere" }

// SnapshotDrill is what a rehearsed restore has brought back, as it was. A run whose drill finds that not all comes back fails, and says what.
type SnapshotDrill struct {
	Documents int64             `json:"documents"`
	Bytes     int64             `json:"bytes"`
	Files     int64             `json:"files"` // of records, that were read
	Seconds   float64           `json:"seconds"`
	Problems  int64             `json:"problems"`
	Found     []SnapshotFinding `json:"found,omitempty"` // the first hundred problems
}

// BackupAnalysis is what a download of a backup has, before it is made.
type BackupAnalysis struct {
	ID           string               `json:"id"` // the snapshot that it is made of; "": one that is taken then, and the figures are those of now
	ConsistentAt Time                 `json:"consistentAt"`
	Collections  []SnapshotCollection `json:"collections"`
	Documents    int64                `json:"documents"`
	MediaFiles   int64                `json:"mediaFiles"`
	MediaBytes   int64                `json:"mediaBytes"`
	Files        int64                `json:"files"` // in the archive; where ID is "": about
	Bytes        int64                `json:"bytes"` // of them, as the archive has them, before it is compressed; where ID is "": at most about
}
