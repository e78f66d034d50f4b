package api

// ParamAction names an action of a project.
const ParamAction = "action"

// AgentGuide is what a config tells agents of a project, or of its collection or action that was asked for, and what the caller may do there.
type AgentGuide struct {
	Namespace  string `json:"namespace"`
	Collection string `json:"collection,omitempty"`
	Action     string `json:"action,omitempty"`
	Label      any    `json:"label,omitempty"`
	// Agent is meta.agent of the config: purpose, instructions, fieldHints, workflows, hints, and whatever else it has.
	Agent any `json:"agent,omitempty"`
	// Query is meta.query of a collection: parameters that its hooks read.
	Query any `json:"query,omitempty"`
	// YourPermissions is, of a collection, MethodRights by method; of an action, a truth value by method; of a project, ProjectRights.
	YourPermissions any `json:"yourPermissions"`
}

// ProjectRights is what a caller may do in a project: what is not there, they may not read.
type ProjectRights struct {
	Collections map[string]map[string]MethodRights `json:"collections"` // by name and method
	Actions     map[string]map[string]bool         `json:"actions"`
}

// MCPProbe is what a GET of the endpoint for agents tells.
type MCPProbe struct {
	ProtocolVersion string    `json:"protocolVersion"`
	ServerInfo      MCPServer `json:"serverInfo"`
	Tools           []MCPTool `json:"tools"`
}

// MCPServer is how the endpoint for agents names itself.
type MCPServer struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// MCPTool is one tool of the endpoint for agents.
type MCPTool struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	InputSchema map[string]any `json:"inputSchema"` // JSON Schema of its arguments
	Annotations map[string]any `json:"annotations"` // readOnlyHint, destructiveHint, openWorldHint
}
