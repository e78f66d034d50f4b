package tui

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"golang.org/x/sync/errgroup"

	"github.com/svcctl/svc/cli/collection"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// collections lists those of a project that the user may read, with what they may do.
type collections struct {
	table

	namespace string
	reader    *collectionReader
	read      *collectionsRead // nil: not yet
}

func newCollections(h *frame.Host, of frame.Place) frame.Screen {
	c := &collections{table: table{host: h}, namespace: of.Namespace, reader: &collectionReader{client: h.Client, namespace: of.Namespace, now: h.Now}}
	c.value = func(id string) any {
		if one := c.read.of(id); one != nil {
			return one
		}
		return nil
	}
	return c
}

func (c *collections) Title() string { return "Collections" }

func (c *collections) Every() time.Duration { return 5 * time.Second }

// collectionsRead is what the service says of collections.
type collectionsRead struct {
	all    []api.CollectionDescription
	counts map[string]int64 // of records, where who asks may know them
}

func (r *collectionsRead) of(name string) *api.CollectionDescription {
	return first(r.all, func(c *api.CollectionDescription) bool { return c.Name == name })
}

// countsFor is how long the numbers of records are good for: the service counts them.
const countsFor = 15 * time.Second

// countsAtOnce is how many collections are counted at the same time.
const countsAtOnce = 4

// collectionReader asks for collections. It is used by one read at a time.
type collectionReader struct {
	client    *client.Client
	namespace string
	now       func() time.Time

	counts map[string]int64
	at     time.Time // when they were counted
}

func (r *collectionReader) read(ctx context.Context) (*collectionsRead, error) {
	list, err := r.client.ListCollections(ctx, r.namespace)
	if err != nil {
		return nil, err
	}
	if r.counts == nil || r.now().Sub(r.at) >= countsFor {
		if err := r.count(ctx, list.Items); err != nil {
			return nil, err
		}
	}
	return &collectionsRead{all: list.Items, counts: r.counts}, nil
}

// count counts the records of collections in which the user may do so. What is refused has no number.
func (r *collectionReader) count(ctx context.Context, all []api.CollectionDescription) error {
	var mu sync.Mutex
	counts := map[string]int64{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(countsAtOnce)
	for _, one := range all {
		if !one.YourPermissions["get"].Count {
			continue
		}
		group.Go(func() error {
			n, err := r.client.CountRecords(ctx, r.namespace, one.Name, "")
			if _, refused := errors.AsType[*client.Error](err); refused {
				return nil
			}
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			counts[one.Name] = n
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	r.counts, r.at = counts, r.now()
	return nil
}

func (c *collections) Read(ctx context.Context) (tea.Msg, error) { return c.reader.read(ctx) }

func (c *collections) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case *collectionsRead:
		c.read = msg
		c.list.Set(c.section())
	case tea.KeyPressMsg:
		if name := c.list.Selected(); !c.key(msg.String()) && c.of == "" && name != "" && msg.String() == "enter" {
			return c.host.Open("documents", frame.Place{Namespace: c.namespace, Collection: name})
		}
	}
	return nil
}

// Collection implements frame.CollectionChooser.
func (c *collections) Collection() string { return c.list.Selected() }

func (c *collections) Keys() []key.Binding {
	if c.of != "" {
		return c.pageKeys()
	}
	there := c.list.Selected() != ""
	return []key.Binding{
		frame.When(there, "enter", "documents", "there is a collection"), frame.When(there, "d", "describe", "there is a collection"),
		frame.When(there, "y", "YAML", "there is a collection"),
	}
}

func (c *collections) View(width, height int) string { return c.view(width, height, c.doc) }

func (c *collections) section() widget.Section {
	s := widget.Section{
		None: c.host.Reach("no collections that you may read: svcctl whoami shows who you are and what you may do"),
		Columns: []widget.Column{
			{Name: "NAME", Least: 12}, {Name: "RECORDS", Right: true, Rank: 1}, {Name: "YOU MAY", Rank: 2, Least: 16}, {Name: "FIELDS", Right: true, Rank: 4},
			{Name: "INDEXES", Rank: 3}, {Name: "SEARCHES", Rank: 5, Least: 12}, {Name: "LANGUAGES", Rank: 7}, {Name: "LABEL", Rank: 6, Least: 12},
		},
	}
	for i := range c.read.all {
		one := &c.read.all[i]
		records := ""
		if n, ok := c.read.counts[one.Name]; ok {
			records = strconv.FormatInt(n, 10)
		}
		var searches []string
		for _, search := range one.Search {
			searches = append(searches, search.Name)
		}
		label, _ := one.Meta["label"].(string)
		s.Rows = append(s.Rows, widget.Row{ID: one.Name, Cells: []widget.Cell{
			widget.Text(one.Name), widget.Text(records), widget.Text(collection.Rights(one.YourPermissions)), widget.Text(strconv.Itoa(len(one.Fields))),
			indexesOf(one), widget.Text(strings.Join(searches, ", ")), widget.Text(strings.Join(one.Languages, ", ")), widget.Text(label),
		}})
	}
	return s
}

// indexesOf says how many indexes there are, and how many are not ready.
func indexesOf(c *api.CollectionDescription) widget.Cell {
	cell := widget.Cell{Text: strconv.Itoa(len(c.Indexes))}
	for _, state := range []struct {
		name string
		tone output.Tone
	}{{api.IndexFailed, output.ToneBad}, {api.IndexBuilding, output.ToneWarn}} {
		n := 0
		for _, ix := range c.Indexes {
			if ix.State == state.name {
				n++
			}
		}
		if n > 0 {
			cell.Text += fmt.Sprintf(", %d %s", n, state.name)
			cell.Tone = max(cell.Tone, state.tone)
		}
	}
	return cell
}

// doc is the page about a collection.
func (c *collections) doc(name string) (d widget.Doc, ok bool) {
	one := c.read.of(name)
	if one == nil {
		return d, false
	}
	d.Heading("Collection " + one.Name)
	d.Field("You may", collection.Rights(one.YourPermissions))
	d.Field("Strict fields", strconv.FormatBool(one.StrictFields))
	d.Field("Languages", strings.Join(one.Languages, ", "))
	if one.Singleton {
		d.Field("Singleton", "it has one record")
	}
	d.Field("Projections", strings.Join(one.Projections, ", "))
	d.Heading("Fields")
	fieldDoc(&d, "", one.Fields)
	if len(one.Indexes) > 0 {
		d.Heading("Indexes")
	}
	for _, ix := range one.Indexes {
		about := strings.Join(ix.Key, ", ")
		if ix.Unique {
			about += ", unique"
		}
		if ix.Sparse {
			about += ", sparse"
		}
		if ix.Message != "" {
			about += ": " + ix.Message
		}
		d.State(ix.Name, ix.State+"  "+about, output.ToneOf(ix.State))
	}
	if len(one.Search) > 0 {
		d.Heading("Searches")
	}
	for _, s := range one.Search {
		d.Field(s.Name, s.Mode+"  "+strings.Join(append(s.Fields, s.Sources...), ", "))
	}
	return d, true
}

// fieldDoc lists fields with their dotted paths.
func fieldDoc(d *widget.Doc, prefix string, fields []api.FieldDescription) {
	for _, f := range fields {
		text := f.Type
		if rules := collection.FieldRules(f); rules != "" {
			text += "  " + rules
		}
		d.Field(prefix+f.Name, text)
		fieldDoc(d, prefix+f.Name+".", f.SubFields)
	}
}
