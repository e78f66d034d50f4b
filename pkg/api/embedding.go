package api

// EmbeddingStatus is how what makes vectors of texts is.
type EmbeddingStatus struct {
	Groups []EmbeddingGroup `json:"groups"`
}

// EmbeddingGroup is one group of providers of the same vectors.
type EmbeddingGroup struct {
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Reference   string            `json:"reference"` // says which vectors these are: those of another reference can't be compared with them
	State       string            `json:"state"`     // that of its best member; offline without a verified one
	Error       string            `json:"error,omitempty"`
	Sparse      bool              `json:"sparse"`
	Dimensions  int               `json:"dimensions,omitempty"` // 0: not known yet, or sparse
	Golden      int               `json:"golden"`               // texts of its golden file
	Members     []EmbeddingMember `json:"members"`
}

// EmbeddingMember is one provider in a group.
type EmbeddingMember struct {
	Name       string `json:"name"`
	Type       string `json:"type,omitempty"`
	Model      string `json:"model,omitempty"`
	State      string `json:"state"` // live, degraded, quarantined or offline
	Since      Time   `json:"since"`
	Breaker    string `json:"breaker"` // closed, open or half-open
	Failures   int    `json:"failures"`
	RestsUntil *Time  `json:"restsUntil,omitempty"`
	CheckedAt  *Time  `json:"checkedAt,omitempty"`
	Error      string `json:"error,omitempty"`
}
