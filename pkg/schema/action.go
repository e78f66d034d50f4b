package schema

import "go.mongodb.org/mongo-driver/v2/bson"

// Action is a custom endpoint.
type Action struct {
	Name        string       `cfg:"name,required" pattern:"action" doc:"The name in the path and in scopes."`
	Meta        *ActionMeta  `cfg:"meta" doc:"Presentation and parameters."`
	Permissions *Permissions `cfg:"permissions" doc:"Who may call it; nobody when absent."`
	Hooks       *ActionHooks `cfg:"hooks" doc:"The scripts that do it."`
	Audit       *Audit       `cfg:"audit" doc:"The audit log of calls."`
	CORS        *CORS        `cfg:"cors" doc:"Cross-origin access from browsers."`
}

// ActionMeta is how an action is presented and called.
type ActionMeta struct {
	Label       Label          `cfg:"label" doc:"Name for people."`
	MuiIcon     string         `cfg:"muiIcon" doc:"Icon."`
	Description Label          `cfg:"description" doc:"What it does."`
	Group       Label          `cfg:"group" doc:"Group in navigation."`
	Hide        any            `cfg:"hide" types:"boolean,object" doc:"Where it is not shown."`
	Methods     *ActionMethods `cfg:"methods" doc:"What each method takes and gives."`
	Agent       bson.D         `cfg:"agent" doc:"Free guidance for editors and agents."`
	Raw         bson.D         `cfg:",raw"`
}

// ActionMethods describes the methods of an action.
type ActionMethods struct {
	Get  *ActionMethod `cfg:"get" doc:"GET."`
	Post *ActionMethod `cfg:"post" doc:"POST."`
}

// ActionMethod is what one method of an action takes and gives.
type ActionMethod struct {
	Query     []*Field         `cfg:"query,listref" doc:"Query parameters."`
	Data      []*Field         `cfg:"data,listref" doc:"Fields of the body."`
	Execution *ActionExecution `cfg:"execution" doc:"How it runs."`
	Output    *ActionOutput    `cfg:"output" doc:"How the answer is shown."`
}

// ActionExecution is how an action runs.
type ActionExecution struct {
	Kind        string `cfg:"kind" enum:"sync,async,stream" default:"sync" doc:"sync: the answer is what the script gives. async: the answer is a run that goes on, 202. stream: the same, and its progress as events to who accepts them."`
	Cancellable bool   `cfg:"cancellable" doc:"Whether a run can be cancelled."`
}

// ActionOutput is how an action's answer is shown.
type ActionOutput struct {
	Title   Label          `cfg:"title" doc:"Heading."`
	Mapping *ActionMapping `cfg:"mapping" doc:"Which members of the answer are shown as what."`
}

// ActionMapping names members of an action's answer.
type ActionMapping struct {
	Summary  any `cfg:"summary" types:"string,list,object" doc:"The summary."`
	Details  any `cfg:"details" types:"string,list,object" doc:"The details."`
	Progress any `cfg:"progress" types:"string,list,object" doc:"The progress."`
}
