package tree

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// The kinds of nodes.
const (
	KindProject    = "project"
	KindCollection = "collection"
	KindIndex      = "index"
	KindSearch     = "search"
	KindAction     = "action"
	KindJob        = "job"
	KindAsset      = "asset"
	KindProfile    = "profile"
)

// Node is a thing of a tree, with what belongs to it.
type Node struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Status  string `json:"status,omitempty"` // in a word, where it has one
	Message string `json:"message,omitempty"`
	Items   []Node `json:"items,omitempty"`

	Tone output.Tone `json:"-"` // of Status
}

// Of asks what a project is made of, as far as the caller may see it. status is that of the project.
func Of(ctx context.Context, c *client.Client, namespace string, status *api.ProjectStatus) (Node, error) {
	root := Node{Kind: KindProject, Name: namespace, Status: string(status.Phase), Message: fmt.Sprintf("generation %d", status.ObservedGeneration)}
	ready := status.Condition("Ready")
	root.Tone = output.ToneOfCondition("Ready", ready.Status)
	if ready.Status != "True" {
		root.Message += ", " + ready.Message
	}
	for _, part := range []func(context.Context, *client.Client, string) ([]Node, error){collections, actions, jobs, assets, profiles} {
		nodes, err := part(ctx, c, namespace)
		if client.IsStatus(err, http.StatusForbidden) || client.IsStatus(err, http.StatusNotFound) || client.IsStatus(err, http.StatusUnauthorized) {
			continue // it is not for the caller, or not served now
		}
		if err != nil {
			return Node{}, err
		}
		root.Items = append(root.Items, nodes...)
	}
	return root, nil
}

// Walk calls fn with each node, those that belong to one behind it, and with the branch to it, which is drawn before it.
func (n Node) Walk(fn func(branch string, n Node)) { n.walk(fn, "", "") }

func (n Node) walk(fn func(branch string, n Node), first, rest string) {
	fn(first, n)
	for i, item := range n.Items {
		branch, below := "├── ", "│   "
		if i == len(n.Items)-1 {
			branch, below = "└── ", "    "
		}
		item.walk(fn, rest+branch, rest+below)
	}
}

// Write draws the tree, a line for each node.
func (n Node) Write(w io.Writer, style output.Style) (err error) {
	n.Walk(func(branch string, n Node) {
		line := branch + n.Kind + "/" + output.Escape(n.Name)
		if n.Status != "" {
			painted := style.Toned(n.Status, n.Tone)
			text := output.Escape(painted.Text)
			if painted.Paint != nil {
				text = painted.Paint(text)
			}
			line += "  " + text
		}
		if n.Message != "" {
			line += "  " + output.Escape(n.Message)
		}
		if err == nil {
			_, err = io.WriteString(w, line+"\n")
		}
	})
	return err
}

func collections(ctx context.Context, c *client.Client, namespace string) (nodes []Node, err error) {
	list, err := c.ListCollections(ctx, namespace)
	if err != nil {
		return nil, err
	}
	for _, col := range list.Items {
		n := Node{Kind: KindCollection, Name: col.Name, Message: fmt.Sprintf("%d fields", len(col.Fields))}
		for _, index := range col.Indexes {
			n.Items = append(n.Items, Node{Kind: KindIndex, Name: index.Name, Status: index.State, Message: index.Message, Tone: output.ToneOf(index.State)})
		}
		for _, search := range col.Search {
			message := search.Mode
			if of := slices.Concat(search.Fields, search.Sources); len(of) > 0 {
				message += " of " + strings.Join(of, ", ")
			}
			n.Items = append(n.Items, Node{Kind: KindSearch, Name: search.Name, Message: message})
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

func actions(ctx context.Context, c *client.Client, namespace string) (nodes []Node, err error) {
	list, err := c.ListActions(ctx, namespace)
	if err != nil {
		return nil, err
	}
	for _, a := range list.Items {
		nodes = append(nodes, Node{Kind: KindAction, Name: a.Name})
	}
	return nodes, nil
}

func jobs(ctx context.Context, c *client.Client, namespace string) (nodes []Node, err error) {
	list, err := c.ListJobs(ctx, namespace)
	if err != nil {
		return nil, err
	}
	for _, j := range list.Items {
		n := Node{Kind: KindJob, Name: j.Name, Message: j.Cron}
		if j.LastRun != nil {
			n.Status, n.Tone = j.LastRun.Status, output.ToneOf(j.LastRun.Status)
		}
		if j.Suspended {
			n.Status, n.Tone = "suspended", output.ToneWarn
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

func assets(ctx context.Context, c *client.Client, namespace string) (nodes []Node, err error) {
	list, err := c.ListAssets(ctx, namespace)
	if err != nil {
		return nil, err
	}
	for _, a := range list.Items {
		nodes = append(nodes, Node{Kind: KindAsset, Name: a.Name, Message: a.Path})
	}
	return nodes, nil
}

func profiles(ctx context.Context, c *client.Client, namespace string) (nodes []Node, err error) {
	list, err := c.SnapshotProfiles(ctx, namespace)
	if err != nil {
		return nil, err
	}
	for _, p := range list.Items {
		if p.Own { // which every project has
			continue
		}
		n := Node{Kind: KindProfile, Name: p.Name, Message: p.Schedule}
		if !p.Enabled {
			n.Status, n.Tone = "not enabled", output.ToneNone
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}
