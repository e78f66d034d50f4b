package access

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/schema"
)

// The rights of a project's admin tokens, as a config names them.
const (
	AdminCollections = "collections" // everything on the records of every collection
	AdminReload      = "reload"      // the system right ProjectReload on this project
	AdminSnapshot    = "snapshot"    // the system right ProjectSnapshot on this project
)

// AdminTokens are the admin tokens of one project. They are immutable; nil has none.
type AdminTokens struct {
	tokens map[[32]byte]AdminToken
}

// AdminToken is what one admin token grants.
type AdminToken struct {
	Name      string // for logs; never the token itself
	Rights    []string
	ExpiresAt time.Time // zero: never
}

// CompileAdmin makes the tokens of a project. Problems have paths from the admin section down ("tokens[0].sha256").
func CompileAdmin(spec *schema.Admin) (*AdminTokens, []errs.FieldError) {
	a := &AdminTokens{tokens: map[[32]byte]AdminToken{}}
	if spec == nil {
		return a, nil
	}
	var problems []errs.FieldError
	add := func(i int, member, message string) {
		problems = append(problems, errs.FieldError{Path: fmt.Sprintf("tokens[%d]%s", i, member), Rule: "token", Message: message})
	}
	for i, t := range spec.Tokens {
		hash, err := adminHash(t)
		if err != nil {
			add(i, "", err.Error())
			continue
		}
		if _, twice := a.tokens[hash]; twice {
			add(i, "", "the same token is declared before; each token needs its own value")
			continue
		}
		for _, right := range t.Rights {
			if !slices.Contains([]string{AdminCollections, AdminReload, AdminSnapshot}, right) {
				add(i, ".rights", fmt.Sprintf("unknown right %q; use collections, reload or snapshot", right))
			}
		}
		token := AdminToken{Name: t.Name, Rights: slices.Clone(t.Rights)}
		if token.Name == "" {
			token.Name = fmt.Sprintf("admin token %d", i+1)
		}
		if t.ExpiresAt != nil {
			token.ExpiresAt = *t.ExpiresAt
		}
		a.tokens[hash] = token
	}
	return a, problems
}

func adminHash(t schema.AdminToken) ([32]byte, error) {
	switch {
	case t.Value != "" && t.SHA256 == "":
		return sha256.Sum256([]byte(t.Value)), nil
	case t.Value == "" && t.SHA256 != "":
		return parseHash(t.SHA256)
	}
	return [32]byte{}, errors.New("a token needs either its value or its sha256")
}

// parseHash reads a SHA-256 in hex.
func parseHash(s string) (hash [32]byte, err error) {
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != len(hash) {
		return hash, errors.New("sha256 must be 64 hex digits")
	}
	return [32]byte(raw), nil
}

// Match gives what the token with a SHA-256 grants, if the project has it and it has not expired. Comparing hashes by
// map look-up tells nothing about tokens: who could steer it would have to invert SHA-256.
func (a *AdminTokens) Match(hash [32]byte, now time.Time) (AdminToken, bool) {
	if a == nil || hash == [32]byte{} {
		return AdminToken{}, false
	}
	t, ok := a.tokens[hash]
	if !ok || !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt) {
		return AdminToken{}, false
	}
	return t, true
}

// Has says whether the token grants a right: one of AdminCollections, AdminReload, AdminSnapshot, or the system right
// that the latter two stand for.
func (t AdminToken) Has(right string) bool {
	switch right {
	case ProjectReload:
		right = AdminReload
	case ProjectSnapshot:
		right = AdminSnapshot
	}
	return slices.Contains(t.Rights, right)
}
