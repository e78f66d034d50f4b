package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

func newGet(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:   "get ID",
		Short: "Show an entry of the audit log, and what it changed",
		Long: `Show an entry of the audit log, and the members that it changed. svcctl audit list -o wide shows the ids. With -n, it is
the log of a project's records, else that of the service itself.`,
		Example: `  svcctl audit get 65f0c2a1b3d4e5f60718293a
  svcctl audit get -n blog 65f0c2a1b3d4e5f60718293a`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return runGet(cmd.Context(), st, args[0]) },
	}
}

func runGet(ctx context.Context, st *command.State, id string) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	filter, err := json.Marshal(map[string]string{"id": id})
	if err != nil {
		return fmt.Errorf("make the filter: %w", err)
	}
	page, err := readPage(ctx, c, st.GivenNamespace(), client.Query{Filter: string(filter), Limit: 1})
	if err != nil {
		return err
	}
	if len(page.Items) == 0 {
		return &command.Error{
			Exit: command.ExitNotFound, Code: "not_found", Message: "entry not found: " + id,
			Hint: "svcctl audit list -o wide shows the ids; the entries of a project are under -n NAMESPACE",
		}
	}
	e := page.Items[0]
	p := st.Printer()
	if !p.ForPeople() {
		return p.Print(output.Result{Value: e, Names: []string{"entry/" + e.ID}})
	}
	f := output.NewFields()
	f.Add("Id", e.ID)
	f.Add("At", e.At.Format(time.RFC3339))
	f.Add("Op", e.Op)
	f.Add("What", What(e))
	f.Add("By", Who(e))
	f.Add("Token", e.TokenID)
	f.Add("From", e.Address)
	f.Add("Request", e.RequestID)
	if err := f.Write(p.W); err != nil {
		return err
	}
	changes, err := changes(e)
	if err != nil {
		return err
	}
	return p.Section("Changes", changes)
}

// Change is a member that an entry changed, as JSON; "" where it was not there.
type Change struct{ Member, Before, After string }

// Changes lists the members that an entry changed.
func Changes(e api.AuditEntry) ([]Change, error) {
	var states [2]map[string]json.RawMessage
	for i, raw := range []json.RawMessage{e.Before, e.After} {
		if len(raw) == 0 {
			continue
		}
		if err := json.Unmarshal(raw, &states[i]); err != nil {
			return nil, fmt.Errorf("read the entry: %w", err)
		}
	}
	before, after := states[0], states[1]
	names := maps.Clone(before)
	if names == nil {
		names = map[string]json.RawMessage{}
	}
	maps.Copy(names, after)
	var out []Change
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !bytes.Equal(before[name], after[name]) {
			out = append(out, Change{name, string(before[name]), string(after[name])})
		}
	}
	return out, nil
}

// changes is the table of what an entry changed.
func changes(e api.AuditEntry) (*output.Table, error) {
	all, err := Changes(e)
	if err != nil {
		return nil, err
	}
	t := output.NewTable("MEMBER", "BEFORE", "AFTER")
	for _, c := range all {
		t.Row(c.Member, c.Before, c.After)
	}
	return t, nil
}
