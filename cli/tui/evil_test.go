package tui_test

import (
	"encoding/json"
	"reflect"
	"strconv"
	"testing"

	"github.com/svcctl/svc/pkg/api"
)

// evil is text that a terminal would obey, and then words that are written with joiners, which stay, and joiners that are seen nowhere.
const evil = "\x1b]0;owned\x07\x1b[2J\u009b31m\u202e\u200b\ufeff\r\nbelow\t" +
	"می\u200cخواهم\u200cهای\u200cمان ක්\u200dරී ad\u200dmin\u200c\u200c 👩\u200d🚒 می\u200c"

// evilSample is sample with evil behind all texts, but for those that name things in paths. Where it is refusing, it says so in evil
// words to whoever searches.
func evilSample(t *testing.T, refusing bool) *service {
	t.Helper()
	s := sample()
	for _, value := range []any{&s.projects, &s.statuses, &s.collections, &s.worker, &s.groups, &s.reloaded, &s.profiles, &s.snapshots, &s.snapRuns, &s.diff, &s.jobs, &s.jobRuns, &s.audit, &s.report, &s.tokens, &s.users, &s.scopes, &s.orgs, &s.teams, &s.plan, &s.drift} {
		spoil(reflect.ValueOf(value).Elem(), evil)
	}
	for i := range s.projects {
		s.projects[i].ID, s.projects[i].Namespace = sample().projects[i].ID, sample().projects[i].Namespace
	}
	for _, all := range [][]string{s.records, s.docs} {
		for i, record := range all {
			var value any
			if err := json.Unmarshal([]byte(record), &value); err != nil {
				t.Fatal(err)
			}
			spoiled, err := json.Marshal(spoilJSON(value, evil))
			if err != nil {
				t.Fatal(err)
			}
			all[i] = string(spoiled)
		}
	}
	for i := range s.audit {
		s.audit[i].Before, s.audit[i].After = nil, []byte(`{"title":`+strconv.Quote("x")+`,"\\u001b]0;owned\\u0007":"\\u001b[2J"}`)
	}
	if !refusing {
		return s
	}
	problem := api.Problem{Status: 400, Detail: "no" + evil, Errors: []api.FieldError{{Path: evil, Message: evil}}}
	s.fail = map[string]api.Problem{"/_/blog/articles": problem, "/_/blog/_/admin/reload": problem, "/project/p2/status": problem}
	for _, c := range s.collections {
		s.fail["/_/blog/"+c.Name] = problem
	}
	return s
}

// spoil puts text behind every string in a value.
func spoil(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + text)
	case reflect.Pointer:
		if !v.IsNil() {
			spoil(v.Elem(), text)
		}
	case reflect.Slice:
		for i := range v.Len() {
			spoil(v.Index(i), text)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			one := reflect.New(v.Type().Elem()).Elem()
			one.Set(v.MapIndex(key))
			spoil(one, text)
			v.SetMapIndex(key, one)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				spoil(v.Field(i), text)
			}
		}
	}
}

func spoilJSON(value any, text string) any {
	switch value := value.(type) {
	case string:
		return value + text
	case []any:
		for i := range value {
			value[i] = spoilJSON(value[i], text)
		}
	case map[string]any:
		for name, member := range value {
			value[name] = spoilJSON(member, text)
		}
	}
	return value
}
