package command

import (
	"fmt"
	"maps"
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
		"list":       {"show", "log", "all", "ls"},
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

// elsewhere gives whole commands, by words that people know from other programs and that no command has. A group's word stands behind its
// name, as in doc find.
func elsewhere() map[string]string {
	return map[string]string{
		"cat":         "svcctl doc get, or svcctl file download",
		"contexts":    "svcctl config get-contexts",
		"cp":          "svcctl file upload, or svcctl file download",
		"ctx":         "svcctl config use-context",
		"doc find":    "svcctl search query, or svcctl doc list --filter",
		"doc query":   "svcctl search query, or svcctl doc list --filter",
		"doc search":  "svcctl search query",
		"find":        "svcctl search query",
		"health":      "svcctl status, or svcctl check",
		"namespace":   "svcctl project list",
		"namespaces":  "svcctl project list",
		"ns":          "svcctl project list",
		"ping":        "svcctl check",
		"rollout":     "svcctl project rollback, history, status",
		"set":         "svcctl doc update, or svcctl config set-context",
		"secret":      "svcctl token",
		"secrets":     "svcctl token",
		"top":         "svcctl metrics, or svcctl status",
		"use-context": "svcctl config use-context",
	}
}

// Unknown is the error for a word that is no command of cmd, with the nearest ones.
func Unknown(cmd *cobra.Command, word string) error {
	return &Error{
		Exit: ExitUsage, Code: "usage", Hint: hintUnknown(cmd, strings.ToLower(word)),
		Message: fmt.Sprintf("unknown command %q for %q", word, cmd.CommandPath()),
	}
}

// hintUnknown says what to write in place of a word that is no command of cmd.
func hintUnknown(cmd *cobra.Command, word string) string {
	_, path, _ := strings.Cut(cmd.CommandPath()+" "+word, " ")
	if there := elsewhere()[path]; there != "" {
		return "did you mean: " + there
	}
	near := sameMeaning(cmd, word)
	if hint := hintNouns(cmd, word, near); hint != "" {
		return hint
	}
	if len(near) == 0 { // no other word for one of them, so perhaps a slip
		near = slips(cmd, word)
	}
	if len(near) > 0 {
		return "did you mean: " + cmd.CommandPath() + " " + strings.Join(near, ", ")
	}
	return thereAre(cmd)
}

// sameMeaning gives the commands of cmd that people mean by a word.
func sameMeaning(cmd *cobra.Command, word string) (names []string) {
	others := synonyms()
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && slices.Contains(others[sub.Name()], word) {
			names = append(names, sub.Name())
		}
	}
	return names
}

// hintNouns names the nouns that have a word as their verb, or what it means, behind the commands of cmd that are near to it; "": there are none, or, in
// a group, something nearer or too many.
func hintNouns(cmd *cobra.Command, word string, near []string) string {
	root := cmd.Root()
	nouns := namesakes(root, word)
	if cmd == root && len(nouns) == 0 && len(near) == 0 {
		word, nouns = otherVerb(root, word)
	}
	switch many := len(nouns) > maxNamesakes; {
	case len(nouns) == 0, cmd != root && (many || len(near) > 0):
		return ""
	case many:
		return word + " what? " + root.Name() + " NOUN " + word + ", where NOUN is " + strings.Join(nouns, ", ")
	}
	var paths []string
	for _, verb := range near {
		paths = append(paths, cmd.CommandPath()+" "+verb)
	}
	for _, noun := range nouns {
		paths = append(paths, root.Name()+" "+noun+" "+word)
	}
	hint := "did you mean: " + strings.Join(paths, ", or ")
	if cmd != root {
		hint += "; " + thereAre(cmd)
	}
	return hint
}

// slips gives the commands of cmd that differ from a word by few letters, the fewest first.
func slips(cmd *cobra.Command, word string) []string {
	if !cmd.HasParent() && len(word) > 1 && strings.HasPrefix("help", word) { // which is none of the commands, for cobra
		return []string{"help"}
	}
	most := 2
	if len(word) < 5 { // of which two letters make any other
		most = 1
	}
	for n := 1; n <= most; n++ {
		cmd.SuggestionsMinimumDistance = n
		if near := cmd.SuggestionsFor(word); len(near) > 0 {
			return near
		}
	}
	return nil
}

// thereAre lists the commands of cmd, or says how to: the root has too many for a line.
func thereAre(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return cmd.Name() + " --help lists the commands"
	}
	var all []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			all = append(all, sub.Name())
		}
	}
	return "there are: " + cmd.CommandPath() + " " + strings.Join(all, ", ")
}

// otherVerb gives the verb that people mean by a word, and the nouns that have it.
func otherVerb(root *cobra.Command, word string) (verb string, nouns []string) {
	others := synonyms()
	for _, verb := range slices.Sorted(maps.Keys(others)) {
		if slices.Contains(others[verb], word) {
			if nouns := namesakes(root, verb); len(nouns) > 0 {
				return verb, nouns
			}
		}
	}
	return word, nil
}

// maxNamesakes is how many commands of one name are told whole: list is a verb of nearly every noun.
const maxNamesakes = 3

// namesakes gives the nouns below root that have a verb called word.
func namesakes(root *cobra.Command, word string) (nouns []string) {
	for _, noun := range root.Commands() {
		if noun.Name() == "get" || !noun.IsAvailableCommand() { // get's words are kinds
			continue
		}
		for _, verb := range noun.Commands() {
			if verb.IsAvailableCommand() && verb.Name() == word {
				nouns = append(nouns, noun.Name())
			}
		}
	}
	return nouns
}
