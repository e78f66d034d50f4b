package api

// ProjectWrite is the body of POST /project and PUT /project/<id>, as UserWrite is (Enabled is true by default). ConfigFile
// is the path of the project's entry file as the service sees it: absolute, or relative to its projects directory.
type ProjectWrite struct {
	Name        *string `json:"name,omitempty" validator:"max=100"` // default: the namespace
	Description *string `json:"description,omitempty" validator:"max=1000"`
	ConfigFile  *string `json:"configFile,omitempty" validator:"required,max=4096"`
	OrgID       *string `json:"orgId,omitempty"` // "": of no org
	Enabled     *bool   `json:"enabled,omitempty"`
	Suspended   *bool   `json:"suspended,omitempty"` // what is served stays as it is, whatever the files say
}

// Project is a registration as it is read.
type Project struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	ConfigFile  string `json:"configFile"`
	Enabled     bool   `json:"enabled"`
	Suspended   bool   `json:"suspended"` // what is served stays as it is, whatever the files say
	OrgID       string `json:"orgId"`     // "": of no org
	Namespace   string `json:"namespace"`
	CreatedAt   Time   `json:"createdAt"`
	UpdatedAt   Time   `json:"updatedAt"`
}

// Phase is the one-word summary of a project's conditions.
type Phase string

// The phases.
const (
	PhasePending  Phase = "Pending"  // registered, nothing served yet
	PhaseReady    Phase = "Ready"    // served, and Ready is True
	PhaseDegraded Phase = "Degraded" // served, but Ready is not True
	PhaseFailed   Phase = "Failed"   // not served: no config of it was ever valid
	PhaseDisabled Phase = "Disabled" // enabled is false

	PhaseSuspended Phase = "Suspended" // served, Ready is True, and suspended is true
)

// ProjectStatus is the body of GET /project/<id>/status.
type ProjectStatus struct {
	ID                 string           `json:"id"`
	Namespace          string           `json:"namespace"`
	Phase              Phase            `json:"phase"`
	ObservedGeneration int64            `json:"observedGeneration"` // the generation that is served
	Revision           string           `json:"revision"`           // hash of the files that are served
	Conditions         []Condition      `json:"conditions"`
	Problems           []ConfigProblem  `json:"problems"`         // of the files on disk, served or not
	Counts             map[string]int64 `json:"counts,omitempty"` // records by collection, of those that the caller may read whole
	// SuspendedScripts are those that ran away several times in a row on the instance that answers, and rest there.
	SuspendedScripts []SuspendedScript `json:"suspendedScripts,omitempty"`
}

// SuspendedScript is a script that does not run for a while.
type SuspendedScript struct {
	File     string `json:"file"`
	Runaways int    `json:"runaways"` // runs in a row that took too long, or too much memory
	Until    Time   `json:"until"`    // when it is tried again
}

// Condition is one aspect of a project's state, in the form Kubernetes gives it. Status is "True", "False" or
// "Unknown".
type Condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason"`
	Message            string `json:"message"`
	ObservedGeneration int64  `json:"observedGeneration"`
	LastTransitionTime Time   `json:"lastTransitionTime"`
}

// Condition gives a condition of the project: one that it has not is Unknown, or False.
func (s *ProjectStatus) Condition(typ string) Condition {
	for _, c := range s.Conditions {
		if c.Type == typ {
			return c
		}
	}
	if typ == "Reconciling" || typ == "Stalled" { // which are there only while they are True
		return Condition{Type: typ, Status: "False"}
	}
	return Condition{Type: typ, Status: "Unknown", Reason: "Pending", Message: "not judged yet"}
}

// ReloadResult answers a reload that was waited for. Changed is false when the files were the served ones already.
type ReloadResult struct {
	Generation int64           `json:"generation"`
	Changed    bool            `json:"changed"`
	Revision   string          `json:"revision"`
	Conditions []Condition     `json:"conditions"`
	Warnings   []ConfigProblem `json:"warnings"`
}

// Generation is a config that a project is or was served from.
type Generation struct {
	Number     int64  `json:"number"`
	Revision   string `json:"revision"` // hash of the files
	Since      Time   `json:"since"`    // when it was first served
	By         Actor  `json:"by"`       // who had it served; of kind ActorFiles when the files had changed by themselves
	RollbackOf int64  `json:"rollbackOf,omitempty"`
	Files      int    `json:"files"`   // how many
	Bytes      int    `json:"bytes"`   // of all files
	Kept       bool   `json:"kept"`    // whether it can be rolled back to
	Current    bool   `json:"current"` // whether the instance that answers serves it
}

// ActorFiles is the kind of actor that changed files are.
const ActorFiles = "files"

// RollbackWrite is the body of POST /_/P/_/admin/rollback.
type RollbackWrite struct {
	Generation int64 `json:"generation"`
}

// RollbackResult answers a rollback: Generation is the new one, which is RollbackOf again. Changed is false when that is
// what was served already.
type RollbackResult struct {
	ReloadResult

	RollbackOf int64 `json:"rollbackOf"`
}

// ProjectEvent is something that the service did with a project, or found out about it. One that comes again is counted, and
// gets another ID.
type ProjectEvent struct {
	ID         int64  `json:"id"`
	Type       string `json:"type"` // Normal or Warning
	Reason     string `json:"reason"`
	Message    string `json:"message"`
	Object     string `json:"object,omitempty"`     // such as "job/cleanup"; absent: the project
	Generation int64  `json:"generation,omitempty"` // that it is about
	Count      int64  `json:"count"`
	FirstSeen  Time   `json:"firstSeen"`
	LastSeen   Time   `json:"lastSeen"`
}

// CollectionDescription is what a caller may know of a collection. Hidden fields are absent.
type CollectionDescription struct {
	Name            string                  `json:"name"`
	Fields          []FieldDescription      `json:"fields"`
	Indexes         []IndexDescription      `json:"indexes"`
	Search          []SearchDescription     `json:"search,omitempty"` // what q can search by; without a qName the first
	Projections     []string                `json:"projections,omitempty"`
	StrictFields    bool                    `json:"strictFields"`
	Languages       []string                `json:"languages,omitempty"` // of records; the first is that of the fields themselves
	Singleton       bool                    `json:"singleton,omitempty"` // there is one record, at the collection's own path
	Meta            map[string]any          `json:"meta,omitempty"`
	YourPermissions map[string]MethodRights `json:"yourPermissions"` // by method: get, post, put, delete
}

// SearchDescription is one search of a collection, as far as it finds something for the caller.
type SearchDescription struct {
	Name    string         `json:"name"`              // for qName
	Mode    string         `json:"mode"`              // text, ngram, regex, vector or rrf
	Fields  []string       `json:"fields,omitempty"`  // that are searched
	Sources []string       `json:"sources,omitempty"` // searches that one of mode rrf fuses
	Eval    bool           `json:"eval,omitempty"`    // a script makes the text of the fields
	Meta    map[string]any `json:"meta,omitempty"`
}

// FieldDescription is one field of a collection or of an object field.
type FieldDescription struct {
	Name         string             `json:"name"`
	Type         string             `json:"type"`
	Required     bool               `json:"required,omitempty"`
	Readonly     bool               `json:"readonly,omitempty"`
	Translated   bool               `json:"translated,omitempty"` // it may have a value for each language
	StrictFields bool               `json:"strictFields,omitempty"`
	Validator    any                `json:"validator,omitempty"` // as configured: an object of rules, or a tag string
	Index        []string           `json:"index,omitempty"`
	SubFields    []FieldDescription `json:"subFields,omitempty"`
	Meta         map[string]any     `json:"meta,omitempty"`
}

// States of an index.
const (
	IndexReady    = "ready"    // serves queries
	IndexBuilding = "building" // being built
	IndexFailed   = "failed"   // can't be built; Message says why
	IndexForeign  = "foreign"  // there, made by other hands
)

// IndexDescription is one index and how far it is.
type IndexDescription struct {
	Name    string   `json:"name"`
	Key     []string `json:"key"` // field paths, "-" before a descending one
	Unique  bool     `json:"unique,omitempty"`
	Sparse  bool     `json:"sparse,omitempty"`
	State   string   `json:"state"`
	Message string   `json:"message,omitempty"`
}

// CollectionStats says how large a collection is. Bytes are as records are encoded, sizes on disk are estimates.
type CollectionStats struct {
	Name      string       `json:"name"`
	Records   int64        `json:"records"`
	Bytes     int64        `json:"bytes"`
	DiskBytes int64        `json:"diskBytes"` // of the records, without indexes
	Indexes   []IndexStats `json:"indexes"`
}

// IndexStats says how large an index is on disk.
type IndexStats struct {
	Name      string   `json:"name"`
	Key       []string `json:"key"` // as in IndexDescription
	DiskBytes int64    `json:"diskBytes"`
}

// MethodRights is what a caller may do with one method on a collection.
type MethodRights struct {
	Allow     bool `json:"allow"`
	Bulk      bool `json:"bulk"`
	Aggregate bool `json:"aggregate"`
	Lookup    bool `json:"lookup"`
	Count     bool `json:"count"`
	Facet     bool `json:"facet"`
}
