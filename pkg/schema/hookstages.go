package schema

// HookGroup is a group of hook stages.
type HookGroup struct {
	Name   string
	Stages []string
}

// hookGroups is the table of a collection's hook stages. A new stage is one word here and a step in its verb.
var hookGroups = []HookGroup{
	{"get", []string{"handle", "read", "return", "file"}},
	{"post", []string{"bind", "validate", "handle", "create", "return", "bulkCreate", "bulkReturn"}},
	{"put", []string{"bind", "validate", "update", "return", "bulkUpdate", "bulkReturn"}},
	{"delete", []string{"delete", "return", "bulkDelete", "bulkReturn"}},
	{"audit", []string{"return"}},
}

// actionStages are the stages of an action.
var actionStages = []string{"handle", "validate", "return"}

// HookGroups gives the groups and stages that a collection's hooks may have.
func HookGroups() []HookGroup { return hookGroups }

// ActionStages gives the stages that an action's hooks may have.
func ActionStages() []string { return actionStages }

// Hooks is a collection's scripts: group → stage → entries, in the order they run.
type Hooks map[string]map[string][]Script

// ActionHooks is an action's scripts: stage → entries, in the order they run.
type ActionHooks map[string][]Script
