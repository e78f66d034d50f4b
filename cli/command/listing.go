package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/client"
)

// watchPause is how long --watch waits before it looks again.
const watchPause = 2 * time.Second

// AllFlag adds -A to a verb that lists what a project has: it lists that of all projects, with their namespaces.
func (st *State) AllFlag(cmd *cobra.Command) *cobra.Command {
	all, run := false, cmd.RunE
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "of all projects that you may see")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !all {
			return run(cmd, args)
		}
		if len(args) > 0 || st.GivenNamespace() != "" {
			return Usagef("-A is for all projects: give no namespace with it")
		}
		known := st.Flags.Namespace
		defer func() { st.Flags.Namespace = known }()
		r, err := st.ofAll(cmd.Context(), func(namespace string) error {
			st.Flags.Namespace = namespace // and no argument, which might be taken for something in the namespace of the context
			return run(cmd, nil)
		})
		if err != nil {
			return err
		}
		return st.showListing(r)
	}
	return cmd
}

// WatchFlag adds --watch to a verb that lists things: it goes on, with what has changed. It comes behind AllFlag.
func (st *State) WatchFlag(cmd *cobra.Command) *cobra.Command {
	watch, run := false, cmd.RunE
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on with what changes")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !watch {
			return run(cmd, args)
		}
		var last *output.Listing
		for {
			r, err := st.collected(func() error { return run(cmd, args) })
			if err != nil {
				return err
			}
			next, err := output.NewListing(r)
			if err != nil {
				return err
			}
			if err := next.Show(st.Printer(), last); err != nil {
				return err
			}
			last = next
			timer := time.NewTimer(watchPause)
			select {
			case <-cmd.Context().Done():
				timer.Stop()
				return context.Cause(cmd.Context())
			case <-timer.C:
			}
		}
	}
	return cmd
}

// showListing prints what was collected. In a watch around it, it is collected again.
func (st *State) showListing(r output.Result) error {
	st.FitTable(r.Table)
	return st.Printer().Print(r)
}

// collected has a verb give what it would print, whole and without its notes.
func (st *State) collected(run func() error) (output.Result, error) {
	var got *output.Result
	before, quiet, width := st.collect, st.Flags.Quiet, st.OutWidth
	st.collect, st.Flags.Quiet, st.OutWidth = func(r output.Result) error { got = &r; return nil }, true, 0
	defer func() { st.collect, st.Flags.Quiet, st.OutWidth = before, quiet, width }()
	if err := run(); err != nil {
		return output.Result{}, err
	}
	if got == nil {
		return output.Result{}, errors.New("the command has listed nothing")
	}
	return *got, nil
}

// ofAll joins what a verb lists of each project. One of which the caller may not see that is told, and left out.
func (st *State) ofAll(ctx context.Context, list func(namespace string) error) (output.Result, error) {
	c, err := st.Client()
	if err != nil {
		return output.Result{}, err
	}
	var namespaces []string
	for p, err := range c.Projects().All(ctx, client.Query{}) {
		if err != nil {
			return output.Result{}, err
		}
		if p.Enabled {
			namespaces = append(namespaces, p.Namespace)
		}
	}
	slices.Sort(namespaces)
	items := []json.RawMessage{}
	all := output.Result{Table: output.NewTable("NAMESPACE")}
	for _, namespace := range namespaces {
		r, err := st.collected(func() error { return list(namespace) })
		if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status < 500 {
			if st.collect == nil { // a watch would tell it again and again
				st.Warnf("%s: %v", namespace, refused)
			}
			continue
		}
		if err != nil {
			return output.Result{}, err
		}
		one, err := output.NewListing(r)
		if err != nil {
			return output.Result{}, fmt.Errorf("%s: %w", namespace, err)
		}
		items = append(items, one.ItemsOf(namespace)...)
		all.Names = append(all.Names, r.Names...)
		all.Table.Join(namespace, r.Table)
	}
	all.Value = map[string]any{"items": items}
	if len(items) == 0 {
		st.Notef("none in %d projects", len(namespaces))
	}
	return all, nil
}
