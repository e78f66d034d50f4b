package doc

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

// NewQuery makes the command that looks for records, which is list with words: svcctl search query.
func NewQuery(st *command.State) *cobra.Command {
	opts := &listOptions{st: st}
	cmd := &cobra.Command{
		Use:   "query [NAMESPACE] COLLECTION WORDS",
		Short: "Look for records",
		Long: `Look for records, the best first: words, "phrases" in quotation marks, word* for what begins so, +word for what has to be there and -word for
what may not. --search says which of the collection's searches looks for them (default: the first); svcctl collection describe lists
them. Of a search of mode regex, WORDS is a regular expression, and the records come in the order of --sort.

-o json gives the list as the service does, with _score, and what --highlight and --explain ask for: texts in which what was found is
marked, and how the score came to be.`,
		Example: `  svcctl search query blog articles "growing tomatoes" --limit 5
  svcctl search query blog articles '+garden -winter' --filter '{"status": "published"}' --select title
  svcctl search query blog articles tomato --search main --explain -o json`,
		Args:              command.PlaceArgs(2),
		ValidArgsFunction: st.CompletePlace(true),
		RunE: st.AtPlace(2, func(ctx context.Context, namespace string, rest []string) error {
			opts.place, opts.Query.Q = place{namespace, rest[0]}, rest[1]
			if err := opts.check(); err != nil {
				return err
			}
			if opts.Query.Q == "" {
				return command.Usagef("WORDS: want what to look for")
			}
			return runList(ctx, opts)
		}),
	}
	queryFlags(st, cmd, &opts.Query)
	cmd.Flags().StringVar(&opts.Query.QName, "search", "", "name of the search (default: the first of the collection)")
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{"search": st.CompleteSearches(2)})
	cmd.Flags().BoolVar(&opts.Query.Highlight, "highlight", false, "with texts in which what was found is marked")
	cmd.Flags().BoolVar(&opts.Query.Explain, "explain", false, "with how each score came to be")
	cmd.Flags().IntVar(&opts.Query.Limit, "limit", 0, "records of a page (default: the collection's)")
	cmd.Flags().IntVar(&opts.Query.Offset, "offset", 0, "records to pass over")
	cmd.Flags().BoolVar(&opts.Query.Count, "count", false, "also say how many there are in all")
	return cmd
}
