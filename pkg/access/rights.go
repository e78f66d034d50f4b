package access

import (
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/schema"
)

// The system rights. Those that api.Scopes lists can be given to users and tokens; the others are an admin's alone.
const (
	ProjectRead             = "project.read"
	ProjectReload           = "project.reload"
	ProjectRegenerateSearch = "project.regenerate-search"
	ProjectBackup           = "project.backup"
	ProjectSnapshot         = "project.snapshot"
	UserRead                = "user.read"
	UserCreate              = "user.create"
	UserUpdate              = "user.update"
	UserDelete              = "user.delete"
	OrgRead                 = "org.read"
	TeamRead                = "team.read"
	AuditRead               = "audit.read"
	LLMChat                 = "llm.chat"
	ServerShutdown          = "server.shutdown"

	ProjectCreate = "project.create"
	ProjectUpdate = "project.update"
	ProjectDelete = "project.delete"
	OrgCreate     = "org.create"
	OrgUpdate     = "org.update"
	OrgDelete     = "org.delete"
	TeamCreate    = "team.create"
	TeamUpdate    = "team.update"
	TeamDelete    = "team.delete"
	KeysRotate    = "keys.rotate"
	AuditVerify   = "audit.verify"
)

// adminOnly lists the rights that no scope gives.
func adminOnly() []string {
	return []string{
		ProjectCreate, ProjectUpdate, ProjectDelete, OrgCreate, OrgUpdate, OrgDelete, TeamCreate, TeamUpdate, TeamDelete,
		KeysRotate, AuditVerify,
	}
}

// namespacePrefix begins every right inside a project.
const namespacePrefix = "namespace."

// ValidScope says that a scope can be granted: it is one of api.Scopes, or has one of the namespace forms.
func ValidScope(scope string) bool {
	rest, ok := strings.CutPrefix(scope, namespacePrefix)
	if !ok {
		return slices.Contains(api.Scopes(), scope)
	}
	parts := strings.Split(rest, ".")
	if slices.Contains(parts, "") {
		return false
	}
	switch len(parts) {
	case 1:
		return true
	case 3:
		return parts[1] != "_actions" && slices.Contains([]string{"read", "create", "update", "delete"}, parts[2])
	case 4:
		return parts[1] == "_actions" && (parts[3] == "read" || parts[3] == "create")
	}
	return false
}

// NearestScope gives the system right that a mistyped scope most likely means, or "".
func NearestScope(word string) string { return schema.Nearest(word, api.Scopes()) }

// Place is a project and its collections and actions, as far as they are known.
type Place struct {
	Namespace   string
	Collections []string
	Actions     []string
}

// Grantable lists the scopes that a user may give a personal access token now: those that they have, among api.Scopes, what the
// places make possible, and their own ones there. It is sorted.
func Grantable(p *Principal, places []Place) []string {
	all := api.Scopes()
	for _, place := range places {
		all = append(all, namespacePrefix+place.Namespace)
		for _, c := range place.Collections {
			for _, m := range []Method{Get, Post, Put, Delete} {
				all = append(all, RecordRight(place.Namespace, c, m))
			}
		}
		for _, a := range place.Actions {
			for _, m := range []Method{Get, Post} {
				all = append(all, RecordRight(place.Namespace, ActionScope(a), m))
			}
		}
	}
	if p != nil {
		for _, s := range p.Scopes { // also of what is not served now
			if slices.ContainsFunc(places, func(place Place) bool { return Covers([]string{namespacePrefix + place.Namespace}, s) }) {
				all = append(all, s)
			}
		}
	}
	out := []string{}
	for _, s := range all {
		if p.Has(s) {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ActionScope is the name that an action has in the place of a collection's, in rights and in Env.
func ActionScope(name string) string { return "_actions." + name }

// JobScope is the name that a job has in the place of a collection's, in the audit log.
func JobScope(name string) string { return "_jobs." + name }

// SnapshotScope is the name that a profile of snapshots has in the place of a collection's, in the audit log.
func SnapshotScope(profile string) string { return "_snapshots." + profile }

// RecordRight is the right that a method on a collection's records takes, as scopes name it.
func RecordRight(namespace, collection string, m Method) string {
	verb := ""
	switch m {
	case Get:
		verb = "read"
	case Post:
		verb = "create"
	case Put:
		verb = "update"
	case Delete:
		verb = "delete"
	}
	return namespacePrefix + namespace + "." + collection + "." + verb
}

// LackingOn names what a caller lacks who may not use a method on a collection's records: the scope, or the method where a
// permission set does not allow it. Users and their personal access tokens may be told; for others it is "".
func LackingOn(p *Principal, namespace, collection string, m Method) string {
	if p.Kind != KindUser && p.Kind != KindPAT {
		return ""
	}
	right := RecordRight(namespace, collection, m)
	if p.Kind == KindUser || p.Has(right) {
		right = right[strings.LastIndexByte(right, '.')+1:] + " on " + collection
	}
	return right
}
