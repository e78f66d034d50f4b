package schema

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// How the struct tags of config types read:
//
//	cfg:"name"            the key; ",required"; ",listref": the list may be the path of a file; "-": no member
//	cfg:",rest"           a bson.D that takes every key the struct doesn't name
//	cfg:",raw"            a bson.D that holds the whole object as it was written, references resolved
//	enum:"a,b"            the closed list of values; for a list, of its elements
//	pattern:"name"        a row of the table in pattern.go; for a list, for its elements
//	min:"0" max:"9"       bounds of a number; min of a list is its least length
//	default:"x"           the value when the key is absent
//	types:"boolean,list"  what a free value may be; without it, anything
//	doc:"…"               the description that editors show
//
// A pointer, map or slice is nil when the key is absent. Free values are bson.D, bson.A, string, int64, float64,
// bool and nil. Wherever an object may stand, a string is the path of a file with that object.

// Project is a project's config file (interface "Project config").
type Project struct {
	Namespace    string        `cfg:"namespace,required" pattern:"namespace" doc:"The project's name in paths and in the store."`
	Meta         *ProjectMeta  `cfg:"meta" doc:"Guidance for editors and agents."`
	Upload       *Upload       `cfg:"upload" doc:"Limits of uploads, for every collection without its own."`
	Collections  []*Collection `cfg:"collections" doc:"The collections, each an object or the path of a file."`
	Jobs         []*Job        `cfg:"jobs" doc:"Scheduled scripts."`
	Actions      []*Action     `cfg:"actions" doc:"Custom endpoints."`
	Assets       []*Asset      `cfg:"assets" doc:"Folders whose files are served."`
	CORS         *CORS         `cfg:"cors" doc:"Cross-origin access from browsers."`
	Admin        *Admin        `cfg:"admin" doc:"The project's admin tokens."`
	Hook         *Hook         `cfg:"hook" doc:"Settings of all hooks."`
	Audit        *Audit        `cfg:"audit" doc:"The audit log of writes."`
	Legacy       *Legacy       `cfg:"legacy" doc:"Switches for old clients."`
	Mode         string        `cfg:"mode" enum:"enforce,observe" default:"enforce" doc:"What is done about indexes that are not as declared, and files that no record names. enforce: it is mended; observe: it is told of alone."`
	StrictFields *bool         `cfg:"strictFields" doc:"Refuse fields that are not declared."`
	SnapshotPath string        `cfg:"snapshotPath" pattern:"path" default:"snapshots" doc:"Directory of snapshots, relative to the config's directory."`
	Snapshots    []*Snapshot   `cfg:"snapshots" doc:"Profiles of point-in-time backups. backup and before-restore are the service's own: a retention of theirs keeps the newest 10, all of the 7 days before the newest, and what was checked or imported in the last 7 days."`
}

// ProjectMeta is a project's meta: an agent guide and whatever else a front end keeps there.
type ProjectMeta struct {
	Label       Label  `cfg:"label" doc:"Name for people."`
	Description Label  `cfg:"description" doc:"What the project is."`
	Agent       bson.D `cfg:"agent" doc:"Free guidance for editors and agents."`
	Rest        bson.D `cfg:",rest"`
	Raw         bson.D `cfg:",raw"`
}

// Upload is uploadConfig: limits of uploads. A zero MaxBodySize means the next wider setting.
type Upload struct {
	MaxBodySize      Size     `cfg:"maxBodySize" doc:"Largest request body: bytes, or such as 25MB."`
	AllowedMimeTypes []string `cfg:"allowedMimeTypes" pattern:"mime" doc:"Allowed types, such as image/*."`
}

// CORS says which web origins may call.
type CORS struct {
	Origins       []string `cfg:"origins" pattern:"origin" doc:"Exact origins, https://*.example.com, or *."`
	Methods       []string `cfg:"methods" enum:"GET,HEAD,POST,PUT,PATCH,DELETE,OPTIONS" doc:"Allowed methods."`
	Headers       []string `cfg:"headers" doc:"Request headers that scripts may set."`
	ExposeHeaders []string `cfg:"exposeHeaders" doc:"Response headers that scripts may read."`
	Credentials   bool     `cfg:"credentials" doc:"Whether cookies are sent."`
	MaxAge        Duration `cfg:"maxAge" doc:"How long browsers may remember the answer."`
}

// Admin holds the project's admin tokens, which grant collection access, reload and snapshot.
type Admin struct {
	Tokens []AdminToken `cfg:"tokens" doc:"Admin tokens: plain strings, or objects."`
}

// AdminToken is one project admin token: a plain string in the file, or an object. Exactly one of Value and SHA256 is
// set; SHA256 is lowercase hex. Rights is never empty: a token that names none has all.
type AdminToken struct {
	Name      string     `cfg:"name" doc:"Name for logs."`
	Value     string     `cfg:"value" secret:"true" doc:"The token itself."`
	SHA256    string     `cfg:"sha256" pattern:"sha256" doc:"The token's SHA-256 in hex, instead of its value."`
	Rights    []string   `cfg:"rights" enum:"collections,reload,snapshot" doc:"What the token grants; all three when absent."`
	ExpiresAt *time.Time `cfg:"expiresAt" doc:"When the token stops working, RFC 3339."`
}

// Hook holds the settings of all of a project's scripts.
type Hook struct {
	Timeout   Duration  `cfg:"timeout" default:"5000" min:"1" doc:"Time a hook may take when its entry says nothing."`
	Memory    Size      `cfg:"memory" default:"64MiB" doc:"Memory a script may take."`
	Isolation string    `cfg:"isolation" enum:"auto,none,process" default:"auto" doc:"Where scripts run. auto: hooks, filters, expressions and short actions in the service, jobs and long actions in a worker process; none: all in the service, unless they are slow or have run away; process: all in worker processes."`
	Env       []string  `cfg:"env" pattern:"envname" doc:"Names of environment variables that scripts may read."`
	HTTP      *HookHTTP `cfg:"http" doc:"Outgoing requests of scripts."`
}

// HookHTTP says which hosts scripts may call.
type HookHTTP struct {
	Allow []string `cfg:"allow" pattern:"host" doc:"Hosts that http.fetch may call: names, *.example.com, with a port where only that is meant. An address or localhost allows exactly that."`
}

// Audit says which writes go to the audit log.
type Audit struct {
	Enabled       bool     `cfg:"enabled" doc:"Whether writes are recorded."`
	Methods       []string `cfg:"methods" enum:"post,put,delete" default:"post,put,delete" doc:"Which writes."`
	ExcludeFields []string `cfg:"excludeFields" doc:"Field paths whose values are left out of entries, as those of hidden fields are."`
	Retention     Duration `cfg:"retention" doc:"How long entries are kept, such as 90d; forever when absent."`
}

// Legacy holds switches for old clients. Members other than its own are kept and have no effect.
type Legacy struct {
	LooseQuery bool   `cfg:"looseQuery" doc:"Ignore unknown query parameters instead of refusing them."`
	Rest       bson.D `cfg:",rest"`
}

// Job is a scheduled script. Its name is the file's stem when it has none.
type Job struct {
	Name    string   `cfg:"name" pattern:"name" doc:"The job's name; the file's stem when absent."`
	Type    string   `cfg:"type,required" enum:"javascript" doc:"The kind of script."`
	File    string   `cfg:"file,required" pattern:"path" doc:"The script."`
	Cron    Schedule `cfg:"cron" doc:"When it runs: five-field cron, @daily, or every 6h."`
	Timeout Duration `cfg:"timeout" default:"300000" min:"1" doc:"Time a run may take."`
	Meta    bson.D   `cfg:"meta" doc:"Free metadata."`
}

// Asset is a folder whose files are served to everybody.
type Asset struct {
	Name string `cfg:"name,required" pattern:"name" doc:"The name in the path."`
	Path string `cfg:"path,required" pattern:"path" doc:"The folder, relative to the file that this stands in, inside the project's directory. Every file in it is public, but for hidden ones. It may hold no file of the config."`
}

// Snapshot is a profile of point-in-time backups.
type Snapshot struct {
	Name            string               `cfg:"name,required" pattern:"name" doc:"Unique profile id."`
	Description     string               `cfg:"description" doc:"Free text."`
	Collections     []SnapshotCollection `cfg:"collections" doc:"Collections to include, or to exclude; all when empty."`
	IncludeMedia    bool                 `cfg:"includeMedia" default:"true" doc:"Whether media files are included."`
	CollectionDedup bool                 `cfg:"collectionDedup" doc:"Link exports that are unchanged."`
	Mode            string               `cfg:"mode" enum:"json,db,both" default:"json" doc:"The form of the export."`
	Retention       *Retention           `cfg:"retention" doc:"Which snapshots are kept, beside those that are pinned, the newest that was found whole, and what was imported in the last 7 days; all when absent. The service's own profiles, backup and before-restore, have one of their own."`
	Schedule        Schedule             `cfg:"schedule" doc:"When it is taken: five-field cron, @daily, or every 6h; by hand only when empty. The zone of CRON_TZ= is that of retention, too."`
	Verify          *SnapshotVerify      `cfg:"verify" doc:"Checks of its snapshots by a schedule."`
	Drill           *SnapshotDrill       `cfg:"drill" doc:"Restores on trial by a schedule: the newest snapshot, beside the records, compared and removed again."`
	Permissions     []string             `cfg:"permissions" pattern:"holder" doc:"Scopes, teams or user names that may start and read it."`
	Enabled         bool                 `cfg:"enabled" doc:"Whether what has a schedule is done by itself, and what retention does not keep is removed."`
}

// SnapshotVerify says when the snapshots of a profile are checked, and how much of them.
type SnapshotVerify struct {
	Schedule  Schedule `cfg:"schedule,required" doc:"When they are checked."`
	Snapshots string   `cfg:"snapshots" enum:"all,newest" default:"all" doc:"Which ones."`
	Sample    float64  `cfg:"sample" min:"0.001" max:"1" default:"1" doc:"The part of the files of each that is read, drawn anew each time; 1: all of them."`
}

// SnapshotDrill says when a restore of the newest snapshot of a profile is rehearsed.
type SnapshotDrill struct {
	Schedule Schedule `cfg:"schedule,required" doc:"When it is rehearsed."`
}

// Profiles of snapshots that the service keeps for itself: every project has them, and no config.
const (
	BackupProfile = "backup"         // backups, which people make
	SafetyProfile = "before-restore" // what was there before a restore
)

// IsOwnSnapshots says that a profile is one of the service. No config has one that differs from it in upper and lower case only.
func IsOwnSnapshots(profile string) bool { return profile == BackupProfile || profile == SafetyProfile }

// SnapshotCollection names a collection of a snapshot: a plain name (included), or an object.
type SnapshotCollection struct {
	Name string `cfg:"name,required" doc:"The collection."`
	Mode string `cfg:"mode" enum:"include,exclude" default:"include" doc:"Whether it is taken or left out."`
}

// Retention says which snapshots pruning keeps: those that any rule keeps.
type Retention struct {
	KeepLast    int  `cfg:"keepLast" min:"0" doc:"The newest n."`
	KeepHourly  int  `cfg:"keepHourly" min:"0" doc:"The newest of each of the last n hours that have one."`
	KeepDaily   int  `cfg:"keepDaily" min:"0" doc:"The newest of each of the last n days that have one."`
	KeepWeekly  int  `cfg:"keepWeekly" min:"0" doc:"The newest of each of the last n weeks that have one."`
	KeepMonthly int  `cfg:"keepMonthly" min:"0" doc:"The newest of each of the last n months that have one."`
	KeepYearly  int  `cfg:"keepYearly" min:"0" doc:"The newest of each of the last n years that have one."`
	KeepWithin  Span `cfg:"keepWithin" doc:"All within this time of the newest, such as 1y5m7d2h."`
}
