package api

// ParamPlan has a reload change what the plan with that hash tells, or nothing; ParamAllow is the greatest risk that it, or what a sync
// of indexes drops, may have. They are no names
// that meta.query has to leave alone: records are not reloaded.
const (
	ParamPlan  = "plan"
	ParamAllow = "allow"
)

// Risk is what a change of a config may cost. The rules by which it is decided are in docs/gitops.md.
type Risk string

// The risks, from the least.
const (
	RiskSafe        Risk = "safe"        // nobody notices but for what is new
	RiskSlow        Risk = "slow"        // work that takes its time, such as an index to build; all is served meanwhile
	RiskBreaking    Risk = "breaking"    // callers, or records, may fail that did not before; or everybody may do more
	RiskDestructive Risk = "destructive" // what is stored is out of reach afterwards
)

// Risks lists the risks, from the least.
func Risks() []Risk { return []Risk{RiskSafe, RiskSlow, RiskBreaking, RiskDestructive} }

// Above says that a risk is greater than another one.
func (r Risk) Above(other Risk) bool { return r.rank() > other.rank() }

func (r Risk) rank() int {
	for i, risk := range Risks() {
		if r == risk {
			return i
		}
	}
	return len(Risks()) // what is unknown is above all
}

// The actions of a PlanItem.
const (
	PlanCreate = "create"
	PlanUpdate = "update"
	PlanDelete = "delete"
	PlanRename = "rename"
)

// PlanItem is one change that a reload would make.
type PlanItem struct {
	Kind   string `json:"kind"`   // project, collection, field, index, search, permission, projection, imageFilter, hook, script, action, job, snapshot, asset, route or token
	Object string `json:"object"` // such as articles.title for a field
	Action string `json:"action"` // create, update, delete or rename
	Risk   Risk   `json:"risk"`
	Detail string `json:"detail"` // for people

	Records *int64   `json:"records,omitempty"` // of the collection, where they matter
	Failing *int64   `json:"failing,omitempty"` // of those, the ones that are in the way, or are hit
	Looked  *int64   `json:"looked,omitempty"`  // records looked at, where time did not suffice for all: Failing is the least
	Samples []string `json:"samples,omitempty"` // ids of some that are Failing
}

// Plan is what a reload would change.
type Plan struct {
	Namespace  string          `json:"namespace"`
	Generation int64           `json:"generation"` // the one that is served; 0: none
	Revision   string          `json:"revision"`   // of what is served; "": nothing
	Next       string          `json:"next"`       // revision of what would be
	Hash       string          `json:"hash"`       // for reload?plan=
	Empty      bool            `json:"empty"`
	Risk       Risk            `json:"risk"`   // the greatest of all items
	Counts     map[Risk]int    `json:"counts"` // items of each risk
	Items      []PlanItem      `json:"items"`
	Warnings   []ConfigProblem `json:"warnings"`
}
