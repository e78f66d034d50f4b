package project_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
)

// TestR24NoConfigTakesTheServiceDown: what anybody who may reload a project can send, or merge, is refused before it takes the
// memory or the time of all the others. Without its bound, each of these takes minutes or gigabytes.
func TestR24NoConfigTakesTheServiceDown(t *testing.T) {
	t.Parallel()
	const (
		head    = "namespace: b\n"
		tooMany = "too many keys in one object, or values that are left out"
		tooBig  = "the config is too large: more than 1000000 values"
		more    = "there are more than 1000 problems: mend these first"
		deep    = "nested deeper than 64 levels"
	)
	rep := strings.Repeat
	numbered := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	var doubled strings.Builder // each twice the one before
	doubled.WriteString(" a0: &a0 [1, 2]\n")
	for i := range 40 {
		fmt.Fprintf(&doubled, " a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	patterns := map[string]string{"project.yaml": head + "collections: [" + rep("\"c/*.yaml\",", 50_000) + "]"}
	for i := range 500 {
		patterns[fmt.Sprintf("c/%d.yaml", i)] = "name: a"
	}
	tower := map[string]string{"f15.yaml": "[]", "project.yaml": head +
		"collections:\n- {name: c, permissions: {public: {methods: {}}, user: {methods: {}}}, fields: f0.yaml}\n"}
	for i := range 15 {
		tower[fmt.Sprintf("f%d.yaml", i)] = rep(fmt.Sprintf("- {name: a, type: object, subFields: f%d.yaml}\n", i+1), 20)
	}
	const coll = head + "collections:\n- name: c\n  permissions: {public: {methods: {}}, user: {methods: {}}}\n"
	yaml := func(text string) map[string]string { return map[string]string{"project.yaml": text} }
	json := func(text string) map[string]string { return map[string]string{"project.json": text} }
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"merges of one large object":          {yaml(head + "meta:\n a: &a {" + numbered(20_000, "k%d: 1,") + "}\n b: {<<: [" + rep("*a,", 100_000) + "]}\n"), tooBig},
		"aliases of aliases, where one hides": {yaml(head + "x:\n" + doubled.String() + "admin: {tokens: [{name: *a40}]}\n"), "unknown key"},
		"aliases of unknown keys":             {yaml(head + "collections:\n- &a {" + numbered(80_000, "k%d: 1,") + "}\n" + rep("- *a\n", 300)), more},
		"files that name files":               {tower, tooBig},
		"patterns":                            {patterns, tooBig},
		"different patterns":                  {yaml(head + "collections: [" + numbered(50_000, "\"c/%d*.yaml\",") + "]"), more},
		"one list of what is wrong":           {yaml(head + "collections:\n" + rep("- a\n", 250_000)), more},
		"objects that lack all":               {yaml(head + "collections:\n" + rep("- {}\n", 200_000)), more},
		"warnings":                            {yaml(head + "legacy: {" + numbered(20_000, "k%d: 1,") + "}\n"), "has no effect"},
		"one line of JSON":                    {json(`{"collections":[` + rep("1,", 500_000) + `1]}`), more},
		"one object of many keys":             {yaml(head + numbered(80_000, "k%d: 1\n")), tooMany},
		"keys with question marks":            {yaml(head + rep("? a\n", 250_000)), tooMany},
		"keys without values":                 {yaml(head + "meta: {" + rep("a:,", 300_000) + "}"), tooMany},
		"entries without keys":                {yaml(head + "meta: {" + rep("a,", 500_000) + "}"), tooMany},
		"dashes without values":               {yaml(head + "meta:\n" + rep(" -\n", 300_000)), tooMany},
		"carriage returns":                    {yaml(head + rep("a: b\r", 200_000)), tooMany},
		"brackets that comments seem to end":  {yaml(head + "meta: " + rep("[ #]\n", 200_000)), deep},
		"brackets that texts seem to end":     {yaml(head + "meta: " + rep("[']', ", 170_000)), deep},
		"the same in JSON":                    {json(rep(rep("[", 1000)+"//"+rep("]", 1000)+"\n", 520)), deep},
		"and in texts of JSON":                {json(rep(`["]", `, 170_000)), deep},
		"and in other comments of JSON":       {json(rep(`[/*]*/`, 170_000)), deep},
		"languages":                           {yaml(coll + "  meta: {i18n: {languages: [" + numbered(3000, "aa-%04d,") + "]}}\n  fields:\n" + numbered(2000, "  - {name: f%d, type: string}\n")), "too many languages for so many fields"},
		"patterns of fields":                  {yaml(coll + "  fields:\n" + numbered(2000, "  - {name: f%d, type: string, validator: {pattern: '((a{1,30}){1,30})'}}\n")), "the patterns of all fields together are too large"},
		"a key of 1 MiB":                      {yaml(head + rep("k", 1_000_000) + ": 1"), "a key has more than 1000 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := project.Bundle{Entry: "project.yaml", Files: map[string][]byte{}}
			for name, text := range c.files {
				b.Files[name] = []byte(text)
				if name == "project.json" {
					b.Entry = name
				}
			}
			_, problems := (&project.Loader{}).LoadBundle(b, t.TempDir())
			told := false
			for _, p := range problems {
				told = told || strings.Contains(p.Message, c.want)
			}
			if !told {
				t.Errorf("no problem says %q: %.300s", c.want, fmt.Sprint(problems))
			}
			if len(problems) > 2*(schema.MaxProblems+1) {
				t.Errorf("%d problems", len(problems))
			}
		})
	}
}

// What is large and means something is served all the same.
func TestLargeConfigsLoad(t *testing.T) {
	t.Parallel()
	var list, object, flow strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&list, "  - {name: f%d, type: string}\n", i)
		fmt.Fprintf(&object, "    k%d: [a, {b: c}] # why\n", i)
		fmt.Fprintf(&flow, "k%d: 1, ", i)
	}
	text := "namespace: b\nmeta:\n  agent:\n" + object.String() + "    flow: {" + flow.String() + "}\n" +
		"    deep: " + strings.Repeat("[", 50) + strings.Repeat("]", 50) + "\n" +
		"    text: |\n      " + strings.Repeat("see [this], ", 10_000) + "\n" +
		"collections:\n- name: c\n  permissions: {public: {methods: {}}, user: {methods: {}}}\n  fields:\n" + list.String()
	p, problems := (&project.Loader{}).LoadBundle(project.Bundle{Entry: "project.yaml", Files: map[string][]byte{"project.yaml": []byte(text)}}, t.TempDir())
	if p == nil || len(problems) > 0 {
		t.Fatalf("%.500s", fmt.Sprint(problems))
	}
	if n := len(p.Collections["c"].Config.Fields); n != 10_000 {
		t.Errorf("%d fields", n)
	}
}

// An error counts behind any number of warnings.
func TestAnErrorBehindManyWarningsIsTold(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "k%d: 1, ", i)
	}
	text := "namespace: b\nlegacy: {" + b.String() + "}\ncollections:\n" +
		"- {name: c, permissions: {public: {methods: {}}, user: {methods: {}}}, hiddenFields: [x], strictFields: true, fields: [{name: a, type: string, validator: {min: x}}]}\n"
	p, problems := (&project.Loader{}).LoadBundle(project.Bundle{Entry: "project.yaml", Files: map[string][]byte{"project.yaml": []byte(text)}}, t.TempDir())
	if p != nil || !problems.Err() {
		t.Errorf("it loads: %.300s", fmt.Sprint(problems))
	}
}
