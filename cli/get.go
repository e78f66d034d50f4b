package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/action"
	"github.com/svcctl/svc/cli/asset"
	"github.com/svcctl/svc/cli/audit"
	"github.com/svcctl/svc/cli/collection"
	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/config"
	"github.com/svcctl/svc/cli/doc"
	"github.com/svcctl/svc/cli/file"
	"github.com/svcctl/svc/cli/index"
	"github.com/svcctl/svc/cli/job"
	"github.com/svcctl/svc/cli/org"
	"github.com/svcctl/svc/cli/project"
	"github.com/svcctl/svc/cli/snapshot"
	"github.com/svcctl/svc/cli/team"
	"github.com/svcctl/svc/cli/token"
	"github.com/svcctl/svc/cli/user"
)

// getKinds are what svcctl get shows: the verbs of each noun that list it and show one of it, or "".
func getKinds(st *command.State) []getKind {
	return []getKind{
		{"projects", project.NewCmd(st), "list", "get"},
		{"events", project.NewCmd(st), "events", ""},
		{"collections", collection.NewCmd(st), "list", "describe"},
		{"indexes", index.NewCmd(st), "list", ""},
		{"actions", action.NewCmd(st), "list", "describe"},
		{"jobs", job.NewCmd(st), "list", "describe"},
		{"snapshots", snapshot.NewCmd(st), "list", "show"},
		{"assets", asset.NewCmd(st), "list", ""},
		{"docs", doc.NewCmd(st), "list", "get"},
		{"files", file.NewCmd(st), "list", ""},
		{"users", user.NewCmd(st), "list", "get"},
		{"orgs", org.NewCmd(st), "list", "get"},
		{"teams", team.NewCmd(st), "list", "get"},
		{"tokens", token.NewCmd(st), "list", "get"},
		{"audit", audit.NewCmd(st), "list", ""},
		{"contexts", config.NewCmd(st), "get-contexts", ""},
	}
}

type getKind struct {
	plural    string
	noun      *cobra.Command
	list, one string
}

// newGet makes svcctl get: the verbs that show something, by the kind of it, where users of kubectl look for them.
func newGet(st *command.State) *cobra.Command {
	get := &cobra.Command{
		Use:   "get KIND",
		Short: "Show what there is of a kind: projects, collections, users, …",
		Long: `Show what there is of a kind, or one of it: svcctl get collections blog is svcctl collection list blog, and svcctl get
collection blog articles is svcctl collection describe blog articles. With -n blog it can be written collection/articles.`,
		Example: `  svcctl get projects
  svcctl get project blog -o yaml
  svcctl get collections blog`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			kind, name, named := strings.Cut(args[0], "/")
			if sub, _, err := cmd.Find([]string{kind}); named && name != "" && len(args) == 1 && err == nil && sub != cmd && sub.Hidden {
				sub.SetContext(cmd.Context())
				args = []string{name}
				if err := sub.ValidateArgs(args); err != nil {
					return err
				}
				return sub.RunE(sub, args)
			}
			return command.Unknown(cmd, args[0])
		},
	}
	for _, k := range getKinds(st) {
		singular := strings.TrimSuffix(k.plural, "s")
		if k.plural == "indexes" {
			singular = "index"
		}
		list := taken(k.noun, k.list, k.plural)
		get.AddCommand(list)
		if k.one == "" {
			if singular != k.plural {
				list.Aliases = append(list.Aliases, singular)
			}
			continue
		}
		one := taken(k.noun, k.one, singular)
		one.Hidden = true // the list of kinds has each once
		one.Args, one.RunE = listWithout(one, list)
		get.AddCommand(one)
	}
	return get
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

// listWithout makes the command for one of a kind list all when it is asked for none.
func listWithout(one, list *cobra.Command) (check cobra.PositionalArgs, run func(*cobra.Command, []string) error) {
	oneCheck, oneRun := one.Args, one.RunE
	none := func(args []string) bool { return len(args) == 0 && list.Args(list, nil) == nil }
	check = func(cmd *cobra.Command, args []string) error {
		if none(args) {
			return nil
		}
		return oneCheck(cmd, args)
	}
	run = func(cmd *cobra.Command, args []string) error {
		if none(args) {
			list.SetContext(cmd.Context())
			return list.RunE(list, nil)
		}
		return oneRun(cmd, args)
	}
	return check, run
}
