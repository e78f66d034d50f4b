package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/doc"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/runs"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// NewCmd makes svcctl search.
func NewCmd(st *command.State) *cobra.Command {
	return command.Group("search", "Look for records, and see to search indexes", doc.NewQuery(st), newStatus(st), newRegenerate(st), newEval(st, nil))
}

func newStatus(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:   "status [NAMESPACE]",
		Short: "Show how the search indexes of a project stand",
		Long: `Show how the search indexes of a project stand, on the instance that answers, and how many records wait to be indexed. The state is

  ready       the index is of the config
  building    there is none yet: searches wait a moment, and are told to come again
  rebuilding  a new one is being made, while the one before answers
  stale       the config has changed and autoRegenerate is off, so the index before answers: svcctl search regenerate makes it anew

FAILED are the records for which the eval of the search fails, or whose text its embedding group refuses: it does not find them until they are
written, or it is made anew. Lines below the table tell the last errors: why PENDING or FAILED are not 0.`,
		Example: `  svcctl search status blog
  svcctl search status blog -o json`,
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: st.AtPlace(0, func(ctx context.Context, namespace string, _ []string) error {
			c, err := st.Client()
			if err != nil {
				return err
			}
			w, err := c.SearchWorker(ctx, namespace)
			if err != nil {
				return err
			}
			return show(st, w)
		}),
	}
}

func show(st *command.State, w *api.SearchWorker) error {
	p := st.Printer()
	t := output.NewTable("SEARCH", "MODE", "STATE", "RECORDS", "PENDING", "FAILED", "SIZE", "+MEMORY", "+GROUP", "+LAST ERROR")
	result := output.Result{Value: w, Table: t}
	for _, c := range w.Collections {
		pending := c.Pending + c.InFlight // of all searches; who waits for a vector does so for one alone
		for _, s := range c.Searches {
			pending -= s.Waiting
		}
		for _, s := range c.Searches {
			state := s.State
			if s.Total > 0 && s.State != "ready" && s.State != "stale" {
				state = fmt.Sprintf("%s (%d of %d)", s.State, s.Done, max(s.Done, s.Total))
			}
			t.Row(c.Collection+"/"+s.Name, s.Mode, p.Style.State(state), s.Records, pending+s.Waiting, s.Failed+s.Refused,
				output.Size(s.Bytes), output.Size(s.Memory), s.Group, cmp.Or(s.LastError, c.LastError))
			result.Names = append(result.Names, "search/"+c.Collection+"/"+s.Name)
		}
	}
	if len(result.Names) == 0 {
		st.Notef("no searches with an index")
	}
	st.FitTable(t)
	if err := p.Print(result); err != nil || st.Flags.Output != output.FormatTable {
		return err
	}
	for _, c := range w.Collections {
		tellErrors(st, c)
	}
	return nil
}

// tellErrors tells what keeps records from being found, which a table has no room for.
func tellErrors(st *command.State, c api.CollectionQueue) {
	told := ""
	for _, s := range c.Searches {
		if s.LastError != "" {
			st.Notef("%s/%s: %s", c.Collection, s.Name, s.LastError)
			told = s.LastError
		}
	}
	if told == "" && c.LastError != "" {
		st.Notef("%s: %s", c.Collection, c.LastError)
	}
}

type regenerateOptions struct {
	Namespace, Collection, Search string
	Wait                          bool
	Timeout                       time.Duration
}

func newRegenerate(st *command.State) *cobra.Command {
	opts := &regenerateOptions{}
	cmd := &cobra.Command{
		Use:   "regenerate [NAMESPACE] [COLLECTION [SEARCH]]",
		Short: "Make search indexes anew",
		Long: `Make the search indexes of a project anew from its records: all of them, those of a collection, or that of one search. The index before answers
until the new one is made. Other instances make theirs anew within a minute or so.

With --wait the command shows on stderr how far it is and ends with the run: with exit code 1 if that did not succeed, 8 when it takes longer
than --timeout. The run goes on when the command is interrupted.`,
		Example: `  svcctl search regenerate blog
  svcctl search regenerate blog articles main --wait`,
		Args:              command.Args(cobra.MaximumNArgs(3)),
		ValidArgsFunction: st.CompletePlace(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			known, err := st.Namespace()
			if err != nil {
				return err
			}
			if known == "" && len(args) > 0 {
				known, args = args[0], args[1:]
			}
			if known == "" || len(args) > 2 {
				return command.Usagef("want NAMESPACE, and COLLECTION and SEARCH at most")
			}
			opts.Namespace = known
			if len(args) > 0 {
				opts.Collection = args[0]
			}
			if len(args) > 1 {
				opts.Search = args[1]
			}
			return runRegenerate(cmd.Context(), st, opts)
		},
	}
	cmd.Flags().BoolVar(&opts.Wait, "wait", false, "wait until the indexes are made")
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", 0, "longest wait, 0 for no limit")
	return cmd
}

func runRegenerate(ctx context.Context, st *command.State, opts *regenerateOptions) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	bounded, cancel := command.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	hint := "svcctl search status " + opts.Namespace + " shows how far it is"
	run, err := c.RegenerateSearch(bounded, opts.Namespace, opts.Collection, opts.Search)
	switch {
	case err != nil:
		return runs.NotStarted(bounded, err, "svcctl search status "+opts.Namespace)
	case !opts.Wait:
		return runs.Show(st, run, *run)
	}
	if err := follow(bounded, st, c, opts, run.ID); errors.Is(err, context.DeadlineExceeded) {
		return runs.GoesOn(run.ID, hint)
	} else if err != nil {
		return err
	}
	if run, err = c.Regeneration(ctx, opts.Namespace, run.ID); err != nil {
		return err
	}
	if err := runs.Show(st, run, *run); err != nil || run.Status == api.RunSucceeded {
		return err
	}
	return runs.Failed(run, hint)
}

func follow(ctx context.Context, st *command.State, c *client.Client, opts *regenerateOptions, id string) error {
	return c.FollowRegeneration(ctx, opts.Namespace, id, 0, func(e api.RunEvent) error {
		runs.Note(st, e)
		return nil
	})
}
