package access

import (
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/schema"
)

// compiler collects the problems of one Compile.
type compiler struct {
	hidden, readonly, undeclared *document.PathSet
	cast                         Cast
	problems                     []errs.FieldError
}

func (c *compiler) problem(path, message string) {
	c.problems = append(c.problems, errs.FieldError{Path: path, Rule: "permissions", Message: message})
}

// compileSet makes one set. hasUser says that only logged-in users come through it, so that user.* has a value.
func (c *compiler) compileSet(path string, spec schema.PermissionSet, hasUser bool) *set {
	s := &set{
		hidden:         c.hidden,
		readonly:       c.readonly,
		projections:    slices.Clone(spec.ValidProjections),
		allProjections: spec.ValidProjections == nil,
	}
	s.rights[Get] = spec.Methods.Get
	s.rights[Post] = spec.Methods.Post
	s.rights[Put] = spec.Methods.Put
	s.rights[Delete] = spec.Methods.Delete
	if len(spec.HiddenFields) > 0 {
		s.hidden = s.hidden.Union(document.NewPathSet(spec.HiddenFields...))
	}
	s.unseen = s.hidden.Union(c.undeclared)
	if len(spec.ReadonlyFields) > 0 {
		s.readonly = s.readonly.Union(document.NewPathSet(spec.ReadonlyFields...))
	}
	if spec.Filter == nil {
		return s
	}
	if spec.Filter.Script != nil {
		s.script = &scripted{spec: spec.Filter.Script, hasUser: hasUser, cast: c.cast}
		return s
	}
	var err error
	if s.filter, s.bound, err = compileFilter(spec.Filter.Object, hasUser, c.cast); err != nil {
		c.problem(path+".filter", errs.From(err).Message)
		return nil // nothing is allowed through a set whose filter is broken
	}
	return s
}

// hashPrefix begins the key of a token that is given by its hash.
const hashPrefix = "sha256:"

// compileToken adds the set of one token. Names of headers are never tokens; schema has warned of them.
func (c *compiler) compileToken(p *Permissions, key string, spec schema.PermissionSet) {
	hash := sha256.Sum256([]byte(key))
	if digits, hashed := strings.CutPrefix(key, hashPrefix); hashed {
		var err error
		if hash, err = parseHash(digits); err != nil {
			c.problem("token:sha256:…", err.Error())
			return
		}
	}
	if key == "" || reservedToken(key, hash) {
		return
	}
	path := shortToken(hash)
	if p.tokens[hash] != nil {
		c.problem(path, "the same token is declared twice, plain and by its hash; keep one of them")
		return
	}
	p.tokens[hash] = c.compileSet(path, spec, false)
}

// reservedToken says that a token is the name of a credential header, which must never pass for a token.
func reservedToken(key string, hash [32]byte) bool {
	for _, name := range []string{"x-auth-token", "x-admin-token", "authorization"} {
		if strings.EqualFold(key, name) || hash == sha256.Sum256([]byte(name)) {
			return true
		}
	}
	return false
}
