package schema

// HookGroup is a group of hook stages.
type HookGroup struct {
	Name   string
	Stages []HookStage
}

// HookStage is one moment of an operation at which scripts run. The table is what configs are held against, what records
// runs, and what docs/hooks.md and the types for editors are made of.
type HookStage struct {
	Name string
	When string   // a sentence for people
	In   []string // the members of ctx that it has beside those of every stage; see HookMembers
	Out  []string // those that the script may replace: a value that it returns replaces the first, and changes of one in In count, too
	Bulk bool     // it is about all records of a bulk write at once
}

// hookGroups is the table of a collection's hook stages. A new stage is one row here and a step in its verb.
var hookGroups = []HookGroup{
	{"get", []HookStage{
		{"handle", "before the read, and in its place if it returns something", []string{"id", "filter"}, []string{"result"}, false},
		{"read", "behind the store, with records as they are stored", []string{"id", "doc", "docs"}, []string{"docs", "doc"}, false},
		{"return", "before the answer goes out, with records as the caller sees them", []string{"id", "result"}, []string{"result"}, false},
		{"file", "before a file goes out; an error refuses it", []string{"id", "doc", "field", "path"}, nil, false},
	}},
	{"post", []HookStage{
		{"bind", "with the body as the caller sent it", []string{"data"}, []string{"data"}, false},
		{"validate", "behind the checks of types and rules; what it returns are problems", []string{"doc"}, nil, false},
		{"handle", "before the insert, and in its place if it returns the record to answer", []string{"doc"}, []string{"result"}, false},
		{"create", "within the write, last before the insert", []string{"doc"}, []string{"doc"}, false},
		{"return", "behind the write, with the record as the caller sees it", []string{"id", "result"}, []string{"result"}, false},
		{"bulkCreate", "within a bulk write, before the inserts", []string{"docs"}, []string{"docs"}, true},
		{"bulkReturn", "behind a bulk write, with its answer as the caller sees it", []string{"result"}, []string{"result"}, true},
	}},
	{"put", []HookStage{
		{"bind", "with the body as the caller sent it", []string{"id", "data", "previous"}, []string{"data"}, false},
		{"validate", "behind the checks of types and rules; what it returns are problems", []string{"id", "doc", "previous"}, nil, false},
		{"update", "within the write, last before the record is replaced", []string{"id", "doc", "previous"}, []string{"doc"}, false},
		{"return", "behind the write, with the record as the caller sees it", []string{"id", "result"}, []string{"result"}, false},
		{"bulkUpdate", "within a bulk write, before the records are replaced", []string{"docs", "previous"}, []string{"docs"}, true},
		{"bulkReturn", "behind a bulk write, with its answer as the caller sees it", []string{"result"}, []string{"result"}, true},
	}},
	{"delete", []HookStage{
		{"delete", "within the write, last before the record goes; an error keeps it", []string{"id", "doc"}, nil, false},
		{"return", "behind the write", []string{"id", "result"}, []string{"result"}, false},
		{"bulkDelete", "within a bulk write, before the records go; an error keeps them", []string{"docs"}, nil, true},
		{"bulkReturn", "behind a bulk write, with its answer", []string{"result"}, []string{"result"}, true},
	}},
	{"audit", []HookStage{
		{"return", "before an entry of the audit log is written", []string{"id", "doc"}, []string{"doc"}, false},
	}},
}

// HookMember is a member of ctx.
type HookMember struct {
	Name string
	Type string // as TypeScript has it
	Doc  string
}

// hookMembers are the members that stages list.
var hookMembers = []HookMember{
	{"id", "string | null", "The record's id; null in a list."},
	{"filter", "Doc | null", "The caller's filter, of a list; null in a single read."},
	{"data", "Doc", "What the caller sent."},
	{"doc", "Doc", "The record as it is stored; of the audit stage the entry."},
	{"docs", "Doc[]", "The records as they are stored."},
	{"previous", "Doc", "The record before the change; of a bulk stage the list of them."},
	{"result", "any", "What the caller gets: a record, or {items: [...]} of a list or a bulk write."},
	{"field", "string", "The field that holds the file."},
	{"path", "string", "The file's name; of a validator the path of the field."},
	{"action", "string", "The name of the action."},
	{"job", "{ name: string; run: string; trigger: 'schedule' | 'manual'; slot?: Date }", "The job and its run; slot is the time that was due."},
	{"run", "{ id: string } | null", "The run, of an async action or one that streams."},
	{"progress", "(at: string | { phase?: string; done?: number; total?: number; message?: string }) => void", "Says how far a run is."},
	{"response", "{ status: number; type: string | null; headers: Record<string, string> }", "How the answer of an action goes out."},
}

// commonMembers are the members that every stage has. error and log are the runtime's own.
var commonMembers = []HookMember{
	{"method", "string", "The operation: GET, POST, PUT or DELETE."},
	{"stage", "string", "Where the script runs, such as post.create."},
	{"query", "Record<string, string>", "The query parameters of the request."},
	{"headers", "Record<string, string>", "The headers of the request in lower case, without credentials."},
	{"user", "User | null", "Who is calling; null is nobody."},
	{"project", "{ namespace: string; generation: number }", "The project."},
	{"collection", "string", "The name of the collection."},
	{"lang", "string | null", "The language that was asked for."},
	{"now", "Date", "The time of the operation."},
	{"state", "Record<string, any>", "Kept from stage to stage of one operation."},
}

// actionStages are the stages of an action.
var actionStages = []HookStage{
	{"validate", "behind the checks of query and data; what it returns are problems", []string{"action", "data"}, nil, false},
	{"handle", "does it; what it returns is the answer", []string{"action", "data", "run", "progress", "response"}, []string{"result", "response"}, false},
	{"return", "before the answer goes out", []string{"action", "data", "run", "progress", "result", "response"}, []string{"result", "response"}, false},
}

// jobMembers are the members of ctx that a job's script has.
var jobMembers = []string{"job", "project", "now", "state", "progress"}

// ruleMembers are the members of ctx beside the common ones of scripts that are no hooks.
var ruleMembers = []HookStage{
	{"filter", "what a permission set's filter is made by; it returns a filter object", nil, nil, false},
	{"validator", "a validator, behind the value as its first argument; it returns a message, or nothing", []string{"doc", "path"}, nil, false},
}

// RuleScripts gives the scripts of collections that are no hooks, each with what its ctx has.
func RuleScripts() []HookStage { return ruleMembers }

// JobMembers lists the members of ctx that a job's script has; see HookMembers and CommonMembers.
func JobMembers() []string { return jobMembers }

// HookGroups gives the groups and stages that a collection's hooks may have.
func HookGroups() []HookGroup { return hookGroups }

// ActionStages gives the stages that an action's hooks may have.
func ActionStages() []HookStage { return actionStages }

// CommonMembers gives the members of ctx that every stage has.
func CommonMembers() []HookMember { return commonMembers }

// HookMembers gives the members of ctx that a stage lists.
func HookMembers() []HookMember { return hookMembers }

// StageNames lists the names of stages.
func StageNames(stages []HookStage) []string {
	names := make([]string, len(stages))
	for i, s := range stages {
		names[i] = s.Name
	}
	return names
}

// Hooks is a collection's scripts: group → stage → entries, in the order they run.
type Hooks map[string]map[string][]Script

// ActionHooks is an action's scripts: stage → entries, in the order they run.
type ActionHooks map[string][]Script
