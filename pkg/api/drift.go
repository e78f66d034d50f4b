package api

// Drift is where what a project declares and what there is differ.
type Drift struct {
	Namespace  string      `json:"namespace"`
	Generation int64       `json:"generation"` // that is served
	Items      []DriftItem `json:"items"`      // none: nothing differs
	Pending    []DriftItem `json:"pending"`    // what differs as the service is at it right now: no drift
}

// DriftItem is one difference.
type DriftItem struct {
	Kind   string `json:"kind"`
	Object string `json:"object"` // an index is collection/name
	Action string `json:"action"`
	Detail string `json:"detail"`
	// Risk is that of what a sync drops for it, as a plan judges it; "": it drops nothing.
	Risk Risk `json:"risk,omitempty"`
	// Foreign says that others made it, and that it is left alone.
	Foreign bool `json:"foreign,omitempty"`
}

// Kinds of what differs.
const (
	DriftConfig   = "config"   // files on disk that are not what is served
	DriftRegistry = "registry" // what the registration says of the files: where they are, and of which project
	DriftIndex    = "index"
	DriftJob      = "job"
	DriftMedia    = "media" // files that no record names
)

// Ways in which what there is differs from what is declared.
const (
	DriftMissing    = "missing"
	DriftUnexpected = "unexpected"
	DriftDiffers    = "differs"
)
