package api

// ExplainRequest is the body of POST /_/<project>/_/admin/access/explain: what may Principal do with Method on the
// records of Collection, and, with an ID, does that reach this record?
type ExplainRequest struct {
	Principal  ExplainPrincipal `json:"principal"`
	Method     string           `json:"method"` // get, post, put or delete
	Collection string           `json:"collection"`
	ID         string           `json:"id,omitempty"`
}

// The kinds of an ExplainPrincipal.
const (
	ExplainAnonymous = "anonymous" // who has no credential
	ExplainUser      = "user"      // by ID or Username
	ExplainPAT       = "pat"       // a personal access token, by ID
	ExplainToken     = "token"     // a collection token or an admin token of the project, by TokenHash
	ExplainAdmin     = "admin"     // the server admin token
)

// ExplainPrincipal names a caller without their credential.
type ExplainPrincipal struct {
	Kind      string `json:"kind"`
	ID        string `json:"id,omitempty"`
	Username  string `json:"username,omitempty"`
	TokenHash string `json:"tokenHash,omitempty"` // SHA-256 of the token in hex
}

// Explanation answers an ExplainRequest. What the caller gets is set when Allowed.
type Explanation struct {
	Principal  ExplainPrincipal `json:"principal"` // of a user with both ID and Username
	Method     string           `json:"method"`
	Collection string           `json:"collection"`
	Allowed    bool             `json:"allowed"`
	Rule       string           `json:"rule"`   // the rules that decided: "public", "user + team:editors", "scopes", …
	Reason     string           `json:"reason"` // why, in words
	Steps      []ExplainStep    `json:"steps"`  // every rule that was looked at, in order

	Grant    *ExplainGrant `json:"grant,omitempty"`
	Filter   Record        `json:"filter,omitempty"` // the records it holds for; absent: all
	Hidden   []string      `json:"hidden,omitempty"`
	Readonly []string      `json:"readonly,omitempty"`
	// What is hidden or readonly on some records, as an expression says of each. No query may name the hidden ones.
	HiddenOnSome   []string       `json:"hiddenOnSome,omitempty"`
	ReadonlyOnSome []string       `json:"readonlyOnSome,omitempty"`
	Record         *ExplainRecord `json:"record,omitempty"` // when the request had an ID
}

// ExplainStep is one rule that was looked at.
type ExplainStep struct {
	Rule   string `json:"rule"`
	Allows bool   `json:"allows"`
	Reason string `json:"reason"`
}

// ExplainGrant is what the method comes with.
type ExplainGrant struct {
	Bulk        bool      `json:"bulk"`
	Count       bool      `json:"count"`
	Facet       bool      `json:"facet"`
	Lookup      bool      `json:"lookup"`
	Aggregate   bool      `json:"aggregate"`
	Projections *[]string `json:"projections"` // null: all
}

// ExplainRecord says whether the method reaches one record.
type ExplainRecord struct {
	ID      string `json:"id"`
	Visible bool   `json:"visible"`
}
