package auth

import "time"

// SessionTTL is how long a session token lives.
func (a *Auth) SessionTTL() time.Duration { return a.tokens.ttl }
