package command

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/client"
)

// FormatsAnnotation names the annotation of a command that lists its own -o formats, separated by spaces.
const FormatsAnnotation = "formats"

// completionTimeout bounds what a press of the tab key waits for, in all.
const completionTimeout = time.Second

// CompleteFunc is cobra's function for the completion of arguments.
type CompleteFunc = func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective)

// CompletePlace completes a namespace and then, when collections is true, a collection of it.
func (st *State) CompletePlace(collections bool) CompleteFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		if err := st.Prepare(cmd, strings.Fields(cmd.Annotations[FormatsAnnotation])...); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		namespace, err := st.Namespace()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		switch {
		case len(args) == 0 && namespace != "" && collections:
			return st.collections(ctx, namespace), cobra.ShellCompDirectiveNoFileComp
		case len(args) == 0:
			return st.namespaces(ctx), cobra.ShellCompDirectiveNoFileComp
		case len(args) == 1 && collections:
			return st.collections(ctx, args[0]), cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteNamespaces completes the value of -n.
func (st *State) CompleteNamespaces(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	if err := st.Prepare(cmd, strings.Fields(cmd.Annotations[FormatsAnnotation])...); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return st.namespaces(ctx), cobra.ShellCompDirectiveNoFileComp
}

// CompleteContexts completes the name of a context.
func (st *State) CompleteContexts(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 || st.Prepare(cmd, strings.Fields(cmd.Annotations[FormatsAnnotation])...) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	file, err := st.Settings()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return file.Names(), cobra.ShellCompDirectiveNoFileComp
}

// namespaces gives what it can get; a completion never complains.
func (st *State) namespaces(ctx context.Context) []string {
	c, err := st.Client()
	if err != nil {
		return nil
	}
	var names []string
	for p, err := range c.Projects().All(ctx, client.Query{}) {
		if err != nil {
			break
		}
		names = append(names, p.Namespace)
	}
	return names
}

func (st *State) collections(ctx context.Context, namespace string) []string {
	c, err := st.Client()
	if err != nil {
		return nil
	}
	list, err := c.ListCollections(ctx, namespace)
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(list.Items))
	for _, col := range list.Items {
		names = append(names, col.Name)
	}
	return names
}

// CompleteScopes completes a scope: with those that the user can give now, or, where the service doesn't say, with those
// that do not depend on its projects.
func (st *State) CompleteScopes(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	if err := st.Prepare(cmd, strings.Fields(cmd.Annotations[FormatsAnnotation])...); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, err := st.Client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	scopes, err := c.TokenScopes(ctx)
	if err != nil {
		scopes = access.Scopes()
	}
	return scopes, cobra.ShellCompDirectiveNoFileComp
}
