package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/client"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/search/quality"
)

type evalOptions struct {
	st         *command.State
	Namespace  string
	Files      []string
	Dir        string
	Collection string
	Search     string
	Baseline   string
}

func newEval(st *command.State, runF func(context.Context, *evalOptions) error) *cobra.Command {
	opts := &evalOptions{st: st}
	cmd := &cobra.Command{
		Use:   "eval [NAMESPACE] [FILE.golden.yaml...]",
		Short: "Measure how well searches of a service answer golden queries",
		Long: `Ask the searches of a service the golden queries of files, or of the project in --dir (default: here), and hold what they find against the
gates. The records are those of the service, as far as you may read them: what the files give as records, and as whom to search, is left aside.
What names a record in relevant is its id, or the value of the field that the file names with by. docs/testing.md says how such files are written;
svcctl project test runs them without a service, with the records that they give.

With --baseline, each measure is shown with its change since a file that -o json has written. The exit code is 0 when all gates hold, 1 when one
does not, 2 when that could not be found out.`,
		Example: `  svcctl search eval blog projects/blog/search/main.golden.yaml
  svcctl search eval blog --dir projects/blog -o json > before.json
  svcctl search eval blog --dir projects/blog --baseline before.json --collection articles --search main`,
		ValidArgsFunction: st.CompletePlace(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			known, err := st.Namespace()
			if err != nil {
				return err
			}
			if known == "" && len(args) > 0 {
				known, args = args[0], args[1:]
			}
			switch {
			case known == "" || schema.IsGolden(known):
				return command.Usagef("which namespace? Give it as the first argument, or with -n")
			case len(args) > 0 && opts.Dir != "":
				return command.Usagef("--dir has golden queries of its own: leave it or %s out", args[0])
			case opts.Search != "" && opts.Collection == "":
				return command.Usagef("--search %s: of which --collection?", opts.Search)
			}
			opts.Namespace, opts.Files = known, args
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return command.NotRun(runEval(cmd.Context(), opts))
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&opts.Dir, "dir", "", "the project whose search/*.golden.yaml are asked (default: here)")
	fl.StringVar(&opts.Collection, "collection", "", "only golden queries of this collection")
	fl.StringVar(&opts.Search, "search", "", "only those of this search")
	fl.StringVar(&opts.Baseline, "baseline", "", "show what has changed since this file, which -o json has written")
	return cmd
}

// evaluation is what came of one file.
type evaluation struct {
	File       string        `json:"file"`
	Collection string        `json:"collection"`
	Search     string        `json:"search,omitempty"`
	Queries    []queried     `json:"queries"`
	NDCG10     float64       `json:"ndcg10"`
	Recall100  float64       `json:"recall100"`
	Gates      quality.Gates `json:"gates"`
	Held       bool          `json:"held"`
	Baseline   *measures     `json:"baseline,omitempty"`

	report quality.Report
}

type measures struct {
	NDCG10    float64 `json:"ndcg10"`
	Recall100 float64 `json:"recall100"`
}

// queried is one query with what was found.
type queried struct {
	Q         string   `json:"q"`
	NDCG10    float64  `json:"ndcg10"`
	Recall100 float64  `json:"recall100"`
	Expected  []string `json:"expected"`
	Found     []string `json:"found"`
}

// name is what is searched.
func (e *evaluation) name() string { return strings.TrimSuffix(e.Collection+"/"+e.Search, "/") }

type evaluations struct {
	Items []*evaluation `json:"items"`
}

func runEval(ctx context.Context, opts *evalOptions) error {
	files, err := opts.read()
	if err != nil {
		return err
	}
	before, err := opts.baseline()
	if err != nil {
		return err
	}
	c, err := opts.st.Client()
	if err != nil {
		return err
	}
	out, held := evaluations{Items: []*evaluation{}}, true
	for _, l := range files {
		e, err := evaluate(ctx, c, opts.Namespace, l)
		if err != nil {
			return err
		}
		e.Baseline = before[e.key()]
		held = held && e.Held
		out.Items = append(out.Items, e)
	}
	if err := showEvaluations(opts.st, out); err != nil {
		return err
	}
	if !held {
		return command.Told(command.ExitFailed)
	}
	return nil
}

// read reads the golden queries that are meant.
func (o *evalOptions) read() (out []*schema.LoadedGolden, err error) {
	files := o.Files
	if len(files) == 0 {
		if files, err = goldenFiles(o.Dir); err != nil {
			return nil, err
		}
	}
	for _, file := range files {
		l, err := readGolden(file)
		if err != nil {
			return nil, err
		}
		if (o.Collection == "" || l.Collection == o.Collection) && (o.Search == "" || l.Search == o.Search) {
			out = append(out, l)
		}
	}
	if len(out) == 0 {
		return nil, command.Usagef("there are no golden queries of %s among these: %s", strings.TrimSuffix(o.Collection+"/"+o.Search, "/"), strings.Join(files, ", "))
	}
	return out, nil
}

// goldenFiles lists those of a project's directory.
func goldenFiles(dir string) ([]string, error) {
	if dir == "" {
		dir = "."
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, command.Usagef("%s: %v", dir, err)
	}
	defer root.Close() //nolint:errcheck // opened for reading
	names, problems := project.GoldenFiles(project.Files(root))
	if len(problems) > 0 {
		return nil, command.Usagef("%s", problems[0])
	}
	if len(names) == 0 {
		return nil, command.Usagef("%s has no golden queries: write them into %s/<name>.golden.yaml", dir, project.GoldenDirectory)
	}
	for i := range names {
		names[i] = filepath.ToSlash(filepath.Join(dir, names[i]))
	}
	return names, nil
}

// readGolden reads one file. In a project, it may refer to others there.
func readGolden(file string) (*schema.LoadedGolden, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, command.Usagef("%s: %v", file, err)
	}
	dir, name := filepath.Split(abs)
	if filepath.Base(dir) == project.GoldenDirectory {
		dir, name = filepath.Dir(filepath.Clean(dir)), project.GoldenDirectory+"/"+name
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, command.Usagef("%s: %v", file, err)
	}
	defer root.Close() //nolint:errcheck // opened for reading
	l, problems := schema.LoadGolden(project.Files(root), name)
	for _, p := range problems {
		if !p.Warning {
			if p.File == name {
				p.File = file
			}
			return nil, command.Usagef("%s", p)
		}
	}
	l.File = file
	return l, nil
}

// baseline reads what was measured before, by file and search.
func (o *evalOptions) baseline() (map[string]*measures, error) {
	if o.Baseline == "" {
		return nil, nil //nolint:nilnil // nothing is compared
	}
	data, err := os.ReadFile(o.Baseline)
	if err != nil {
		return nil, command.Usagef("--baseline %s: %v", o.Baseline, err)
	}
	var before evaluations
	if err := json.Unmarshal(data, &before); err != nil || len(before.Items) == 0 {
		return nil, command.Usagef("--baseline %s: is not what svcctl search eval -o json writes", o.Baseline)
	}
	out := map[string]*measures{}
	for _, e := range before.Items {
		out[e.key()] = &measures{e.NDCG10, e.Recall100}
	}
	return out, nil
}

// key tells files apart that were read from another directory then.
func (e *evaluation) key() string { return filepath.Base(e.File) + " " + e.name() }

// evaluate asks the service all queries of a file.
func evaluate(ctx context.Context, c *client.Client, namespace string, l *schema.LoadedGolden) (*evaluation, error) {
	var judged []quality.Judged
	for _, q := range l.Queries {
		judged = append(judged, quality.Judged{Query: q.Q, Relevant: q.Relevant})
	}
	r, err := quality.Measure(judged, func(q string) ([]string, error) { return found(ctx, c, namespace, l, q) })
	if err != nil {
		return nil, err
	}
	gates := quality.Gates(l.Gates)
	e := &evaluation{
		File: l.File, Collection: l.Collection, Search: l.Search, NDCG10: r.NDCG10, Recall100: r.Recall, Gates: gates, Held: gates.Held(r), report: r,
	}
	for _, s := range r.Each {
		e.Queries = append(e.Queries, queried{s.Query, s.NDCG10, s.Recall, s.Ideal(), append([]string{}, s.Found...)})
	}
	return e, nil
}

// found gives what the records are called that a query finds, the best first.
func found(ctx context.Context, c *client.Client, namespace string, l *schema.LoadedGolden, q string) ([]string, error) {
	by := l.By
	if by == "" {
		by = "id"
	}
	ask := client.Query{Q: q, QName: l.Search, Limit: quality.Depth, Select: by}
	return quality.Found(func(offset int) (names []string, more bool, err error) {
		ask.Offset = offset
		page, err := c.ListRecords(ctx, namespace, l.Collection, ask)
		if refused, ok := errors.AsType[*client.Error](err); ok && refused.Code() == "query_limit" && ask.Limit > 0 {
			ask.Limit = 0 // the collection has smaller pages
			page, err = c.ListRecords(ctx, namespace, l.Collection, ask)
		}
		if err != nil {
			return nil, false, fmt.Errorf("q=%s: %w", q, err)
		}
		for _, item := range page.Items {
			var record map[string]any
			if err := json.Unmarshal(item, &record); err != nil {
				return nil, false, err
			}
			if _, ranked := record["_score"]; !ranked {
				return nil, false, command.Usagef("%s: a search of mode regex has no order to judge: its records come in that of sort", l.File)
			}
			name, _ := valueAt(record, by).(string)
			if name == "" {
				name, _ = record["id"].(string)
			}
			names = append(names, name)
		}
		return names, page.HasMore, nil
	})
}

// valueAt follows a path of fields.
func valueAt(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return v
}

func showEvaluations(st *command.State, all evaluations) error {
	p := st.Printer()
	t := output.NewTable("SEARCH", "QUERIES", "NDCG@10", "RECALL@100", "GATES", "FILE")
	result := output.Result{Value: all, Table: t}
	for _, e := range all.Items {
		gates, paint := "held", p.Style.Green
		cells := []string{}
		var below []string
		for i, g := range e.Gates.Of(e.report) {
			cell := g.Rounded()
			if e.Baseline != nil {
				cell += fmt.Sprintf(" (%+.2f)", g.Got-[]float64{e.Baseline.NDCG10, e.Baseline.Recall100}[i])
			}
			cells = append(cells, cell)
			if !g.Held {
				below = append(below, g.Measure+" below "+g.LeastText())
			}
		}
		if len(below) > 0 {
			gates, paint = strings.Join(below, ", "), p.Style.Red
		}
		t.Row(e.name(), len(e.Queries), cells[0], cells[1], output.Painted{Text: gates, Paint: paint}, e.File)
		result.Names = append(result.Names, e.File)
	}
	if err := p.Print(result); err != nil {
		return err
	}
	for _, e := range all.Items {
		if e.Held {
			continue
		}
		for _, s := range e.report.Worst(quality.Shown) {
			st.Notef("%s: q=%s %s: expected %s; found %s", e.File, s.Query, s.Text(), quality.First(s.Ideal()), quality.First(s.Found))
		}
	}
	return nil
}
