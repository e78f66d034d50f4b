package tui

import (
	"context"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/tree"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
)

// projectTree shows what a project is made of, and how each of it is. It leads to the screens that have more.
type projectTree struct {
	table

	namespace string
	nodes     map[string]treeNode // by the ids of rows
}

// treeNode is a thing of the tree.
type treeNode struct {
	tree.Node

	collection string // that it is, or belongs to; "": none
}

func newProjectTree(h *frame.Host, namespace string) frame.Screen {
	p := &projectTree{table: table{host: h}, namespace: namespace}
	p.value = func(id string) any {
		if n, ok := p.nodes[id]; ok {
			return n.Node
		}
		return nil
	}
	return p
}

func (p *projectTree) Title() string { return "Tree" }

func (p *projectTree) Every() time.Duration { return 5 * time.Second }

func (p *projectTree) Read(ctx context.Context) (tea.Msg, error) {
	read, err := readProject(ctx, p.host, p.namespace)
	if err != nil {
		return nil, err
	}
	return tree.Of(ctx, p.host.Client, p.namespace, read.status)
}

func (p *projectTree) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tree.Node:
		p.take(msg)
	case tea.KeyPressMsg:
		switch pressed := msg.String(); {
		case p.key(pressed) || p.of != "":
		case pressed == "tab":
			return p.host.Back()
		case pressed == "enter":
			return p.enter()
		}
	}
	return nil
}

// take makes rows of the tree.
func (p *projectTree) take(root tree.Node) {
	p.nodes = map[string]treeNode{}
	s := widget.Section{Columns: []widget.Column{{Name: "WHAT", Least: 16}, {Name: "STATUS", Rank: 1}, {Name: "ABOUT", Rank: 2, Least: 12}}}
	collection := ""
	root.Walk(func(branch string, n tree.Node) {
		switch n.Kind {
		case tree.KindCollection:
			collection = n.Name
		case tree.KindIndex, tree.KindSearch:
		default:
			collection = ""
		}
		id := n.Kind + "/" + n.Name
		if n.Kind == tree.KindIndex || n.Kind == tree.KindSearch {
			id = collection + "/" + id
		}
		p.nodes[id] = treeNode{n, collection}
		s.Rows = append(s.Rows, widget.Row{ID: id, Cells: []widget.Cell{
			widget.Text(branch + n.Kind + "/" + n.Name), {Text: n.Status, Tone: n.Tone}, widget.Text(n.Message),
		}})
	})
	p.list.Set(s)
}

// enter shows what there is about the row with the cursor: the screen of its kind, or else a page.
func (p *projectTree) enter() tea.Cmd {
	n := p.nodes[p.list.Selected()]
	place := frame.Place{Namespace: p.namespace}
	switch n.Kind {
	case tree.KindCollection:
		place.Collection = n.Name
		return p.host.Open("documents", place)
	case tree.KindSearch:
		return p.host.Open("search", place)
	case tree.KindJob:
		return p.host.Open("jobs", place)
	case tree.KindProfile:
		return p.host.Open("snapshots", place)
	}
	p.open()
	return nil
}

// Collection implements frame.CollectionChooser.
func (p *projectTree) Collection() string { return p.nodes[p.list.Selected()].collection }

func (p *projectTree) Keys() []key.Binding {
	if p.of != "" {
		return p.pageKeys()
	}
	return []key.Binding{frame.Binding("enter", "open"), frame.Binding("tab", "status"), frame.Binding("d", "describe"), keyYAML()}
}

func (p *projectTree) View(width, height int) string { return p.view(width, height, p.doc) }

// doc is the page about a row.
func (p *projectTree) doc(id string) (d widget.Doc, ok bool) {
	n, ok := p.nodes[id]
	if !ok {
		return d, false
	}
	d.Heading(n.Kind + " " + n.Name)
	if n.Kind != tree.KindCollection {
		d.Field("Of", n.collection)
	}
	d.State("Status", n.Status, n.Tone)
	d.Field("About", n.Message)
	for _, item := range n.Items {
		d.State(item.Kind, item.Name+"  "+item.Status, item.Tone)
	}
	return d, true
}
