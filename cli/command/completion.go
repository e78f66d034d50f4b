package command

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// completionTimeout bounds what a press of the tab key waits for, in all.
const completionTimeout = time.Second

// CompleteFunc is cobra's function for the completion of arguments.
type CompleteFunc = func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective)

// Offer gives what the tab key offers of what the service says. It can't say why there is nothing.
func (st *State) Offer(cmd *cobra.Command, ask func(ctx context.Context, c *client.Client) []string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	if st.Prepare(cmd) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	st.completing = true
	c, err := st.Client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return typeable(ask(ctx, c)), cobra.ShellCompDirectiveNoFileComp
}

// offerOne is Offer for the only argument of a command.
func (st *State) offerOne(cmd *cobra.Command, args []string, ask func(ctx context.Context, c *client.Client) []string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return st.Offer(cmd, ask)
}

// typeable leaves out the names that a service should not have: those with characters that the shell shows as they are, which would drive the terminal, or would
// take for its own once they stand in the line. Descriptions are shown escaped.
func typeable(lines []string) []string {
	var out []string
	for _, line := range lines {
		name, about, described := strings.Cut(line, "\t")
		if name == "" || output.Escape(name) != name || strings.ContainsAny(name, "`$;&|<>\\\"'") {
			continue
		}
		if described {
			name += "\t" + output.Escape(about)
		}
		out = append(out, name)
	}
	return out
}

// CompletePlace completes a namespace and then, when collections is true, a collection of it.
func (st *State) CompletePlace(collections bool) CompleteFunc {
	if collections {
		return st.completeIn(1, collectionNames)
	}
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return st.offerOne(cmd, args, namespaces)
	}
}

// CompleteActions completes a namespace and then an action of it that the caller may call.
func (st *State) CompleteActions() CompleteFunc { return st.completeIn(1, actionNames) }

// CompleteJobs completes a namespace and then a job of it.
func (st *State) CompleteJobs() CompleteFunc { return st.completeIn(1, jobNames) }

// CompleteAssets completes a namespace and then an asset of it.
func (st *State) CompleteAssets() CompleteFunc { return st.completeIn(1, assetNames) }

// completeIn completes a namespace, and behind it as many as want of the names in it. Where one is set, it completes such a name first, and a namespace where
// none begins so.
func (st *State) completeIn(want int, names func(ctx context.Context, c *client.Client, namespace string) []string) CompleteFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return st.Offer(cmd, func(ctx context.Context, c *client.Client) []string {
			namespace, err := st.Namespace()
			mayBeNamespace := len(args) == 0 // what is typed
			if len(args) > 0 && (namespace == "" || !isRunOrSnapshot(args[0])) {
				namespace, args = args[0], args[1:]
			}
			switch {
			case err != nil, len(args) >= want:
				return nil
			case namespace == "":
				return namespaces(ctx, c)
			}
			out := names(ctx, c, namespace)
			if mayBeNamespace && prefix != "" && !slices.ContainsFunc(out, func(name string) bool { return strings.HasPrefix(name, prefix) }) {
				return namespaces(ctx, c)
			}
			return out
		})
	}
}

// CompleteNamespaces completes a namespace: the value of -n, and each argument of a command whose arguments are namespaces.
func (st *State) CompleteNamespaces(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return st.Offer(cmd, namespaces)
}

// CompleteContexts completes the name of a context.
func (st *State) CompleteContexts(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 || st.Prepare(cmd) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	file, err := st.Settings()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return file.Names(), cobra.ShellCompDirectiveNoFileComp
}

func namespaces(ctx context.Context, c *client.Client) []string {
	return lines(ctx, c.Projects(), func(p api.Project) string { return p.Namespace })
}

func collectionNames(ctx context.Context, c *client.Client, namespace string) []string {
	list, err := c.ListCollections(ctx, namespace)
	return namesOf(list, err, func(col api.CollectionDescription) string { return col.Name })
}

func actionNames(ctx context.Context, c *client.Client, namespace string) []string {
	list, err := c.ListActions(ctx, namespace)
	return namesOf(list, err, func(a api.ActionDescription) string { return a.Name })
}

func jobNames(ctx context.Context, c *client.Client, namespace string) []string {
	list, err := c.ListJobs(ctx, namespace)
	return namesOf(list, err, func(j api.Job) string { return j.Name })
}

func assetNames(ctx context.Context, c *client.Client, namespace string) []string {
	list, err := c.ListAssets(ctx, namespace)
	return namesOf(list, err, func(a api.Asset) string { return a.Name })
}

func namesOf[T any](list *api.List[T], err error, name func(T) string) []string {
	if err != nil {
		return nil
	}
	names := make([]string, len(list.Items))
	for i, item := range list.Items {
		names[i] = name(item)
	}
	return names
}

// lines gives what is offered of each record of a system model, of as many as can be had.
func lines[T, W any](ctx context.Context, model client.Model[T, W], line func(T) string) []string {
	var out []string
	for item, err := range model.All(ctx, client.Query{}) {
		if err != nil {
			break
		}
		out = append(out, line(item))
	}
	return out
}

// CompleteOrgs completes the slug of an organization.
func (st *State) CompleteOrgs(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return st.offerOne(cmd, args, func(ctx context.Context, c *client.Client) []string {
		return lines(ctx, c.Orgs(), func(o api.Org) string { return o.Slug + "\t" + o.Name })
	})
}

// CompleteTeams completes the slug of a team.
func (st *State) CompleteTeams(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return st.offerOne(cmd, args, func(ctx context.Context, c *client.Client) []string {
		return lines(ctx, c.Teams(), func(t api.Team) string { return t.Slug + "\t" + t.Name })
	})
}

// CompleteUsers completes a username.
func (st *State) CompleteUsers(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return st.offerOne(cmd, args, func(ctx context.Context, c *client.Client) []string {
		return lines(ctx, c.Users(), func(u api.User) string { return u.Username + "\t" + u.Name })
	})
}

// CompleteScopes completes a scope: with those that the user can give now, or, where the service doesn't say, with those
// that do not depend on its projects.
func (st *State) CompleteScopes(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return st.Offer(cmd, func(ctx context.Context, c *client.Client) []string {
		scopes, err := c.TokenScopes(ctx)
		if err != nil {
			return api.Scopes()
		}
		return scopes
	})
}

// CompleteFields completes the path of a field, in a flag of a command with want arguments behind the namespace, of which
// the first is a collection.
func (st *State) CompleteFields(want int) CompleteFunc { return st.completeOf(want, fieldPaths) }

// completeOf completes what offer gives of the collection that the arguments name.
func (st *State) completeOf(want int, offer func(ctx context.Context, c *client.Client, namespace, collection string) []string) CompleteFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return st.Offer(cmd, func(ctx context.Context, c *client.Client) []string {
			namespace, err := st.Namespace()
			if err != nil {
				return nil
			}
			if namespace == "" || len(args) > want {
				if len(args) < 2 {
					return nil
				}
				namespace, args = args[0], args[1:]
			}
			if len(args) == 0 {
				return nil
			}
			return offer(ctx, c, namespace, args[0])
		})
	}
}

// CompleteFieldList completes the last of the fields that commas separate in a flag; each may have a - before it.
func (st *State) CompleteFieldList(want int) CompleteFunc { return lastOf(st.CompleteFields(want)) }

// CompleteRelations is CompleteFieldList of the fields that refer to other records.
func (st *State) CompleteRelations(want int) CompleteFunc {
	return lastOf(st.completeOf(want, func(ctx context.Context, c *client.Client, namespace, collection string) []string {
		return fieldLines(ctx, c, namespace, collection, func(f api.FieldDescription) bool { return f.Meta["foreign"] != nil })
	}))
}

// lastOf makes the completion of a field one of a list of them.
func lastOf(fields CompleteFunc) CompleteFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		before := prefix[:strings.LastIndexByte(prefix, ',')+1]
		if strings.HasPrefix(prefix[len(before):], "-") {
			before += "-"
		}
		out, directive := fields(cmd, args, prefix[len(before):])
		for i := range out {
			out[i] = before + out[i]
		}
		return out, directive | cobra.ShellCompDirectiveNoSpace
	}
}

// CompleteLanguages completes a language of the records of a command's collection.
func (st *State) CompleteLanguages(want int) CompleteFunc {
	return st.completeOf(want, func(ctx context.Context, c *client.Client, namespace, collection string) []string {
		col, err := c.DescribeCollection(ctx, namespace, collection)
		if err != nil {
			return nil
		}
		return col.Languages
	})
}

// fieldPaths gives the path of each field of a collection, with its type.
func fieldPaths(ctx context.Context, c *client.Client, namespace, collection string) []string {
	return fieldLines(ctx, c, namespace, collection, func(api.FieldDescription) bool { return true })
}

// fieldLines is fieldPaths of those that keep says.
func fieldLines(ctx context.Context, c *client.Client, namespace, collection string, keep func(api.FieldDescription) bool) []string {
	col, err := c.DescribeCollection(ctx, namespace, collection)
	if err != nil {
		return nil
	}
	var out []string
	var walk func(prefix string, fields []api.FieldDescription)
	walk = func(prefix string, fields []api.FieldDescription) {
		for _, f := range fields {
			if keep(f) {
				out = append(out, prefix+f.Name+"\t"+f.Type)
			}
			walk(prefix+f.Name+".", f.SubFields)
		}
	}
	walk("", col.Fields)
	return out
}

// CompleteFlag completes the last of the values that commas separate in a flag.
func CompleteFlag(complete CompleteFunc) CompleteFunc {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		before := prefix[:strings.LastIndexByte(prefix, ',')+1]
		out, directive := complete(cmd, nil, prefix[len(before):])
		for i := range out {
			out[i] = before + out[i]
		}
		return out, directive
	}
}

// CompleteFlags says how the values of a command's flags are completed. Flags that are not there are a mistake of the
// program, which the test of the tree finds.
func CompleteFlags(cmd *cobra.Command, flags map[string]CompleteFunc) {
	for flag, complete := range flags {
		if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
			panic(err)
		}
	}
}
