package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/action"
	"github.com/svcctl/svc/cli/asset"
	"github.com/svcctl/svc/cli/audit"
	"github.com/svcctl/svc/cli/backup"
	"github.com/svcctl/svc/cli/collection"
	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/config"
	"github.com/svcctl/svc/cli/doc"
	"github.com/svcctl/svc/cli/file"
	"github.com/svcctl/svc/cli/index"
	"github.com/svcctl/svc/cli/job"
	"github.com/svcctl/svc/cli/org"
	"github.com/svcctl/svc/cli/project"
	"github.com/svcctl/svc/cli/search"
	"github.com/svcctl/svc/cli/snapshot"
	"github.com/svcctl/svc/cli/team"
	"github.com/svcctl/svc/cli/token"
	"github.com/svcctl/svc/cli/user"
)

// getKinds are what svcctl get shows: the verbs of each noun that list it and show one of it, or "".
func getKinds(st *command.State) []getKind {
	return []getKind{
		{"projects", project.NewCmd(st), "list", "get", "proj p", false},
		{"events", project.NewCmd(st), "events", "", "ev", true},
		{"generations", project.NewCmd(st), "history", "", "gen", true},
		{"collections", collection.NewCmd(st), "list", "describe", "col cols", true},
		{"indexes", index.NewCmd(st), "list", "", "idx", true},
		{"searches", search.NewCmd(st), "status", "", "", true},
		{"actions", action.NewCmd(st), "list", "describe", "act", true},
		{"jobs", job.NewCmd(st), "list", "describe", "", true},
		{"snapshots", snapshot.NewCmd(st), "list", "show", "snap snaps", true},
		{"profiles", snapshot.NewCmd(st), "profiles", "", "", true},
		{"backups", backup.NewCmd(st), "list", "", "", true},
		{"assets", asset.NewCmd(st), "list", "", "", true},
		{"docs", doc.NewCmd(st), "list", "get", "documents records", true},
		{"files", file.NewCmd(st), "list", "", "", true},
		{"users", user.NewCmd(st), "list", "get", "", false},
		{"orgs", org.NewCmd(st), "list", "get", "organizations", false},
		{"teams", team.NewCmd(st), "list", "get", "", false},
		{"tokens", token.NewCmd(st), "list", "get", "pat", false},
		{"scopes", token.NewCmd(st), "scopes", "", "", false},
		{"audit", audit.NewCmd(st), "list", "", "", false},
		{"contexts", config.NewCmd(st), "get-contexts", "", "ctx", false},
	}
}

type getKind struct {
	plural    string
	noun      *cobra.Command
	list, one string
	short     string // other names, separated by spaces
	inProject bool   // it is of a project: its commands take a namespace
}

// singular is the name of one of the kind.
func (k getKind) singular() string {
	switch k.plural {
	case "indexes", "searches":
		return strings.TrimSuffix(k.plural, "es")
	}
	return strings.TrimSuffix(k.plural, "s")
}

// newGet makes svcctl get: the verbs that show something, by the kind of it, where users of kubectl look for them. It takes them from kinds.
func newGet(kinds []getKind) *cobra.Command {
	ones := map[string]*cobra.Command{} // the command for one of a kind, by that for all
	get := &cobra.Command{
		Use:   "get KIND",
		Short: "Show what there is of a kind: projects, collections, users, …",
		Long: `Show what there is of a kind, or one of it: svcctl get collections blog is svcctl collection list blog, and svcctl get
collection blog articles is svcctl collection describe blog articles. With -n blog it can be written collection/articles. svcctl
api-resources lists the kinds, with their short names.`,
		Example: `  svcctl get projects
  svcctl get project blog -o yaml
  svcctl get collections -n blog
  svcctl get snap -n blog --sort-by .consistentAt`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			kind, name, named := strings.Cut(args[0], "/")
			sub, _, err := cmd.Find([]string{kind})
			if one, ok := ones[sub.Name()]; ok {
				sub = one
			}
			if named && name != "" && len(args) == 1 && err == nil && sub != cmd && sub.Hidden {
				sub.SetContext(cmd.Context())
				args = []string{name}
				if err := sub.ValidateArgs(args); err != nil {
					return err
				}
				return sub.RunE(sub, args)
			}
			return unknownKind(cmd, args[0])
		},
	}
	for _, k := range kinds {
		list := taken(k.noun, k.list, k.plural)
		get.AddCommand(list)
		list.Aliases = strings.Fields(k.short)
		if k.one == "" {
			if k.singular() != k.plural {
				list.Aliases = append(list.Aliases, k.singular())
			}
			continue
		}
		one := taken(k.noun, k.one, k.singular())
		one.Hidden = true // the list of kinds has each once
		listCheck, listRun := list.Args, list.RunE
		listOf := &cobra.Command{Args: listCheck, RunE: listRun}
		oneCheck, oneRun := one.Args, one.RunE
		one.Args, one.RunE = either(listOf, list, oneCheck, oneRun, true)
		list.Args, list.RunE = either(listOf, list, oneCheck, oneRun, false)
		if !k.inProject { // whose names come first
			list.ValidArgsFunction = one.ValidArgsFunction
		}
		get.AddCommand(one)
		ones[list.Name()] = one
	}
	return get
}

// unknownKind is the error for a word that is no kind: it may be a collection, whose records are looked for.
func unknownKind(get *cobra.Command, word string) error {
	err := command.Unknown(get, word)
	if own, ok := errors.AsType[*command.Error](err); ok {
		own.Hint += "; the records of a collection are svcctl get docs [NAMESPACE] COLLECTION"
	}
	return err
}

// taken takes a verb from its noun, by another name.
func taken(noun *cobra.Command, verb, name string) *cobra.Command {
	for _, cmd := range noun.Commands() {
		if cmd.Name() != verb {
			continue
		}
		noun.RemoveCommand(cmd)
		cmd.Use = name + strings.TrimPrefix(cmd.Use, verb)
		cmd.Aliases = nil
		cmd.Example = strings.ReplaceAll(cmd.Example, "svcctl "+noun.Name()+" "+verb, "svcctl get "+name)
		return cmd
	}
	panic("svcctl " + noun.Name() + " has no verb " + verb)
}

// either makes the command for a kind list all of it, or show one, by how many arguments there are. In the command for one
// (oneFirst), a single word is the name of one.
func either(listOf, list *cobra.Command, oneCheck cobra.PositionalArgs, oneRun func(*cobra.Command, []string) error, oneFirst bool) (
	check cobra.PositionalArgs, run func(*cobra.Command, []string) error,
) {
	isList := func(cmd *cobra.Command, args []string) bool {
		fits := listOf.Args(list, args) == nil
		if oneFirst {
			return fits && len(args) == 0
		}
		return fits || oneCheck(cmd, args) != nil // the complaint is about the list
	}
	check = func(cmd *cobra.Command, args []string) error {
		if isList(cmd, args) {
			return listOf.Args(cmd, args)
		}
		return oneCheck(cmd, args)
	}
	run = func(cmd *cobra.Command, args []string) error {
		if isList(cmd, args) {
			list.SetContext(cmd.Context())
			return listOf.RunE(list, args)
		}
		return oneRun(cmd, args)
	}
	return check, run
}
