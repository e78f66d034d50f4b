package command

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// mostOffered is how many records the tab key offers: the latest, of which more are no help.
const mostOffered = 30

// CompleteRecords completes a namespace, a collection of it, and a record of that.
func (st *State) CompleteRecords() CompleteFunc {
	return st.CompleteBehindPlace(st.CompleteAt(1, recordIDs))
}

// CompleteFilesOf completes a namespace, a collection of it, a record of that, and a field of it that holds files.
func (st *State) CompleteFilesOf() CompleteFunc {
	fields := st.CompleteAt(2, func(ctx context.Context, c *client.Client, namespace string, rest []string, _ string) []string {
		return fieldLines(ctx, c, namespace, rest[0], func(f api.FieldDescription) bool { return strings.HasPrefix(f.Type, "file") })
	})
	return oneOf(fields, st.CompleteRecords())
}

// CompleteFieldsBehind completes a namespace, a collection of it, and fields of that, with commas between them.
func (st *State) CompleteFieldsBehind() CompleteFunc {
	return st.CompleteBehindPlace(lastOf(st.CompleteAt(1, func(ctx context.Context, c *client.Client, namespace string, rest []string, _ string) []string {
		return fieldPaths(ctx, c, namespace, rest[0])
	})))
}

// CompleteBehindPlace completes a namespace and a collection of it, and then what behind offers.
func (st *State) CompleteBehindPlace(behind CompleteFunc) CompleteFunc {
	return oneOf(behind, st.CompletePlace(true))
}

// CompleteSearches completes a search of a command's collection, in a flag.
func (st *State) CompleteSearches(want int) CompleteFunc {
	return st.completeOf(want, func(ctx context.Context, c *client.Client, namespace, collection string) []string {
		col, err := c.DescribeCollection(ctx, namespace, collection)
		if err != nil {
			return nil
		}
		var out []string
		for _, s := range col.Search {
			out = append(out, s.Name+"\t"+s.Mode)
		}
		return out
	})
}

// CompleteTokens completes the name of a token.
func (st *State) CompleteTokens(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return st.offerOne(cmd, args, func(ctx context.Context, c *client.Client) []string {
		return lines(ctx, c.Tokens(), func(t api.Token) string { return t.Name + "\t" + strings.Join(t.Scopes, ", ") })
	})
}

// CompleteDirs completes a directory, as many as there are arguments.
func CompleteDirs(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// CompleteDir completes one directory.
func CompleteDir(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// oneOf completes by the first of two that has something, behind the first argument; as the second one before it.
func oneOf(first, second CompleteFunc) CompleteFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			if out, directive := first(cmd, args, prefix); len(out) > 0 {
				return out, directive
			}
		}
		return second(cmd, args, prefix)
	}
}

// CompleteAt completes the argument behind a namespace, which may be known without one, and want more.
func (st *State) CompleteAt(want int, offer func(ctx context.Context, c *client.Client, namespace string, rest []string, prefix string) []string) CompleteFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return st.Offer(cmd, func(ctx context.Context, c *client.Client) []string {
			namespace, err := st.Namespace()
			switch {
			case err != nil:
				return nil
			case len(args) == want+1:
				return offer(ctx, c, args[0], args[1:], prefix)
			case len(args) == want && namespace != "":
				return offer(ctx, c, namespace, args, prefix)
			}
			return nil
		})
	}
}

// beginsID is how the beginning of an id looks.
var beginsID = regexp.MustCompile(`^[0-9a-f]{1,24}$`)

// idLength is how many digits an id has.
const idLength = 24

// recordIDs gives the ids of the latest records that begin with prefix, each with a text by which people know it.
func recordIDs(ctx context.Context, c *client.Client, namespace string, rest []string, prefix string) []string {
	q := client.Query{Sort: "-id", Limit: mostOffered}
	if prefix != "" {
		if !beginsID.MatchString(prefix) {
			return nil
		}
		left := idLength - len(prefix)
		filter, err := json.Marshal(map[string]any{"id": map[string]any{"$gte": prefix + strings.Repeat("0", left), "$lte": prefix + strings.Repeat("f", left)}})
		if err != nil {
			return nil
		}
		q.Filter = string(filter)
	}
	list, err := c.ListRecords(ctx, namespace, rest[0], q)
	return namesOf(list, err, recordLine)
}

// longestLabel is how much of a text tells one record from others.
const longestLabel = 40

// recordLine is the id of a record, and the text of a field that names it.
func recordLine(record api.Record) string {
	var members map[string]any
	if err := json.Unmarshal(record, &members); err != nil {
		return ""
	}
	id, _ := members["id"].(string) // "" is left out
	for _, name := range []string{"title", "name", "label", "slug", "username", "email"} {
		if text, ok := members[name].(string); ok && text != "" {
			runes := []rune(text)
			return id + "\t" + string(runes[:min(len(runes), longestLabel)])
		}
	}
	return id
}
