package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// synonyms gives words that people try, by the verb that they mean.
func synonyms() map[string][]string {
	return map[string][]string{
		"apply":      {"deploy", "push", "sync"},
		"create":     {"add", "new", "make"},
		"delete":     {"remove", "rm", "del", "revoke"},
		"diff":       {"plan", "preview", "changes"},
		"explain":    {"check", "why", "can-i"},
		"get":        {"show", "describe", "view"},
		"describe":   {"show", "get", "view"},
		"init":       {"create", "new", "scaffold"},
		"list":       {"show", "log", "all"},
		"history":    {"revisions", "generations", "versions", "log"},
		"login":      {"auth", "signin", "sign-in"},
		"logout":     {"signout", "sign-out"},
		"passwd":     {"password", "reset-password", "set-password", "change-password"},
		"register":   {"create", "add", "new"},
		"rollback":   {"revert", "undo", "restore"},
		"unregister": {"delete", "remove", "rm"},
		"update":     {"set", "edit", "change", "modify", "patch", "disable", "enable", "deactivate", "block"},
		"verify":     {"check"},
		"whoami":     {"auth", "me"},
	}
}

// Unknown is the error for a word that is no command of cmd, with the nearest ones.
func Unknown(cmd *cobra.Command, word string) error {
	var all, near []string
	others := synonyms()
	for _, sub := range cmd.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		all = append(all, sub.Name())
		if slices.Contains(others[sub.Name()], strings.ToLower(word)) {
			near = append(near, sub.Name())
		}
	}
	elsewhere := namesakes(cmd.Root(), strings.ToLower(word))
	if len(near) == 0 && len(elsewhere) > 0 {
		return &Error{
			Exit: ExitUsage, Code: "usage", Hint: "did you mean: " + strings.Join(elsewhere, ", or "),
			Message: fmt.Sprintf("unknown command %q for %q", word, cmd.CommandPath()),
		}
	}
	for slips := 1; slips <= 2 && len(near) == 0; slips++ { // no other word for one of them, so perhaps a slip
		cmd.SuggestionsMinimumDistance = slips
		near = cmd.SuggestionsFor(word)
	}
	hint := "there are: " + cmd.CommandPath() + " " + strings.Join(all, ", ")
	if len(near) > 0 {
		hint = "did you mean: " + cmd.CommandPath() + " " + strings.Join(near, ", ")
	}
	return &Error{
		Exit: ExitUsage, Code: "usage", Hint: hint,
		Message: fmt.Sprintf("unknown command %q for %q", word, cmd.CommandPath()),
	}
}

// maxNamesakes is how many commands of one name are worth telling: list is a verb of nearly every noun.
const maxNamesakes = 3

// namesakes gives the whole names of the commands below root that are called word.
func namesakes(root *cobra.Command, word string) (paths []string) {
	for _, noun := range root.Commands() {
		if noun.Name() == "get" { // whose words are kinds
			continue
		}
		for _, verb := range noun.Commands() {
			if verb.IsAvailableCommand() && verb.Name() == word {
				paths = append(paths, verb.CommandPath())
			}
		}
	}
	if len(paths) > maxNamesakes {
		return nil
	}
	return paths
}
