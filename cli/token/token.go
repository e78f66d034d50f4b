package token

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// NewCmd makes svcctl token.
func NewCmd(st *command.State) *cobra.Command {
	m := model(st)
	return command.Group("token", "Manage personal access tokens",
		m.ListCmd(st, "List your tokens; administrators see everybody's", "no tokens: svcctl token create makes one"),
		m.GetCmd(st, "Show a token, without its value"), newCreate(st, nil), newUpdate(st, nil), newDelete(st), newScopes(st))
}

// model is what list, get and update are made of. A token has no name that is its own, so -o name gives its id.
func model(st *command.State) command.Model[api.Token, api.TokenWrite] {
	return command.Model[api.Token, api.TokenWrite]{
		Noun: "token", Ref: "NAME|ID", Sample: "deploy", Find: command.FindToken, Table: table, Complete: st.CompleteTokens,
		Items: (*client.Client).Tokens,
		ID:    func(t api.Token) string { return t.ID },
		Name:  func(t api.Token) string { return t.ID },
		Refs: func(t api.Token) command.Refs {
			if st.Flags.Output != output.FormatWide { // which alone shows whose it is
				return command.Refs{}
			}
			return command.Refs{Users: []string{t.UserID}}
		},
	}
}

func table(st *command.State, names command.Names, tokens ...api.Token) *output.Table {
	t := output.NewTable("NAME", "SCOPES", "EXPIRES", "LAST USED", "+ID", "+USER")
	for _, tok := range tokens {
		used := output.Age(st.Now(), tok.LastUsedAt.Time)
		if used != "" {
			used += " ago"
		}
		t.Row(tok.Name, strings.Join(tok.Scopes, ", "), ends(st, tok), used, tok.ID, names.Of(tok.UserID))
	}
	return t
}

// ends says when a token ends, or that it has.
func ends(st *command.State, t api.Token) any {
	if t.ExpiresAt.IsZero() || t.ExpiresAt.After(st.Now()) {
		return Expires(t)
	}
	return output.Painted{Text: "expired " + Expires(t), Paint: st.Style(st.OutTTY).Red}
}

// Expires is the day on which a token ends, or never.
func Expires(t api.Token) string {
	if t.ExpiresAt.IsZero() {
		return "never"
	}
	return t.ExpiresAt.UTC().Format(time.DateOnly)
}

// flags are those that create and update share.
type flags struct {
	Name    string // a flag of update alone
	Scopes  []string
	Expires string
}

func (f *flags) register(cmd *cobra.Command, st *command.State) {
	cmd.Flags().StringSliceVar(&f.Scopes, "scope", nil, "right to give, such as project.read or namespace.blog.articles.read (repeat, or separate by commas; svcctl token scopes lists yours)")
	cmd.Flags().StringVar(&f.Expires, "expires", "", "when it ends: in 12h, 30d or 8w, at 2030-01-31 or a time in RFC 3339, or never (default: as the service says)")
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{
		"scope":   command.CompleteFlag(st.CompleteScopes),
		"expires": cobra.FixedCompletions([]string{"7d", "30d", "90d", "365d", "never"}, cobra.ShellCompDirectiveNoFileComp),
	})
}

// write gives the members that the flags say. nil is the service's default, or no change.
func (f *flags) write(changed func(string) bool, now time.Time) (w api.TokenWrite, err error) {
	if changed("name") {
		w.Name = &f.Name
	}
	if changed("scope") {
		w.Scopes = &f.Scopes
	}
	if changed("expires") {
		at, err := ParseExpires(f.Expires, now)
		if err != nil {
			return w, err
		}
		w.ExpiresAt = &api.Time{Time: at}
	}
	return w, nil
}

// ParseExpires reads when a token ends, as --expires takes it. The zero time is never.
func ParseExpires(s string, now time.Time) (time.Time, error) {
	if s == "never" {
		return time.Time{}, nil
	}
	at, ok := command.ParseTime(s, now, 1)
	if !ok {
		return time.Time{}, command.Usagef("--expires %s: want a time from now such as 12h, 30d or 8w, a date such as 2030-01-31, or never", s)
	}
	return at, nil
}

// until says to the second when a token ends: one for a single hour ends today.
func until(t api.Token) string {
	if t.ExpiresAt.IsZero() {
		return "never ends"
	}
	return "lasts until " + t.ExpiresAt.UTC().Format(api.TimeLayout)
}
