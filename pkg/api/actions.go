package api

// ActionDescription is an action as its caller may know it.
type ActionDescription struct {
	Name    string                             `json:"name"`
	Meta    map[string]any                     `json:"meta,omitempty"` // what the config says to present it, without methods
	Methods map[string]ActionMethodDescription `json:"methods"`        // "get" and "post", those that the action has
	// YourPermissions says which methods the caller may use.
	YourPermissions map[string]bool `json:"yourPermissions"`
}

// ActionMethodDescription is what a method of an action takes and gives.
type ActionMethodDescription struct {
	Query       []FieldDescription `json:"query"`
	Data        []FieldDescription `json:"data,omitempty"`
	AnyData     bool               `json:"anyData,omitempty"` // any object is taken: the config says nothing of the data
	Execution   string             `json:"execution"`         // sync, async or stream
	Cancellable bool               `json:"cancellable,omitempty"`
	Output      map[string]any     `json:"output,omitempty"`
}

// ActionFile is a file as an action takes it: Src is a data URL.
type ActionFile struct {
	Src  string `json:"src"`
	Path string `json:"path"`
}
