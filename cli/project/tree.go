package project

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/client"
)

func newTree(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:   "tree [NAMESPACE]",
		Short: "Show what a project is made of, and how it is",
		Long: `Show what a project is made of, as far as you may see it: its collections with their indexes and searches, its actions, jobs, assets
and snapshot profiles, and how each is. svcctl api-resources lists the commands that have more of each.`,
		Example: `  svcctl project tree blog
  svcctl project tree blog -o json`,
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: st.AtPlace(0, func(ctx context.Context, namespace string, _ []string) error {
			return runTree(ctx, st, namespace)
		}),
	}
}

// node is a thing of a tree, with what belongs to it.
type node struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Status  string `json:"status,omitempty"` // in a word, where it has one
	Message string `json:"message,omitempty"`
	Items   []node `json:"items,omitempty"`

	tone output.Tone
}

func runTree(ctx context.Context, st *command.State, namespace string) error {
	c, p, err := find(ctx, st, namespace)
	if err != nil {
		return err
	}
	status, err := c.ProjectStatus(ctx, p.ID)
	if err != nil {
		return err
	}
	ready := condition(status.Conditions, "Ready")
	root := node{
		Kind: "project", Name: p.Namespace, Status: string(status.Phase), Message: fmt.Sprintf("generation %d", status.ObservedGeneration),
		tone: output.ToneOfCondition("Ready", ready.Status),
	}
	if ready.Status != "True" {
		root.Message += ", " + ready.Message
	}
	for _, part := range []func(context.Context, *client.Client, string) ([]node, error){
		treeCollections, treeActions, treeJobs, treeAssets, treeProfiles,
	} {
		nodes, err := part(ctx, c, p.Namespace)
		if client.IsStatus(err, http.StatusForbidden) || client.IsStatus(err, http.StatusNotFound) || client.IsStatus(err, http.StatusUnauthorized) {
			continue // it is not for the caller, or not served now
		}
		if err != nil {
			return err
		}
		root.Items = append(root.Items, nodes...)
	}
	printer := st.Printer()
	if printer.Structured() || printer.Format == output.FormatName {
		var names []string
		root.walk(func(n node) { names = append(names, n.Kind+"/"+n.Name) })
		return printer.Print(output.Result{Value: root, Names: names})
	}
	return root.write(printer.W, printer.Style, "", "")
}

func (n node) walk(fn func(node)) {
	fn(n)
	for _, item := range n.Items {
		item.walk(fn)
	}
}

// write draws the node behind first, and what belongs to it behind rest.
func (n node) write(w io.Writer, style output.Style, first, rest string) error {
	line := first + n.Kind + "/" + output.Escape(n.Name)
	if n.Status != "" {
		painted := style.Toned(n.Status, n.tone)
		text := output.Escape(painted.Text)
		if painted.Paint != nil {
			text = painted.Paint(text)
		}
		line += "  " + text
	}
	if n.Message != "" {
		line += "  " + output.Escape(n.Message)
	}
	if _, err := io.WriteString(w, line+"\n"); err != nil {
		return err
	}
	for i, item := range n.Items {
		branch, below := "├── ", "│   "
		if i == len(n.Items)-1 {
			branch, below = "└── ", "    "
		}
		if err := item.write(w, style, rest+branch, rest+below); err != nil {
			return err
		}
	}
	return nil
}

func treeCollections(ctx context.Context, c *client.Client, namespace string) (nodes []node, err error) {
	list, err := c.ListCollections(ctx, namespace)
	if err != nil {
		return nil, err
	}
	for _, col := range list.Items {
		n := node{Kind: "collection", Name: col.Name, Message: fmt.Sprintf("%d fields", len(col.Fields))}
		for _, index := range col.Indexes {
			n.Items = append(n.Items, node{Kind: "index", Name: index.Name, Status: index.State, Message: index.Message, tone: output.ToneOf(index.State)})
		}
		for _, search := range col.Search {
			message := search.Mode
			if of := slices.Concat(search.Fields, search.Sources); len(of) > 0 {
				message += " of " + strings.Join(of, ", ")
			}
			n.Items = append(n.Items, node{Kind: "search", Name: search.Name, Message: message})
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

func treeActions(ctx context.Context, c *client.Client, namespace string) (nodes []node, err error) {
	list, err := c.ListActions(ctx, namespace)
	if err != nil {
		return nil, err
	}
	for _, a := range list.Items {
		nodes = append(nodes, node{Kind: "action", Name: a.Name})
	}
	return nodes, nil
}

func treeJobs(ctx context.Context, c *client.Client, namespace string) (nodes []node, err error) {
	list, err := c.ListJobs(ctx, namespace)
	if err != nil {
		return nil, err
	}
	for _, j := range list.Items {
		n := node{Kind: "job", Name: j.Name, Message: j.Cron}
		if j.LastRun != nil {
			n.Status, n.tone = j.LastRun.Status, output.ToneOf(j.LastRun.Status)
		}
		if j.Suspended {
			n.Status, n.tone = "suspended", output.ToneWarn
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

func treeAssets(ctx context.Context, c *client.Client, namespace string) (nodes []node, err error) {
	list, err := c.ListAssets(ctx, namespace)
	if err != nil {
		return nil, err
	}
	for _, a := range list.Items {
		nodes = append(nodes, node{Kind: "asset", Name: a.Name, Message: a.Path})
	}
	return nodes, nil
}

func treeProfiles(ctx context.Context, c *client.Client, namespace string) (nodes []node, err error) {
	list, err := c.SnapshotProfiles(ctx, namespace)
	if err != nil {
		return nil, err
	}
	for _, p := range list.Items {
		if p.Own { // which every project has
			continue
		}
		n := node{Kind: "profile", Name: p.Name, Message: p.Schedule}
		if !p.Enabled {
			n.Status, n.tone = "not enabled", output.ToneNone
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}
