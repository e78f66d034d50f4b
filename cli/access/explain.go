package access

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

func newExplain(st *command.State) *cobra.Command {
	var as string
	var q api.ExplainRequest
	cmd := &cobra.Command{
		Use:   "explain [NAMESPACE] COLLECTION",
		Short: "Say what somebody may do with the records of a collection, and which rule decides",
		Long: `Say what somebody may do with the records of a collection: the rules that decide, the records that they are held to, and
the fields that are hidden from them or that they can't write. With --id, also whether that reaches one record, which you
have to be able to read yourself. It takes the right project.read, and user.read for users other than you.

--as is public (no credential), user:NAME, token:VALUE (a collection token or an admin token of the project; only its
hash is sent; token:sha256:HEX gives the hash alone), pat:ID (a personal access token of yours) or
admin (the server admin token).`,
		Example: `  svcctl access explain blog articles --as public
  svcctl access explain blog articles --as user:ann --method put --id 65f0c2a1b3d4e5f60718293a`,
		Args:              command.PlaceArgs(1),
		ValidArgsFunction: st.CompletePlace(true),
		RunE: st.AtPlace(1, func(ctx context.Context, namespace string, rest []string) error {
			var err error
			if q.Principal, err = parseAs(as); err != nil {
				return err
			}
			q.Collection = rest[0]
			return runExplain(ctx, st, namespace, q)
		}),
	}
	cmd.Flags().StringVar(&as, "as", "public", "who: public, user:NAME, token:VALUE, pat:ID or admin")
	cmd.Flags().StringVar(&q.Method, "method", "get", "what: get, post, put or delete")
	cmd.Flags().StringVar(&q.ID, "id", "", "the id of a record")
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{
		"as":     completeAs(st),
		"method": cobra.FixedCompletions([]string{"get", "post", "put", "delete"}, cobra.ShellCompDirectiveNoFileComp),
	})
	return cmd
}

// completeAs completes who: each user by name, as far as they can be listed.
func completeAs(st *command.State) command.CompleteFunc {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		name, ok := strings.CutPrefix(prefix, "user:")
		if !ok {
			return []string{"public", "user:", "token:", "pat:", "admin"}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		users, directive := st.CompleteUsers(cmd, nil, name)
		for i := range users {
			users[i] = "user:" + users[i]
		}
		return users, directive
	}
}

// parseAs reads the value of --as.
func parseAs(as string) (api.ExplainPrincipal, error) {
	kind, value, _ := strings.Cut(as, ":")
	switch {
	case as == "public" || as == "anonymous":
		return api.ExplainPrincipal{Kind: api.ExplainAnonymous}, nil
	case as == "admin":
		return api.ExplainPrincipal{Kind: api.ExplainAdmin}, nil
	case kind == "user" && value != "":
		return api.ExplainPrincipal{Kind: api.ExplainUser, Username: value}, nil
	case kind == "pat" && value != "":
		return api.ExplainPrincipal{Kind: api.ExplainPAT, ID: value}, nil
	case kind == "token" && value != "":
		hash, hashed := strings.CutPrefix(value, "sha256:")
		if !hashed {
			sum := sha256.Sum256([]byte(value))
			hash = hex.EncodeToString(sum[:])
		}
		return api.ExplainPrincipal{Kind: api.ExplainToken, TokenHash: hash}, nil
	}
	return api.ExplainPrincipal{}, command.Usagef("--as must be public, user:NAME, token:VALUE, pat:ID or admin")
}

// asked is which of what was asked about is not found, by what a refusal says of it.
func asked(err error, q api.ExplainRequest) string {
	what, _, _ := strings.Cut(err.Error(), " ")
	switch what {
	case "user":
		return q.Principal.Username
	case "token":
		return q.Principal.ID
	case "collection":
		return q.Collection
	}
	return ""
}

func runExplain(ctx context.Context, st *command.State, namespace string, q api.ExplainRequest) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	x, err := c.ExplainAccess(ctx, namespace, q)
	if err != nil {
		return command.Named(err, asked(err, q))
	}
	p := st.Printer()
	if !p.ForPeople() {
		return p.Print(output.Result{Value: x, Names: []string{"collection/" + x.Collection}})
	}
	f := output.NewFields()
	f.Add("Allowed", x.Allowed)
	f.Add("Rule", x.Rule)
	f.Add("Reason", x.Reason)
	if x.Grant != nil {
		f.Add("Records", records(x.Filter))
		f.Add("Hidden", strings.Join(x.Hidden, ", "))
		f.Add("Readonly", strings.Join(x.Readonly, ", "))
		f.Add("Also", also(x.Grant))
		if x.Grant.Projections != nil {
			f.Add("Projections", strings.Join(*x.Grant.Projections, ", "))
		}
	}
	if x.Record != nil {
		f.Add("Reaches "+x.Record.ID, x.Record.Visible)
	}
	if err := f.Write(p.W); err != nil {
		return err
	}
	steps := output.NewTable("RULE", "ALLOWS", "WHY")
	for _, s := range x.Steps {
		steps.Row(s.Rule, s.Allows, s.Reason)
	}
	return p.Section("Rules, in the order they were looked at", steps)
}

func records(filter api.Record) string {
	if len(filter) == 0 {
		return "all"
	}
	return string(filter)
}

// also lists what the method comes with: "bulk, count".
func also(g *api.ExplainGrant) string {
	var out []string
	for _, right := range []struct {
		name string
		has  bool
	}{{"bulk", g.Bulk}, {"count", g.Count}, {"facet", g.Facet}, {"lookup", g.Lookup}, {"aggregate", g.Aggregate}} {
		if right.has {
			out = append(out, right.name)
		}
	}
	return strings.Join(out, ", ")
}
