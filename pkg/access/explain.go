package access

import (
	"encoding/hex"
	"strings"
)

// Explanation is a decision with what led to it.
type Explanation struct {
	Grant Grant
	Err   error  // errs.ErrDenied when the caller may not; the same as of Decide
	Steps []Step // every rule that was looked at, in order
}

// Step is one rule that a decision looked at.
type Step struct {
	// Rule is a permission set ("public", "user", "team:editors", "token:sha256:1f2e3d4c…"), or what comes before the
	// sets: "credential", "administrator", "org", "scopes", "project admin token".
	Rule   string
	Allows bool
	Reason string // in words
}

// Explain decides as Decide does, by the same code, and says how it came to that.
func (p *Permissions) Explain(pr *Principal, m Method, env Env) Explanation {
	var t trace
	g, err := p.decide(pr, m, env, &t)
	return Explanation{Grant: g, Err: err, Steps: t.steps}
}

// Observed gives permissions that decide the same, and tell seen of each decision with its steps. seen may be called from
// several goroutines at once.
func (p *Permissions) Observed(seen func(m Method, x Explanation)) *Permissions {
	out := *p
	out.seen = seen
	return &out
}

// Rule names the rules that decided: those that allow, or, of a refusal, those that refuse.
func (e Explanation) Rule() string {
	return e.deciding(" + ", func(s Step) string { return s.Rule })
}

// Reason says in words why those rules decided so.
func (e Explanation) Reason() string {
	return e.deciding("; ", func(s Step) string { return s.Reason })
}

func (e Explanation) deciding(sep string, of func(Step) string) string {
	var out []string
	for _, s := range e.Steps {
		if s.Allows == (e.Err == nil) {
			out = append(out, of(s))
		}
	}
	return strings.Join(out, sep)
}

// trace takes down the steps of a decision. A nil trace takes down nothing and costs nothing.
type trace struct{ steps []Step }

// allow and refuse take down what a rule said. The reason is put together from parts only if somebody reads it.
func (t *trace) allow(rule string, reason ...string)  { t.add(true, rule, reason) }
func (t *trace) refuse(rule string, reason ...string) { t.add(false, rule, reason) }

func (t *trace) add(allows bool, rule string, reason []string) {
	if t != nil {
		t.steps = append(t.steps, Step{Rule: rule, Allows: allows, Reason: strings.Join(reason, "")})
	}
}

// setName names a permission set in a trace.
func (t *trace) setName(prefix, name string) string {
	if t == nil {
		return ""
	}
	return prefix + name
}

// tokenName names the set of a token, without the token.
func (t *trace) tokenName(hash [32]byte) string {
	if t == nil {
		return ""
	}
	return shortToken(hash)
}

// shortToken names a token by the beginning of its hash.
func shortToken(hash [32]byte) string {
	return "token:" + hashPrefix + hex.EncodeToString(hash[:4]) + "…"
}
