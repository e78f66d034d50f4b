package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
)

func newVersion(st *command.State) *cobra.Command {
	clientOnly := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of svcctl and of the service",
		Example: `  svcctl version
  svcctl version --client -o json`,
		Args:              command.Args(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return runVersion(cmd.Context(), st, clientOnly) },
	}
	cmd.Flags().BoolVar(&clientOnly, "client", false, "only svcctl's own, without asking the service")
	return cmd
}

// versions is what the command prints.
type versions struct {
	Client string `json:"client"`
	Server string `json:"server,omitempty"`
}

func runVersion(ctx context.Context, st *command.State, clientOnly bool) error {
	v := versions{Client: st.Version}
	var failure error
	if !clientOnly {
		c, err := st.AnonymousClient()
		if err != nil {
			return err
		}
		server, err := c.Version(ctx)
		if failure = err; err == nil {
			v.Server = server.Version
		}
	}
	p := st.Printer()
	if !p.ForPeople() {
		if err := p.Print(output.Result{Value: v, Names: []string{v.Client}}); err != nil {
			return err
		}
		return failure
	}
	f := output.NewFields()
	f.Add("Client", v.Client)
	f.Add("Server", v.Server)
	if err := f.Write(p.W); err != nil {
		return err
	}
	return failure
}
