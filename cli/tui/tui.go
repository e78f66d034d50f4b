package tui

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/doc"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/pkg/client"
)

// NewCmd makes svcctl tui.
func NewCmd(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:   "tui [NAMESPACE]",
		Short: "Work with projects in the terminal, live",
		Long: `Look at projects and work with them in the terminal, live: the registered projects; conditions, problems and events of one; its collections and
their records; its jobs, their runs and logs; its snapshots, and how far what takes and restores them is; its search indexes and what makes vectors
for them; tokens and users; the audit log. Records are edited, jobs are run, snapshots are taken and restored there, too. What can't be undone is
confirmed by typing a name.

With a namespace, by the argument, -n, SVCCTL_NAMESPACE or the context, it begins with that project. The key ? shows what there is
to press, q quits.`,
		Example: `  svcctl tui
  svcctl tui blog`,
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, err := st.Namespace()
			if err == nil && len(args) > 0 {
				namespace, _, err = st.Place(args, 0)
			}
			if err != nil {
				return err
			}
			return run(cmd.Context(), st, namespace)
		},
	}
}

// fps is how many times a second something can be drawn: enough for what is read, and it is what an idle program works for.
const fps = 20

// run shows the terminal UI until the user quits.
func run(ctx context.Context, st *command.State, namespace string) error {
	if err := checkTerminal(st); err != nil {
		return err
	}
	ctx, guard, end := newShield(ctx)
	defer end()
	drafts := map[string]string{}
	defer func() { tellDrafts(st, drafts) }()
	model, closeAll, err := New(ctx, st, userEditor{st, guard, drafts}, namespace)
	if err != nil {
		return err
	}
	defer closeAll()
	options := []tea.ProgramOption{tea.WithContext(ctx), tea.WithInput(st.In), tea.WithOutput(st.Out), tea.WithoutSignalHandler(), tea.WithFPS(fps)}
	if !st.Style(st.OutTTY).Color {
		options = append(options, tea.WithColorProfile(colorprofile.ASCII))
	} else if _, refused := st.Env("NO_COLOR"); refused { // which --color=always overrules
		options = append(options, tea.WithColorProfile(colorprofile.ANSI256))
	}
	_, err = tea.NewProgram(model, options...).Run()
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, tea.ErrProgramKilled) {
		return cause
	}
	return err
}

// checkTerminal refuses to start where nothing could be drawn, or typed.
func checkTerminal(st *command.State) error {
	const instead = "without one, svcctl project list, svcctl project status, svcctl doc list, svcctl job list, svcctl snapshot list, svcctl search status and svcctl audit list show the same, and take -o json"
	if !st.InTTY || !st.OutTTY {
		return &command.Error{Exit: command.ExitUsage, Code: "no_terminal", Message: "svcctl tui needs a terminal for its input and its output", Hint: instead}
	}
	if term, _ := st.Env("TERM"); term == "dumb" {
		return &command.Error{Exit: command.ExitUsage, Code: "no_terminal", Message: "svcctl tui can't draw on a terminal of type dumb (TERM)", Hint: instead}
	}
	return nil
}

// New makes the program for the service and the user that st says; it does not start it. closeAll ends what it has going on, and has
// to be called when it has ended.
func New(ctx context.Context, st *command.State, editor Editor, namespace string) (model *frame.Model, closeAll func(), err error) {
	ordinary, err := st.Client()
	if err != nil {
		return nil, nil, err
	}
	patient, err := st.PatientClient()
	if err != nil {
		return nil, nil, err
	}
	model = frame.New(ctx, frame.Config{
		Client: ordinary, Patient: patient, Explain: st.Explain, Reach: st.Reach, Now: st.Now, Color: st.Style(st.OutTTY).Color,
		Context: st.ContextName(), OfCollection: st.OfCollection(), Screens: screens(editor), Namespace: namespace,
		Names: func(ctx context.Context, namespace string) (namespaces, collections []string) {
			return names(ctx, ordinary, namespace)
		},
	})
	return model, func() {
		model.Close()
		ordinary.CloseIdle()
		patient.CloseIdle()
	}, nil
}

// names are those that can be completed, as far as the user may know them.
func names(ctx context.Context, c *client.Client, namespace string) (namespaces, collections []string) {
	for project, err := range c.Projects().All(ctx, client.Query{}) {
		if err != nil {
			break
		}
		namespaces = append(namespaces, project.Namespace)
	}
	if namespace == "" {
		return namespaces, nil
	}
	if list, err := c.ListCollections(ctx, namespace); err == nil {
		for _, one := range list.Items {
			collections = append(collections, one.Name)
		}
	}
	return namespaces, collections
}

// userEditor is the editor that the user has chosen.
type userEditor struct {
	st    *command.State
	guard *shield
	begun map[string]string // by the files of drafts, the commands that go on with them
}

// Begun implements Editor.
func (u userEditor) Begun(file, goOn string) { u.begun[file] = goOn }

// tellDrafts tells of drafts that were not saved: what was told of them meanwhile went with the screen, and the program may have been ended in the middle of it.
func tellDrafts(st *command.State, drafts map[string]string) {
	for _, file := range slices.Sorted(maps.Keys(drafts)) {
		if _, err := os.Stat(file); err == nil {
			st.Warnf("not saved: your draft is in %s", file)
			st.Notef("go on with it by: %s", drafts[file])
		}
	}
}

// Editor implements Editor.
func (u userEditor) Editor() (string, error) { return doc.EditorCommand(u.st) }

// Process implements Editor.
func (u userEditor) Process(line, file string) tea.ExecCommand {
	return u.guard.around(process{doc.EditorProcess(line, file)})
}
