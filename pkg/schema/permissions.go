package schema

import (
	"iter"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Permissions says who may do what: everybody, logged-in users, holders of a token, members of a team. The caller's
// rights are the union of the sets that fit. A key of Tokens is the token's value, or "sha256:" and its hash in
// lowercase hex; it must never be printed. A key of Teams is the team's slug.
type Permissions struct {
	Public PermissionSet
	User   PermissionSet
	Tokens map[string]PermissionSet
	Teams  map[string]PermissionSet
}

// Sets gives every set under its key in the file: public, user, token:…, team:…. A token's key must never be printed.
func (x *Permissions) Sets() iter.Seq2[string, *PermissionSet] {
	return func(yield func(string, *PermissionSet) bool) {
		if !yield("public", &x.Public) || !yield("user", &x.User) {
			return
		}
		for _, value := range slices.Sorted(maps.Keys(x.Tokens)) {
			if set := x.Tokens[value]; !yield("token:"+value, &set) {
				return
			}
		}
		for _, slug := range slices.Sorted(maps.Keys(x.Teams)) {
			if set := x.Teams[slug]; !yield("team:"+slug, &set) {
				return
			}
		}
	}
}

// PermissionSet is what one kind of caller may do.
type PermissionSet struct {
	Methods          Methods     `cfg:"methods,required" doc:"The operations."`
	Filter           *FilterSpec `cfg:"filter" doc:"Only records that match; {\"$var\": \"user.id\"} is bound for each request."`
	ValidProjections []string    `cfg:"validProjections" doc:"Projections that may be used; all when absent."`
	ReadonlyFields   []string    `cfg:"readonlyFields" pattern:"fieldpath" doc:"Field paths that this caller can't write."`
	HiddenFields     []string    `cfg:"hiddenFields" pattern:"fieldpath" doc:"Field paths that this caller never sees."`
}

// Methods holds the rights of each operation.
type Methods struct {
	Get    MethodRights `cfg:"get" doc:"Read."`
	Post   MethodRights `cfg:"post" doc:"Create."`
	Put    MethodRights `cfg:"put" doc:"Update."`
	Delete MethodRights `cfg:"delete" doc:"Delete."`
}

// MethodRights is what an operation allows: a boolean in the file (the single operation, its counts and facets), or an
// object.
type MethodRights struct {
	Allow     bool `cfg:"allow" default:"true" doc:"Whether the method is allowed at all. On its own it is the single operation; the others come on top."`
	Bulk      bool `cfg:"bulk" doc:"Many records at once."`
	Aggregate bool `cfg:"aggregate" doc:"Pipelines (aggregate)."`
	Lookup    bool `cfg:"lookup" doc:"Related records: relations in filters, and lookups."`
	Count     bool `cfg:"count" doc:"Counts; as allow when absent."`
	Facet     bool `cfg:"facet" doc:"Facets; as allow when absent."`
}

// FilterSpec is the filter of a permission set: an object, or a script that returns one. Exactly one is set.
type FilterSpec struct {
	Object bson.D
	Script *Script
}

// Script names a script file.
type Script struct {
	Type    string   `cfg:"type,required" enum:"javascript" doc:"The kind of script."`
	File    string   `cfg:"file,required" pattern:"path" doc:"The script, relative to the file this stands in."`
	Timeout Duration `cfg:"timeout" min:"1" doc:"Time it may take."`
}
