package app_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/api"
)

const wantMeta = `
org.name string string required,min=1,max=100
org.slug string string slug,max=64
org.description string string max=1000
org.active bool bool
project.name string string max=100
project.description string string max=1000
project.configFile string string required,max=4096
project.orgId string string
project.enabled bool bool
project.suspended bool bool
team.name string string required,min=1,max=100
team.slug string string slug,max=64
team.orgId string string
team.description string string max=1000
team.scopes []string slice maxItems=1000 of string
token.name string string required,min=1,max=100
token.scopes []string slice required,maxItems=1000 of string
token.expiresAt time.Time struct
user.username string string required,max=64
user.email string string email,max=254
user.name string string max=100
user.password string string required,min=8,max=1024
user.isAdmin bool bool
user.active bool bool
user.language string string max=100
user.scopes []string slice maxItems=1000 of string
user.orgIds []string slice maxItems=1000 of string
user.teamIds []string slice maxItems=1000 of string`

// What a write of each system model takes is public, all at once and one by one.
func TestMeta(t *testing.T) {
	s := run(t, nil)
	var meta api.Meta
	s.read("/api/v1/_meta", &meta)
	var got strings.Builder
	for _, model := range slices.Sorted(maps.Keys(meta.Models)) {
		for _, f := range meta.Models[model] {
			line := fmt.Sprintf("%s.%s %s %s %s", model, f.Name, f.Type, f.Kind, f.Validator)
			if f.SliceOf != "" {
				line += " of " + f.SliceOf
			}
			if len(f.StructOf) > 0 {
				t.Errorf("%s has members", line)
			}
			got.WriteString("\n" + strings.TrimSpace(line))
		}
		var one []api.MetaField
		s.read("/api/v1/_meta/"+model, &one)
		if d := cmp.Diff(meta.Models[model], one); d != "" {
			t.Errorf("%s by itself: %s", model, d)
		}
	}
	if d := cmp.Diff(wantMeta, got.String()); d != "" {
		t.Error(d)
	}
	want := `{"name":"name","type":"string","kind":"string","validator":"required,min=1,max=100"}`
	if body := s.do("GET", "/api/v1/_meta/org").body; !strings.HasPrefix(body, "["+want+",") {
		t.Error(body)
	}
	for _, unknown := range []string{"users", "User", "secrets", "_meta", "%2e%2e"} {
		if got := s.do("GET", "/api/v1/_meta/"+unknown).String(); !strings.HasPrefix(got, "404 model_not_found: model not found") {
			t.Errorf("%s: %s", unknown, got)
		}
	}
}

// read gets JSON that anyone may have.
func (s *service) read(path string, into any) {
	s.t.Helper()
	res := s.do("GET", path)
	res.want(s.t, 200)
	if err := json.Unmarshal([]byte(res.body), into); err != nil {
		s.t.Fatal(err)
	}
}

// Each rule that the metadata name is one that a write is held against.
func TestMetaRulesAreChecked(t *testing.T) {
	s := run(t, nil)
	var meta api.Meta
	s.read("/api/v1/_meta", &meta)
	delete(meta.Models, "token") // an administrator's token makes none
	for model, fields := range meta.Models {
		for _, f := range fields {
			for rule := range strings.SplitSeq(f.Validator, ",") {
				if rule == "" {
					continue
				}
				name, value := breaks(t, f, rule)
				body := map[string]any{}
				if value != nil {
					body[f.Name] = value
				}
				var p api.Problem
				res := s.do("POST", "/api/v1/"+model, admin, json1(body))
				if err := json.Unmarshal([]byte(res.body), &p); err != nil || res.status != 400 {
					t.Fatalf("%s.%s breaks %s: %s", model, f.Name, rule, res)
				}
				if !slices.ContainsFunc(p.Errors, func(e api.FieldError) bool { return e.Path == f.Name && e.Rule == name }) {
					t.Errorf("%s.%s breaks %s: %v", model, f.Name, rule, p.Errors)
				}
			}
		}
	}
}

// breaks gives a value of a field that breaks a rule, nil for none at all, and what the problem is called.
func breaks(t *testing.T, f api.MetaField, rule string) (name string, value any) {
	t.Helper()
	name, arg, _ := strings.Cut(rule, "=")
	n, _ := strconv.Atoi(arg)
	switch name {
	case "required":
	case "email", "slug":
		value = "Ann Lee <x"
	case "min":
		value = strings.Repeat("x", n-1)
	case "max":
		value = strings.Repeat("x", n+1)
	case "maxItems":
		value = make([]string, n+1)
	default:
		t.Fatalf("%s has the rule %s, which is new to this test", f.Name, rule)
	}
	switch {
	case name == "min" && n == 1:
		name = "required" // both say that it must not be empty
	case f.Name == "password" && name != "required":
		name = "len" // both bounds are one rule
	}
	return name, value
}
