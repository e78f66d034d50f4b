package status

import "time"

// Value is what a condition says: it holds, it does not, or nobody knows yet.
type Value string

// The values of a condition.
const (
	True    Value = "True"
	False   Value = "False"
	Unknown Value = "Unknown"
)

// The types of condition. "Good when" tells the value that a healthy project shows.
const (
	// Ready is the summary, derived by the Board. Good when True.
	Ready = "Ready"
	// Reconciling: the service is at something, or tries something again by itself. It is there only while it is True, with
	// the reason of the condition that it follows, as the kstatus library of Kubernetes reads it. Derived by the Board.
	Reconciling = "Reconciling"
	// Stalled: something can't go on until somebody changes the files or the records. As Reconciling is.
	Stalled = "Stalled"
	// ConfigValid: the files on disk, as last read, compile. False leaves the last good generation serving.
	// Good when True.
	ConfigValid = "ConfigValid"
	// OutOfDate: the files on disk differ from what is served and wait for a reload call. It does not count
	// against Ready, since what was asked for is served. Good when False.
	OutOfDate = "OutOfDate"
	// IndexesConverged: the indexes in the store are the declared ones. Good when True.
	IndexesConverged = "IndexesConverged"
	// JobsScheduled: the runs that are due are started. A project without jobs has no such condition. How runs end is told
	// by their history. Good when True.
	JobsScheduled = "JobsScheduled"
	// SearchReady: searches are answered by indexes of their configs, on this instance. A project without searches has no such
	// condition. Good when True.
	SearchReady = "SearchReady"
	// EmbeddingReady: searches of mode vector find all records, on this instance, and get vectors for what is looked for. A project
	// without such searches has no such condition, and it does not count against Ready: writes, and other searches, go on. Good when True.
	EmbeddingReady = "EmbeddingReady"
	// SnapshotsScheduled: snapshots are taken when they are due, and those are removed that retention does not keep. A project without
	// profiles that are enabled has no such condition. Good when True.
	SnapshotsScheduled = "SnapshotsScheduled"
	// SnapshotsVerified: checks and drills have found the snapshots whole. A project without such schedules has no such condition, and it does
	// not count against Ready: requests are served as ever. Good when True.
	SnapshotsVerified = "SnapshotsVerified"
)

// The reasons of conditions: stable words that programs switch on. The message is for people.
const (
	// ReasonPending: not judged yet (ConfigValid Unknown, Ready False).
	ReasonPending = "Pending"
	// ReasonServing: everything that was judged is good (Ready True).
	ReasonServing = "Serving"
	// ReasonDisabled: the registration has enabled false (ConfigValid Unknown).
	ReasonDisabled = "Disabled"
	// ReasonLoaded: the config compiled and is served (ConfigValid True).
	ReasonLoaded = "Loaded"
	// ReasonInvalid: the config does not compile; the state's problems say where (ConfigValid False).
	ReasonInvalid = "Invalid"
	// ReasonUnreadable: the config could not be read, such as a missing file (ConfigValid False).
	ReasonUnreadable = "Unreadable"
	// ReasonNamespaceChanged: the files now name another namespace than the registered one (ConfigValid False).
	ReasonNamespaceChanged = "NamespaceChanged"
	// ReasonUpToDate: the served generation is that of the files (OutOfDate False).
	ReasonUpToDate = "UpToDate"
	// ReasonChangedOnDisk: the files changed and the service was told to wait for a reload (OutOfDate True).
	ReasonChangedOnDisk = "ChangedOnDisk"
	// ReasonRolledBack: an earlier generation is served again, in the place of the files (OutOfDate True).
	ReasonRolledBack = "RolledBack"
	// ReasonBehind: other instances serve a newer generation, of other files than are here (OutOfDate True).
	ReasonBehind = "Behind"
	// ReasonConverged: desired and actual are the same (IndexesConverged True).
	ReasonConverged = "Converged"
	// ReasonSuspended: the registration is suspended, and the files are not looked at (OutOfDate Unknown).
	ReasonSuspended = "Suspended"
	// ReasonDrifted: the indexes are not the declared ones, and the project's mode is observe, it is suspended, or other
	// instances serve a newer config (IndexesConverged False). It does
	// not count against Ready: that they are left so was asked for.
	ReasonDrifted = "Drifted"
	// ReasonScheduled: the schedules of all jobs, or of snapshots, are followed (JobsScheduled, SnapshotsScheduled True).
	ReasonScheduled = "Scheduled"
	// ReasonIndexed: searches are answered by indexes of their configs (SearchReady True).
	ReasonIndexed = "Indexed"
	// ReasonStale: indexes of configs before answer, since those now have autoRegenerate off (SearchReady False). It does not count
	// against Ready: that they are left so was asked for.
	ReasonStale = "Stale"
	// ReasonSearchFailed: the search indexes can't be opened; it is tried again (SearchReady False).
	ReasonSearchFailed = "SearchFailed"
	// ReasonEmbedded: searches of mode vector find all records (EmbeddingReady True).
	ReasonEmbedded = "Embedded"
	// ReasonEmbedding: records wait for their vectors (EmbeddingReady Unknown).
	ReasonEmbedding = "Embedding"
	// ReasonGroupOffline: an embedding group gives no vectors for now (EmbeddingReady False).
	ReasonGroupOffline = "GroupOffline"
	// ReasonSnapshotFailed: the last snapshot of a profile has failed; it is tried again (SnapshotsScheduled False). It does not count against
	// Ready: requests are served as ever. So it is with PruneFailed.
	ReasonSnapshotFailed = "SnapshotFailed"
	// ReasonPruneFailed: snapshots that are not kept could not be removed; it is tried again (SnapshotsScheduled False).
	ReasonPruneFailed = "PruneFailed"
	// ReasonVerified: the last check and the last drill have found the snapshots whole (SnapshotsVerified True).
	ReasonVerified = "Verified"
	// ReasonUnverified: the first check or drill is still to come (SnapshotsVerified Unknown).
	ReasonUnverified = "Unverified"
	// ReasonSnapshotDamaged: there are snapshots that are damaged (SnapshotsVerified False).
	ReasonSnapshotDamaged = "SnapshotDamaged"
	// ReasonDrillFailed: a restore on trial has failed, or did not come back equal (SnapshotsVerified False).
	ReasonDrillFailed = "DrillFailed"
	// ReasonVerifyFailed: snapshots could not be checked; it is tried again (SnapshotsVerified False).
	ReasonVerifyFailed = "VerifyFailed"
	// ReasonProgressing: work is under way (IndexesConverged, JobsScheduled, SearchReady, SnapshotsScheduled Unknown).
	ReasonProgressing = "Progressing"
	// ReasonUniqueViolation: existing records violate a unique index; the message has the first offending
	// ids (IndexesConverged False).
	ReasonUniqueViolation = "UniqueViolation"
	// ReasonIndexRefused: the store refuses an index for another reason, which the message has (IndexesConverged
	// False).
	ReasonIndexRefused = "IndexRefused"
	// ReasonStoreError: the store failed; it is tried again (IndexesConverged, JobsScheduled, SnapshotsScheduled False).
	ReasonStoreError = "StoreError"
)

// The reasons of events that no condition has.
const (
	// ReasonEnabled: the registration is enabled.
	ReasonEnabled = "Enabled"
	// ReasonRunLost: a run of snapshots was lost with the instance that did it.
	ReasonRunLost = "SnapshotRunLost"
	// ReasonJobFailed: a run of a job has failed, or was lost with the instance that did it.
	ReasonJobFailed = "JobFailed"
	// ReasonRestored: a restore that was left, by an instance that is gone or by a failure, has been done.
	ReasonRestored = "Restored"
	// ReasonRestoreUndone: likewise, and everything is as before.
	ReasonRestoreUndone = "RestoreUndone"
)

// Condition is one judgment about a project (decisions, section 5).
type Condition struct {
	Type    string `json:"type"`
	Status  Value  `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// ObservedGeneration is the generation that was judged; 0 when there was none.
	ObservedGeneration int64 `json:"observedGeneration"`
	// LastTransitionTime is when Status last changed. The Board keeps it.
	LastTransitionTime time.Time `json:"lastTransitionTime"`
}

// Problem is one finding about a config, with its place (decisions, section 2).
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`   // from 1; 0 when unknown
	Column  int    `json:"column"` // from 1; 0 when unknown
	Path    string `json:"path"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Warning bool   `json:"warning"`
}
