package api

// Problem is the body of every refusal: RFC 9457 with our extension members, sent as MediaProblem.
type Problem struct {
	Type      string          `json:"type"`               // a URI; "about:blank" when Code says it all
	Title     string          `json:"title"`              // the text of the HTTP status
	Status    int             `json:"status"`             // the HTTP status
	Code      string          `json:"code"`               // stable slug, such as "project_not_found"
	Detail    string          `json:"detail"`             // a sentence for a person
	Right     string          `json:"right,omitempty"`    // of a 403, for users: what they lack, "project.read" or "update on articles"
	RequestID string          `json:"requestId"`          // finds the request in the log
	Errors    []FieldError    `json:"errors,omitempty"`   // problems by place in the body
	Problems  []ConfigProblem `json:"problems,omitempty"` // problems by place in config files, on a refused config
}

// FieldError is one problem in one place of a request body.
type FieldError struct {
	Path    string `json:"path"`
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

// ConfigProblem is one problem in one place of a config file. Line and Column count from 1; 0 is unknown.
type ConfigProblem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Path    string `json:"path"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Warning bool   `json:"warning,omitempty"`
}
