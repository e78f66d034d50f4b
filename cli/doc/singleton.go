package doc

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// idForm is what ids look like.
var idForm = regexp.MustCompile(`^[0-9a-fA-F]{24}$`)

// byName lets a verb on one record take COLLECTION/ID in the place of both, which is what -o name prints.
func byName(cmd *cobra.Command) *cobra.Command {
	check, run := cmd.Args, cmd.RunE
	cmd.Args = func(cmd *cobra.Command, args []string) error { return check(cmd, apart(args)) }
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return run(cmd, apart(args)) }
	return cmd
}

// apart takes the name of a record that comes last apart.
func apart(args []string) []string {
	if len(args) == 0 {
		return args
	}
	before := args[: len(args)-1 : len(args)-1]
	collection, id, ok := strings.Cut(args[len(args)-1], "/")
	if !ok || !idForm.MatchString(id) {
		return args
	}
	return append(before, collection, id)
}

// oneOrOnly reads [NAMESPACE] COLLECTION [ID]. Without an id it is the record of a singleton. Two arguments are a collection
// and an id where a namespace is known, or else a namespace and a collection.
func oneOrOnly(st *command.State, args []string) (at place, id string, err error) {
	if len(args) == 2 {
		namespace, err := st.Namespace()
		if err != nil {
			return place{}, "", err
		}
		if namespace == "" && !idForm.MatchString(args[1]) {
			return place{args[0], args[1]}, "", nil
		}
	}
	want := min(len(args), 2)
	namespace, rest, err := st.Place(args, want)
	if err != nil {
		return place{}, "", err
	}
	if want == 2 {
		id = rest[1]
	}
	return place{namespace, rest[0]}, id, nil
}

// checkOnly refuses a command without an id on a collection that has many records.
func checkOnly(ctx context.Context, c *client.Client, at place) error {
	col, err := c.DescribeCollection(ctx, at.Namespace, at.Collection)
	if err != nil || col.Singleton {
		return err
	}
	return &command.Error{
		Exit: command.ExitUsage, Code: "usage", Message: fmt.Sprintf("which record of %s?", at),
		Hint: fmt.Sprintf("give its id; svcctl doc list %s %s shows those there are", at.Namespace, at.Collection),
	}
}

// getOne reads a record, or without an id that of a singleton.
func getOne(ctx context.Context, c *client.Client, at place, id string, q client.Query) (api.Record, string, error) {
	if id != "" {
		return c.GetRecord(ctx, at.Namespace, at.Collection, id, q)
	}
	if err := checkOnly(ctx, c, at); err != nil {
		return nil, "", err
	}
	return c.GetOnly(ctx, at.Namespace, at.Collection, q)
}
