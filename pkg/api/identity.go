package api

// LoginRequest is the body of POST /login.
type LoginRequest struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

// LoginResponse carries the JWT for HeaderAuthToken.
type LoginResponse struct {
	Token     string `json:"token"`
	ExpiresAt Time   `json:"expiresAt"`
}

// Me is the body of GET /me: who the credentials of the request say that the caller is. Kind is "user", "pat" (a
// personal access token; the rest is of its owner, but Scopes are what the token can do now), "admin" (the server admin
// token) or "token".
type Me struct {
	Kind      string   `json:"kind"`
	ID        string   `json:"id,omitempty"`
	Username  string   `json:"username,omitempty"`
	Email     string   `json:"email,omitempty"`
	Name      string   `json:"name,omitempty"`
	Language  string   `json:"language,omitempty"`
	IsAdmin   bool     `json:"isAdmin"`
	Scopes    []string `json:"scopes"`
	OrgIDs    []string `json:"orgIds"`
	TeamIDs   []string `json:"teamIds"`
	ExpiresAt Time     `json:"expiresAt,omitzero"` // of the credential, when it expires
}

// PasswordChange is the body of PUT /me/password. It revokes every earlier JWT of the caller.
type PasswordChange struct {
	CurrentPassword string `json:"currentPassword"`
	NewPassword     string `json:"newPassword"`
}

// SigningKey is the answer to POST /admin/keys/rotate: the key that signs JWTs from now on.
type SigningKey struct {
	ID        string `json:"id"` // the member kid of their headers
	CreatedAt Time   `json:"createdAt"`
}

// User is a user as it is read. The password is never part of it.
type User struct {
	ID          string   `json:"id"`
	Username    string   `json:"username"`
	Email       string   `json:"email"`
	Name        string   `json:"name"`
	IsAdmin     bool     `json:"isAdmin"`
	Active      bool     `json:"active"`
	Language    string   `json:"language"`
	Scopes      []string `json:"scopes"`
	OrgIDs      []string `json:"orgIds"`
	TeamIDs     []string `json:"teamIds"`
	CreatedAt   Time     `json:"createdAt"`
	UpdatedAt   Time     `json:"updatedAt"`
	LastLoginAt Time     `json:"lastLoginAt,omitzero"`
}

// UserWrite is the body of POST /user and PUT /user/<id>: a nil member takes its default on create (Active is true)
// and stays as it is on update. The tag validator of this struct and those below has the rules that the service checks,
// and that GET /_meta shows.
type UserWrite struct {
	Username *string   `json:"username,omitempty" validator:"required,max=64"`
	Email    *string   `json:"email,omitempty" validator:"email,max=254"`
	Name     *string   `json:"name,omitempty" validator:"max=100"`
	Password *string   `json:"password,omitempty" validator:"required,min=8,max=1024"` // bytes
	IsAdmin  *bool     `json:"isAdmin,omitempty"`
	Active   *bool     `json:"active,omitempty"`
	Language *string   `json:"language,omitempty" validator:"max=100"`
	Scopes   *[]string `json:"scopes,omitempty" validator:"maxItems=1000"`
	OrgIDs   *[]string `json:"orgIds,omitempty" validator:"maxItems=1000"`
	TeamIDs  *[]string `json:"teamIds,omitempty" validator:"maxItems=1000"`
}

// Org is an organization as it is read.
type Org struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Slug        string `json:"slug"`
	Description string `json:"description"`
	Active      bool   `json:"active"`
	CreatedAt   Time   `json:"createdAt"`
	UpdatedAt   Time   `json:"updatedAt"`
}

// OrgWrite is the body of POST /org and PUT /org/<id>, as UserWrite is.
type OrgWrite struct {
	Name        *string `json:"name,omitempty" validator:"required,min=1,max=100"`
	Slug        *string `json:"slug,omitempty" validator:"slug,max=64"` // default: made from Name
	Description *string `json:"description,omitempty" validator:"max=1000"`
	Active      *bool   `json:"active,omitempty"`
}

// Team is a team as it is read.
type Team struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Slug        string   `json:"slug"`
	OrgID       string   `json:"orgId"` // "": of no org
	Description string   `json:"description"`
	Scopes      []string `json:"scopes"`
	CreatedAt   Time     `json:"createdAt"`
	UpdatedAt   Time     `json:"updatedAt"`
}

// TeamWrite is the body of POST /team and PUT /team/<id>, as UserWrite is.
type TeamWrite struct {
	Name        *string   `json:"name,omitempty" validator:"required,min=1,max=100"`
	Slug        *string   `json:"slug,omitempty" validator:"slug,max=64"` // default: made from Name
	OrgID       *string   `json:"orgId,omitempty"`
	Description *string   `json:"description,omitempty" validator:"max=1000"`
	Scopes      *[]string `json:"scopes,omitempty" validator:"maxItems=1000"`
}

// Token is a personal access token as it is read.
type Token struct {
	ID         string   `json:"id"`
	UserID     string   `json:"userId"`
	Name       string   `json:"name"`
	Scopes     []string `json:"scopes"`
	ExpiresAt  Time     `json:"expiresAt"`  // null: never
	LastUsedAt Time     `json:"lastUsedAt"` // null: never yet
	CreatedAt  Time     `json:"createdAt"`
	UpdatedAt  Time     `json:"updatedAt"`
	Token      string   `json:"token,omitempty" store:"-"` // the value, only in the answer to its creation
}

// TokenWrite is the body of POST /token and PUT /token/<id>, as UserWrite is.
type TokenWrite struct {
	Name      *string   `json:"name,omitempty" validator:"required,min=1,max=100"`
	Scopes    *[]string `json:"scopes,omitempty" validator:"required,maxItems=1000"`
	ExpiresAt *Time     `json:"expiresAt,omitempty"` // default: auth.patDefaultTTL from now; null is never
}

// Meta is the body of GET /_meta: by the model's name, what may be written of it.
type Meta struct {
	Models map[string][]MetaField `json:"models"`
}

// MetaField is one entry of GET /_meta: a member that a model takes.
type MetaField struct {
	Name      string      `json:"name"`
	Type      string      `json:"type"` // the Go type
	Kind      string      `json:"kind"` // the Go kind
	Validator string      `json:"validator,omitempty"`
	SliceOf   string      `json:"sliceOf,omitempty"`  // of a list: the type of its elements
	StructOf  []MetaField `json:"structOf,omitempty"` // of an object: its members
}

// Version is the body of GET /version.
type Version struct {
	Version string `json:"version"`
}

// Health is the body of GET /healthz and /readyz: Status is "ok" or "not ready". Errors are what keeps the instance from taking requests. Checks are
// there with them, and where ?verbose asks for them.
type Health struct {
	Status string        `json:"status"`
	Errors []string      `json:"errors,omitempty"`
	Checks []HealthCheck `json:"checks,omitempty"`
}

// HealthCheck is how one part of the service is.
type HealthCheck struct {
	Name    string `json:"name"`   // service, store, projects
	Status  string `json:"status"` // see CheckOK
	Message string `json:"message,omitempty"`
}

// The statuses of a HealthCheck.
const (
	CheckOK       = "ok"
	CheckDegraded = "degraded" // something is not as it should be, and requests are served all the same
	CheckFailed   = "failed"   // the instance should get no requests
)
