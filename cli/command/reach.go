package command

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/settings"
)

// Flags that decide which service is meant, and as whom, in the order in which they are shown again.
var (
	placeFlags  = []string{"config", "context", "server", "ca-file", "insecure-skip-tls-verify"}
	fileFlags   = []string{"token-file", "admin-token-file", "collection-token-file"}
	secretFlags = []string{"token", "admin-token", "collection-token"}
)

// mention finds what may be a command of ours in a text: svcctl and the word behind it.
var mention = regexp.MustCompile(`\bsvcctl [a-z]+\b`)

// Reach gives a text in which each command of svcctl has the flags that the user gave to this one and that decide which service it reaches, and as
// whom: what is copied from a hint is then about the same service. What the environment or the current context says holds for the next command
// anyway. Secrets are not shown again: a word takes their place. All that State tells has gone through it; it is for what is told in another way.
func (st *State) Reach(text string) string {
	if st.root == nil || !strings.Contains(text, "svcctl ") {
		return text
	}
	return mention.ReplaceAllStringFunc(text, func(found string) string {
		word := strings.TrimPrefix(found, "svcctl ")
		for _, c := range st.root.Commands() {
			if c.Name() == word || c.HasAlias(word) {
				return strings.Join(append(append([]string{"svcctl"}, st.reaching(c)...), word), " ")
			}
		}
		return found // it is about svcctl itself
	})
}

// reaching are the flags that a command is shown with.
func (st *State) reaching(c *cobra.Command) (out []string) {
	given := func(names []string, show func(value string) string) {
		for _, name := range names {
			switch f := st.root.PersistentFlags().Lookup(name); {
			case f == nil || st.isSet == nil || !st.isSet(name):
			case f.Value.Type() == "bool":
				out = append(out, "--"+name+"="+f.Value.String())
			case name == "server":
				out = append(out, "--"+name, shellWord(settings.Server{Server: f.Value.String()}.Shown()))
			default:
				out = append(out, "--"+name, show(f.Value.String()))
			}
		}
	}
	switch c.Name() {
	case "config": // it is about the file with the contexts alone
		given([]string{"config"}, shellWord)
	case "login": // it gets a credential
		given(placeFlags, shellWord)
	default:
		given(append(placeFlags[:len(placeFlags):len(placeFlags)], fileFlags...), shellWord)
		given(secretFlags, func(string) string { return "TOKEN" })
	}
	return out
}

// plainWord is what a shell takes as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// shellWord quotes a word for a POSIX shell, if need be.
func shellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
