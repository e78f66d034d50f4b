package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
)

// sets gives permission sets by a name that can be shown: that of a token is the beginning of its hash.
func sets(p *schema.Permissions) map[string]*schema.PermissionSet {
	out := map[string]*schema.PermissionSet{}
	if p == nil {
		return out
	}
	for key, set := range p.Sets() {
		if value, ok := strings.CutPrefix(key, "token:"); ok {
			key = tokenName(value)
		}
		out[key] = set
	}
	return out
}

// tokenName names a token by its hash, or by its value, which nobody sees.
func tokenName(value string) string {
	hash, hashed := strings.CutPrefix(value, "sha256:")
	if !hashed {
		sum := sha256.Sum256([]byte(value))
		hash = hex.EncodeToString(sum[:])
	}
	return "token:sha256:" + hash[:min(len(hash), 16)] + "…"
}

// right is one thing that a set may allow.
type right struct {
	name    string
	allowed func(m schema.Methods) bool
}

// allRights lists what sets allow. Counts and facets come with reading unless the config says otherwise.
func allRights() []right {
	var out []right
	for _, m := range []struct {
		verb string
		of   func(m schema.Methods) schema.MethodRights
	}{
		{"read", func(m schema.Methods) schema.MethodRights { return m.Get }},
		{"create", func(m schema.Methods) schema.MethodRights { return m.Post }},
		{"update", func(m schema.Methods) schema.MethodRights { return m.Put }},
		{"delete", func(m schema.Methods) schema.MethodRights { return m.Delete }},
	} {
		out = append(out,
			right{m.verb, func(x schema.Methods) bool { return m.of(x).Allow }},
			right{"bulk " + m.verb, func(x schema.Methods) bool { return m.of(x).Allow && m.of(x).Bulk }},
			right{"aggregate in " + m.verb, func(x schema.Methods) bool { return m.of(x).Allow && m.of(x).Aggregate }},
			right{"lookup in " + m.verb, func(x schema.Methods) bool { return m.of(x).Allow && m.of(x).Lookup }},
			right{"count in " + m.verb, func(x schema.Methods) bool { return m.of(x).Allow && m.of(x).Count }},
			right{"facet in " + m.verb, func(x schema.Methods) bool { return m.of(x).Allow && m.of(x).Facet }},
		)
	}
	return out
}

// permissions compares who may do what with a collection, or with an action.
func (d *differ) permissions(name string, old, next *schema.Permissions, on string) {
	a, b := sets(old), sets(next)
	for _, key := range both(a, b) {
		was, is := a[key], b[key]
		if strings.HasPrefix(key, "token:") && (was == nil || is == nil) {
			if was == nil {
				d.add("token", name+" "+key, api.PlanCreate, api.RiskSafe, "gains "+granted(is)+" "+on+" "+name)
			} else {
				d.add("token", name+" "+key, api.PlanDelete, api.RiskBreaking, "loses all rights "+on+" "+name)
			}
			continue
		}
		if was == nil {
			was = &schema.PermissionSet{}
		}
		if is == nil {
			is = &schema.PermissionSet{}
		}
		d.set(name, key, was, is, on)
	}
}

func granted(s *schema.PermissionSet) string {
	var names []string
	for _, r := range allRights() {
		if r.allowed(s.Methods) {
			names = append(names, r.name)
		}
	}
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

// set compares one permission set.
func (d *differ) set(name, key string, was, is *schema.PermissionSet, on string) {
	object := name + " " + key
	for _, r := range allRights() {
		before, after := r.allowed(was.Methods), r.allowed(is.Methods)
		switch {
		case after && !before:
			d.gains(object, key, r.name+" "+on+" "+name)
		case before && !after:
			d.loses(object, key, r.name+" "+on+" "+name)
		}
	}
	if !anything(was) || !anything(is) { // the rest goes with the rights
		return
	}
	switch {
	case reflect.DeepEqual(was.Filter, is.Filter):
	case is.Filter == nil:
		d.gains(object, key, "all records "+on+" "+name+": its filter is gone")
	case was.Filter == nil:
		d.loses(object, key, "records "+on+" "+name+": it has a filter now")
	default:
		d.add("permission", object, api.PlanUpdate, api.RiskBreaking, "wider or narrower: the filter of "+key+" changes")
	}
	if gone := lacking(is.ValidProjections, was.ValidProjections); len(gone) > 0 && is.ValidProjections != nil || was.ValidProjections == nil && is.ValidProjections != nil {
		d.loses(object, key, "projections "+on+" "+name)
	}
	if more := lacking(was.ValidProjections, is.ValidProjections); was.ValidProjections != nil && (len(more) > 0 || is.ValidProjections == nil) {
		d.gains(object, key, "projections "+on+" "+name)
	}
	writes := is.Methods.Post.Allow || is.Methods.Put.Allow
	readonly := renamed(was.ReadonlyFields, d.as)
	for _, path := range lacking(readonly, is.ReadonlyFields) {
		if writes {
			d.loses(object, key, "write on "+name+"."+path)
		}
	}
	for _, path := range lacking(is.ReadonlyFields, readonly) {
		if writes {
			d.gains(object, key, "write on "+name+"."+path)
		}
	}
}

func anything(s *schema.PermissionSet) bool {
	return slices.ContainsFunc(allRights(), func(r right) bool { return r.allowed(s.Methods) })
}

// gains adds a wider right. What everybody gains can't be taken back from who has read it.
func (d *differ) gains(object, key, what string) {
	risk := api.RiskSafe
	if key == "public" && !d.fresh {
		risk = api.RiskBreaking
	}
	d.add("permission", object, api.PlanUpdate, risk, "wider: "+key+" gains "+what)
}

func (d *differ) loses(object, key, what string) {
	d.add("permission", object, api.PlanUpdate, api.RiskBreaking, key+" loses "+what)
}

// visible compares which fields the sets that may read see, before and after.
func (d *differ) visible(old, next *project.Collection) {
	before, after := sets(old.Config.Permissions), sets(next.Config.Permissions)
	a, b := level(old.Tree, as(old, next)), level(next.Tree, nil)
	paths := both(a, b)
	for _, key := range both(before, after) {
		was, is := before[key], after[key]
		if was == nil || is == nil || !was.Methods.Get.Allow || !is.Methods.Get.Allow {
			continue
		}
		told := map[string]bool{}
		hiddenFrom, hidesFrom := newPathSet(was.HiddenFields), newPathSet(is.HiddenFields)
		for _, path := range paths {
			if a[path] == nil || b[path] == nil || toldAbove(told, path) {
				continue
			}
			hidden, hides := isHidden(old, hiddenFrom, a[path].Path), isHidden(next, hidesFrom, path)
			switch {
			case hidden && !hides:
				d.gains(next.Name+" "+key, key, "read on "+next.Name+"."+path)
			case hides && !hidden:
				d.loses(next.Name+" "+key, key, "read on "+next.Name+"."+path)
			default:
				continue
			}
			told[path] = true
		}
	}
}

func toldAbove(told map[string]bool, path string) bool {
	for i, c := range path {
		if c == '.' && told[path[:i]] {
			return true
		}
	}
	return false
}

// isHidden says that a set, from which some paths are hidden, does not see a field, or not always.
func isHidden(c *project.Collection, from pathSet, path string) bool {
	return c.Hidden.Covers(path) || c.HiddenByEval.Covers(path) || from.covers(path)
}

// pathSet is paths of fields, of which a set may hide as many as it likes.
type pathSet map[string]bool

func newPathSet(paths []string) pathSet {
	s := make(pathSet, len(paths))
	for _, p := range paths {
		s[p] = true
	}
	return s
}

// covers says that a path, or one around it, is in the set.
func (s pathSet) covers(path string) bool { return s[path] || toldAbove(s, path) }

// adminTokens compares the project's admin tokens.
func (d *differ) adminTokens() {
	byName := func(p *project.Project) map[string]*schema.AdminToken {
		out := map[string]*schema.AdminToken{}
		if p.Config.Admin == nil {
			return out
		}
		for i := range p.Config.Admin.Tokens {
			t := &p.Config.Admin.Tokens[i]
			value := t.Value
			if t.SHA256 != "" {
				value = "sha256:" + t.SHA256
			}
			out[tokenName(value)] = t
		}
		return out
	}
	a, b := byName(d.old), byName(d.next)
	for _, key := range both(a, b) {
		object := "admin " + key
		switch was, is := a[key], b[key]; {
		case was == nil:
			d.add("token", object, api.PlanCreate, api.RiskSafe, "admin token "+is.Name+" gains "+strings.Join(is.Rights, ", "))
		case is == nil:
			d.add("token", object, api.PlanDelete, api.RiskBreaking, "admin token "+was.Name+" loses all rights")
		case !reflect.DeepEqual(was, is):
			risk := api.RiskBreaking // but for more rights alone
			if len(lacking(is.Rights, was.Rights)) == 0 && reflect.DeepEqual(was.ExpiresAt, is.ExpiresAt) {
				risk = api.RiskSafe
			}
			changed := slices.DeleteFunc(members(was, is), func(m string) bool { return m == "value" || m == "sha256" })
			if len(changed) > 0 {
				d.add("token", object, api.PlanUpdate, risk, "admin token "+is.Name+": "+strings.Join(changed, ", ")+" changes")
			}
		}
	}
}
