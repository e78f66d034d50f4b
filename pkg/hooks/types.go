package hooks

import (
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/script"
)

// typesHook is what the ctx of a collection's scripts extends.
const typesHook = "SvcContext"

const typesHead = `// The types of scripts of svc. Written by the service from its own tables: don't edit it.
// A script names the stage it is for: export default (ctx: Svc.PostBind) => { … }

`

const typesUser = `interface SvcUser {
  kind: string
  id: string | null
  name: string
  isAdmin: boolean
  orgIds: string[]
  teamIds: string[]
  teams: string[]
}
type SvcDoc = Record<string, any>

`

const typesSearch = `  /** The eval of a search: gives the text of a record that is searched, or a list of texts. */
  interface Search extends SvcContextBase {
    readonly collection: string
    /** The language whose text is asked for; '' is that of the fields themselves. */
    readonly lang: string
    /** The fields of the search, and nothing else of the record. */
    readonly doc: SvcDoc
  }
`

// Types is svc.d.ts: what editors need to know of the scripts of a project.
func Types() string {
	var b strings.Builder
	b.WriteString(typesHead)
	b.WriteString(script.Types())
	b.WriteString("\n" + typesUser)
	b.WriteString("/** What every stage has. */\ninterface SvcContext extends SvcContextBase {\n")
	for _, m := range schema.CommonMembers() {
		member(&b, "  ", m, m.Name != "state")
	}
	b.WriteString("}\n\n/** What every stage of an action has: query and data are of the types that its config declares. */\n" +
		"interface SvcActionContext extends Omit<SvcContext, 'collection' | 'query'> {\n  readonly query: Record<string, any>\n}\n")
	b.WriteString("\ndeclare namespace Svc {\n")
	for _, g := range schema.HookGroups() {
		for _, s := range g.Stages {
			stage(&b, g.Name, title(g.Name)+title(s.Name), typesHook, s)
		}
	}
	for _, s := range schema.RuleScripts() {
		stage(&b, "", title(s.Name), typesHook, s)
	}
	for _, s := range schema.ActionStages() {
		stage(&b, "action", "Action"+title(s.Name), "SvcActionContext", s)
	}
	b.WriteString(typesSearch + "  /** A job. */\n  interface Job extends SvcContextBase {\n")
	for _, m := range slices.Concat(schema.HookMembers(), schema.CommonMembers()) {
		if slices.Contains(schema.JobMembers(), m.Name) {
			member(&b, "    ", m, m.Name != "state")
		}
	}
	b.WriteString("  }\n}\n")
	return b.String()
}

func stage(b *strings.Builder, group, name, base string, s schema.HookStage) {
	if group != "" {
		group += "."
	}
	b.WriteString("  /** " + group + s.Name + ": " + s.When + ". */\n")
	b.WriteString("  interface " + name + " extends " + base + " {\n")
	for _, m := range schema.HookMembers() {
		if slices.Contains(s.In, m.Name) {
			if m.Name == "previous" && s.Bulk {
				m.Type = "Doc[]"
			}
			if m.Name == "result" && base == typesHook {
				m.Type = "{ items?: any[]; [name: string]: any }"
				if s.Bulk {
					m.Type = strings.Replace(m.Type, "?", "", 1)
				}
			}
			member(b, "    ", m, !slices.Contains(s.Out, m.Name))
		}
	}
	b.WriteString("  }\n")
}

func member(b *strings.Builder, indent string, m schema.HookMember, readonly bool) {
	b.WriteString(indent + "/** " + m.Doc + " */\n" + indent)
	if readonly {
		b.WriteString("readonly ")
	}
	kind := strings.NewReplacer("User", "SvcUser", "Doc", "SvcDoc").Replace(m.Type)
	b.WriteString(m.Name + ": " + kind + "\n")
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
