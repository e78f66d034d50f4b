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

// Me is the body of GET /me: who the credentials of the request say that the caller is. Kind is "user", "admin" (the
// server admin token) or "anonymous".
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
// and stays as it is on update.
type UserWrite struct {
	Username *string   `json:"username,omitempty"`
	Email    *string   `json:"email,omitempty"`
	Name     *string   `json:"name,omitempty"`
	Password *string   `json:"password,omitempty"`
	IsAdmin  *bool     `json:"isAdmin,omitempty"`
	Active   *bool     `json:"active,omitempty"`
	Language *string   `json:"language,omitempty"`
	Scopes   *[]string `json:"scopes,omitempty"`
	OrgIDs   *[]string `json:"orgIds,omitempty"`
	TeamIDs  *[]string `json:"teamIds,omitempty"`
}

// Version is the body of GET /version.
type Version struct {
	Version string `json:"version"`
}

// Health is the body of GET /healthz and /readyz: Status is "ok", or "unavailable" with what is missing.
type Health struct {
	Status string   `json:"status"`
	Errors []string `json:"errors,omitempty"`
}
