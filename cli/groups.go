package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

// unknown is the error for words that are no command of cmd, which has others.
func unknown(st *command.State, cmd *cobra.Command, words []string) error {
	if len(words) > 1 && !cmd.HasParent() {
		return verbFirst(st, cmd, words[0], words[1])
	}
	return command.Unknown(cmd, words[0])
}

// verbFirst is the error for a verb before its noun, as kubectl has them (describe project blog): it names the command that has them in our order.
func verbFirst(st *command.State, root *cobra.Command, verb, noun string) error {
	noun, _, _ = strings.Cut(noun, "/")
	for _, k := range getKinds(st) {
		if noun != k.plural && noun != k.singular() && !slices.Contains(strings.Fields(k.short), noun) {
			continue
		}
		of, _, err := root.Find([]string{k.noun.Name()})
		if err != nil || of == root {
			break
		}
		for _, cmd := range of.Commands() {
			if cmd.Name() != verb && !cmd.HasAlias(verb) {
				continue
			}
			return &command.Error{
				Exit: command.ExitUsage, Code: "usage", Message: fmt.Sprintf("unknown command %q for %q", verb, root.CommandPath()),
				Hint: "did you mean: " + cmd.CommandPath(),
			}
		}
		return command.Unknown(of, verb)
	}
	return command.Unknown(root, verb)
}

// groupCommands puts the commands of the help into groups, so that a newcomer finds where to begin.
func groupCommands(root *cobra.Command) {
	for _, g := range []struct{ id, title, commands string }{
		{"start", "Begin here:", "login logout whoami config check status tui"},
		{"projects", "Projects and their config:", "project apply diff drift wait explain tree types openapi"},
		{"content", "What is in them:", "get collection doc file asset index search action job"},
		{"snapshots", "Copies:", "snapshot backup"},
		{"people", "Who may do what:", "user org team token access audit"},
		{"service", "The service:", "server metrics embedding mcp api"},
		{"more", "svcctl itself:", "api-resources version completion man plugin options help"},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, name := range strings.Fields(g.commands) {
			for _, cmd := range root.Commands() {
				if cmd.Name() == name {
					cmd.GroupID = g.id
				}
			}
		}
		root.SetHelpCommandGroupID("more")
	}
}

// namePlurals lets nouns be named as svcctl get has them, too: svcctl docs list.
func namePlurals(root *cobra.Command, kinds []getKind) {
	for _, k := range kinds {
		for _, noun := range root.Commands() {
			if noun.Name() == k.singular() && k.plural != noun.Name() && !noun.HasAlias(k.plural) {
				noun.Aliases = append(noun.Aliases, k.plural)
			}
		}
	}
}

// refuseHelp makes svcctl help end with an error for what is no command: cobra's shows the help of what stands before it.
func refuseHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		panic(err) // it was made a line above
	}
	help.Run, help.RunE = nil, func(_ *cobra.Command, args []string) error {
		cmd, rest, err := root.Find(args)
		if err == nil && len(rest) > 0 && cmd.HasSubCommands() {
			err = command.Unknown(cmd, rest[0])
		}
		if err != nil {
			return err
		}
		cmd.InitDefaultHelpFlag()
		return cmd.Help()
	}
}
