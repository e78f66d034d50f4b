package plan

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
)

// differ compares two projects and collects the changes.
type differ struct {
	old, next *project.Project
	items     []*item
	fresh     bool                     // what is compared is new: nothing was behind its rights yet
	as        func(path string) string // what paths of the old collection are in the next one; nil: the same
}

func (d *differ) add(kind, object, action string, risk api.Risk, detail string) *item {
	it := &item{PlanItem: api.PlanItem{Kind: kind, Object: object, Action: action, Risk: risk, Detail: detail}}
	d.items = append(d.items, it)
	return it
}

// memberRisks is the risk of a change of members that have no rule of their own. A member that is not in it is breaking.
var memberRisks = map[string]api.Risk{ //nolint:gochecknoglobals // never written
	"project.meta":               api.RiskSafe,
	"collection.defaultLanguage": api.RiskSafe, "collection.languageOverride": api.RiskSafe,
	"action.meta": api.RiskSafe,
}

// memberRisk is the risk of a change of one member of a kind. Of metadata, what has no effect on requests is safe.
func memberRisk(kind, member string) api.Risk {
	if r, ok := memberRisks[kind+"."+member]; ok {
		return r
	}
	return api.RiskBreaking
}

// The members of meta that have an effect on requests; the others are for people and front ends.
var (
	collectionMeta = []string{"singleton", "i18n", "defaultSort", "query"}  //nolint:gochecknoglobals // never written
	fieldMeta      = []string{"i18n", "foreign", "choices", "defaultValue"} //nolint:gochecknoglobals // never written
)

// members gives the names of the members in which two objects of the config differ. The comparison is over the types of
// the config, so that no member that they get can be forgotten here.
func members(old, next any) []string {
	a, b := reflect.Indirect(reflect.ValueOf(old)), reflect.Indirect(reflect.ValueOf(next))
	switch {
	case !a.IsValid() && !b.IsValid():
		return nil
	case !a.IsValid():
		a = reflect.Zero(b.Type())
	case !b.IsValid():
		b = reflect.Zero(a.Type())
	}
	var out []string
	for i := range a.NumField() {
		field := a.Type().Field(i)
		name, option, _ := strings.Cut(field.Tag.Get("cfg"), ",")
		if option == "raw" { // what the others are made of
			continue
		}
		if name == "" {
			name = strings.ToLower(field.Name)
		}
		if !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			out = append(out, name)
		}
	}
	return out
}

// without leaves names out.
func without(names []string, out ...string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(out, name) })
}

// settings compares what the project as a whole says.
func (d *differ) settings() {
	own := []string{"namespace", "collections", "jobs", "actions", "assets", "admin", "audit", "snapshots", "strictFields"}
	if d.old.Namespace == "" {
		return // it is created
	}
	for _, member := range without(members(d.old.Config, d.next.Config), own...) {
		d.add("project", member, api.PlanUpdate, memberRisk("project", member), "changes")
	}
	d.audit("project", "audit", d.old.Config.Audit, d.next.Config.Audit)
}

// audit compares a log's settings: a shorter time of keeping deletes entries.
func (d *differ) audit(kind, object string, old, next *schema.Audit) {
	changed := members(old, next)
	if len(changed) == 0 {
		return
	}
	risk, detail := api.RiskSafe, "the audit log's settings change: "+strings.Join(changed, ", ")
	if old != nil && next != nil && next.Retention > 0 && (old.Retention == 0 || next.Retention < old.Retention) {
		risk, detail = api.RiskDestructive, detail+"; entries older than "+next.Retention.Std().String()+" are deleted"
	}
	d.add(kind, object, api.PlanUpdate, risk, detail)
}

func (d *differ) path(rest string) string { return "/_/" + d.next.Namespace + "/" + rest }

// route adds a path that appears or vanishes.
func (d *differ) route(path, action string) {
	risk, detail := api.RiskSafe, "appears"
	if action == api.PlanDelete {
		risk, detail = api.RiskBreaking, "vanishes"
	}
	d.add("route", path, action, risk, detail)
}

// both gives the names of two maps, sorted.
func both[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// lacking gives what is in next and not in old.
func lacking(old, next []string) []string {
	var out []string
	had := newPathSet(old)
	for _, s := range next {
		if !had[s] {
			out = append(out, s)
		}
	}
	return out
}

// quoted shows a value of a config.
func quoted(v any) string { return fmt.Sprintf("%v", v) }
