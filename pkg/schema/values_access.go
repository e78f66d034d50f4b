package schema

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// credentialHeaders are names that carry other credentials, so no collection token may have them.
var credentialHeaders = []string{"x-auth-token", "x-admin-token", "authorization"}

const hashPrefix = "sha256:"

func (x *Permissions) decodeConfig(d *decoder, n *node, path string, m *member) {
	if n.kind == kindString {
		d.reference(n, path, reflect.ValueOf(x).Elem(), m)
		return
	}
	if n.kind != kindMap {
		d.wrongType(n, path, "an object")
		return
	}
	x.Tokens, x.Teams = map[string]PermissionSet{}, map[string]PermissionSet{}
	for _, e := range n.entries {
		x.entry(d, e, n, path)
	}
	for _, name := range []string{"public", "user"} {
		if _, ok := n.get(name); !ok {
			d.problem(n.pos, join(path, name), CodeRequired, "is required")
		}
	}
}

func (x *Permissions) entry(d *decoder, e entry, n *node, path string) {
	at := join(path, e.label())
	prefix, value, hasValue := strings.Cut(e.key, ":")
	switch {
	case e.key == "public":
		d.value(e.value, at, reflect.ValueOf(&x.Public).Elem(), &member{})
	case e.key == "user":
		d.value(e.value, at, reflect.ValueOf(&x.User).Elem(), &member{})
	case e.key == "$schema" && d.isFileRoot(n):
	case isCredentialHeader(prefix) || strings.EqualFold(prefix, "token") && isCredentialHeader(value):
		d.warn(e.pos, at, "%s can't be the name of a collection token; the entry is ignored", credentialHeader(prefix, value))
	case hasValue && strings.EqualFold(prefix, "token"):
		x.token(d, e, value, at)
	case hasValue && prefix == "team":
		if !patterns["name"].expr.MatchString(value) {
			d.problem(e.pos, at, CodePattern, "a team's slug must be %s", patterns["name"].words)
			return
		}
		x.Teams[value] = d.permissionSet(e, at)
	default:
		known := []string{"public", "user", "token:<VALUE>", "team:<slug>"}
		hint := "known keys: " + strings.Join(known, ", ")
		if near := nearest(prefix, []string{"public", "user", "token", "team"}); near != "" && !e.secret {
			hint = "did you mean " + strconv.Quote(near) + "?"
		}
		d.problem(e.pos, at, CodeUnknownKey, "unknown key %q; %s", e.label(), hint)
	}
}

func (x *Permissions) token(d *decoder, e entry, value, at string) {
	if value == "" {
		d.problem(e.pos, at, CodeRange, "the token after token: is empty")
		return
	}
	if hash, ok := strings.CutPrefix(value, hashPrefix); ok {
		if !patterns["sha256"].expr.MatchString(hash) {
			d.problem(e.pos, at, CodePattern, "what follows token:sha256: must be %s", patterns["sha256"].words)
			return
		}
		value = hashPrefix + strings.ToLower(hash)
	}
	if _, there := x.Tokens[value]; there {
		d.problem(e.pos, at, CodeDuplicate, "the token is here twice")
		return
	}
	x.Tokens[value] = d.permissionSet(e, at)
}

func (d *decoder) permissionSet(e entry, at string) PermissionSet {
	var set PermissionSet
	d.value(e.value, at, reflect.ValueOf(&set).Elem(), &member{})
	return set
}

func isCredentialHeader(name string) bool {
	return slices.Contains(credentialHeaders, strings.ToLower(name))
}

// credentialHeader gives the header name in a token's key, never what follows it.
func credentialHeader(prefix, value string) string {
	if isCredentialHeader(prefix) {
		return strings.ToLower(prefix)
	}
	return strings.ToLower(value)
}

func (x *MethodRights) decodeConfig(d *decoder, n *node, path string, _ *member) {
	switch n.kind {
	case kindBool:
		x.Allow, x.Count, x.Facet = n.boolean, n.boolean, n.boolean
	case kindMap:
		d.object(n, path, reflect.ValueOf(x).Elem())
		if _, given := n.get("count"); !given {
			x.Count = x.Allow
		}
		if _, given := n.get("facet"); !given {
			x.Facet = x.Allow
		}
	default:
		d.wrongType(n, path, "a boolean, or an object of rights")
	}
}

func (x *FilterSpec) decodeConfig(d *decoder, n *node, path string, _ *member) {
	if n.kind != kindMap {
		d.wrongType(n, path, "a filter object, or an object with type and file")
		return
	}
	if isScript(n) {
		x.Script = &Script{}
		d.object(n, path, reflect.ValueOf(x.Script).Elem())
		return
	}
	var object bson.D
	d.free(n, path, reflect.ValueOf(&object).Elem(), &member{})
	x.Object = object
}

// isScript tells {type: javascript, file: …} from a filter on fields that happen to be called type and file: only the
// former has the string javascript as its type and a file.
func isScript(n *node) bool {
	kind, hasKind := n.get("type")
	_, hasFile := n.get("file")
	return hasKind && hasFile && kind.kind == kindString && kind.text == "javascript"
}

func (x *Hooks) decodeConfig(d *decoder, n *node, path string, m *member) {
	if n.kind == kindString {
		d.reference(n, path, reflect.ValueOf(x).Elem(), m)
		return
	}
	groups := make([]string, len(hookGroups))
	stages := map[string][]string{}
	for i, g := range hookGroups {
		groups[i] = g.Name
		stages[g.Name] = StageNames(g.Stages)
	}
	*x = Hooks{}
	d.keyed(n, path, groups, func(e entry, at string) {
		(*x)[e.key] = d.stages(e.value, at, stages[e.key])
	})
}

func (x *ActionHooks) decodeConfig(d *decoder, n *node, path string, m *member) {
	if n.kind == kindString {
		d.reference(n, path, reflect.ValueOf(x).Elem(), m)
		return
	}
	*x = d.stages(n, path, StageNames(actionStages))
}

func (d *decoder) stages(n *node, path string, stages []string) map[string][]Script {
	out := map[string][]Script{}
	d.keyed(n, path, stages, func(e entry, at string) {
		var scripts []Script
		if e.value.kind == kindList {
			d.value(e.value, at, reflect.ValueOf(&scripts).Elem(), &member{})
		} else {
			var one Script
			d.value(e.value, at, reflect.ValueOf(&one).Elem(), &member{})
			scripts = []Script{one}
		}
		out[e.key] = scripts
	})
	return out
}

// keyed decodes an object whose keys are a closed list.
func (d *decoder) keyed(n *node, path string, known []string, fn func(e entry, at string)) {
	if n.kind != kindMap {
		d.wrongType(n, path, "an object")
		return
	}
	for _, e := range n.entries {
		switch {
		case slices.Contains(known, e.key):
			fn(e, join(path, e.label()))
		case e.key == "$schema" && d.isFileRoot(n):
		default:
			d.unknownKey(e, path, known)
		}
	}
}
