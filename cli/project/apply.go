package project

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

type applyOptions struct {
	st      *command.State
	Dirs    []string
	DryRun  bool
	Yes     bool
	Wait    bool
	Prune   bool
	Allow   string
	Timeout time.Duration
}

func newApply(st *command.State, runF func(context.Context, *applyOptions) error) *cobra.Command {
	opts := &applyOptions{st: st}
	cmd := &cobra.Command{
		Use:   "apply DIR... | apply -f DIR...",
		Short: "Serve the files of a project's directory: register, plan, reload, wait",
		Long: `Make what is served be what the files of a directory say, and wait until it is Ready. A project that is not known yet is
registered, which needs the service to see the directory at the same path. Of a known one the plan is shown, and a
reload does just that. The files have to be where the service reads them: when it reads others, nothing is done (exit code 6).

A plan with a risk above safe is asked about on a terminal. Elsewhere --allow says how much is fine, or --yes that all is.
When something else has changed meanwhile, nothing is done (exit code 6). To do it again does nothing. Of several
directories, one is applied after the other, and none behind one that fails. A directory that is no project stands for those directly
in it that are.

With --prune, projects that were registered from below such a directory and have no files any more, neither here nor for the service, are
unregistered in the end; their data stays. It lists them and asks before anything is done, elsewhere than on a terminal it needs --yes, and
--dry-run lists them alone. One that was registered from elsewhere, or by a path relative to the service's projects directory, is never
touched.`,
		Example: `  svcctl project apply ./projects/blog --dry-run
  svcctl project apply ./projects/blog --allow slow --timeout 60s
  svcctl project apply -f projects --prune --dry-run=server`,
		ValidArgsFunction: command.CompleteDirs,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Dirs = append(opts.Dirs, args...)
			if len(opts.Dirs) == 0 {
				return command.Usagef("which directory? Give it as an argument, or with -f")
			}
			if err := command.CheckAllow(opts.Allow); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runApply(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringArrayVarP(&opts.Dirs, "file", "f", nil, "directory with the files to apply, as an argument is")
	command.DryRunFlag(cmd, &opts.DryRun, "show the plan and change nothing")
	cmd.Flags().BoolVar(&opts.Prune, "prune", false, "unregister the projects whose directories are gone from the one given")
	cmd.Flags().BoolVar(&opts.Wait, "wait", true, "wait until it is Ready; --wait=false ends when it is served")
	command.YesFlag(cmd, &opts.Yes)
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", defaultTimeout, "longest wait, 0 for no limit")
	command.AllowFlag(cmd, &opts.Allow)
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{"file": command.CompleteDirs})
	return cmd
}

// runApply applies one directory after the other. The first that fails ends it, before anything is pruned.
func runApply(ctx context.Context, opts *applyOptions) error {
	var all []string
	for i, dir := range opts.Dirs {
		dirs, err := projectDirs(dir)
		if err != nil {
			opts.notApplied(slices.Concat(opts.Dirs[:i], opts.Dirs[i+1:]))
			return err
		}
		if opts.Prune && len(dirs) == 1 && dirs[0] == dir {
			return errOneProject(dir)
		}
		all = append(all, dirs...)
	}
	c, err := opts.st.Client()
	if err != nil {
		return err
	}
	var gone []api.Project
	if opts.Prune {
		if gone, err = findGone(ctx, opts.st, c, opts.Dirs, all); err != nil {
			return err
		}
		if len(gone) > 0 && !opts.DryRun {
			if err := confirmPrune(opts, c.Server(), gone); err != nil {
				return err
			}
		}
	}
	for i, dir := range all {
		if err := applyDir(ctx, opts, c, dir); err != nil {
			opts.notApplied(all[i+1:])
			return err
		}
	}
	return prune(ctx, opts, c, gone)
}

// notApplied names the directories that were left alone when another one has failed.
func (opts *applyOptions) notApplied(dirs []string) {
	if len(dirs) > 0 {
		opts.st.Warnf("not applied: %s", strings.Join(dirs, ", "))
	}
}

func applyDir(ctx context.Context, opts *applyOptions, c *client.Client, dir string) error {
	st := opts.st
	st.ProblemFolder = dir
	f, err := openFolder(dir)
	if err != nil {
		return err
	}
	p, err := c.ProjectOf(ctx, f.config.Namespace)
	if err != nil {
		return err
	}
	if p == nil {
		if opts.DryRun {
			st.Notef("%s is not registered: it would be, with the files of %s", f.config.Namespace, dir)
			return nil
		}
		return applyNew(ctx, opts, c, f)
	}
	plan, err := c.Plan(ctx, p.Namespace, nil)
	if err != nil {
		return err
	}
	if err := sameFiles(ctx, c, f, plan); err != nil {
		return err
	}
	printer := st.Printer()
	if opts.DryRun {
		return showPlan(st, printer, plan)
	}
	if !printer.Structured() { // what goes out as data is the outcome
		printer.W = st.Err
		if err := showPlan(st, printer, plan); err != nil {
			return err
		}
	}
	allow := api.Risk(opts.Allow)
	if allow == "" {
		if plan.Risk.Above(api.RiskSafe) {
			question := fmt.Sprintf("Change %s at %s, with the risk %s?", p.Namespace, c.Server(), plan.Risk)
			if err := st.Confirm(opts.Yes, question); err != nil {
				return err
			}
		}
		allow = plan.Risk // what was shown, and no more
	}
	patient, err := st.PatientClient()
	if err != nil {
		return err
	}
	ctx, cancel := command.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	result, err := patient.ReloadPlanned(ctx, p.Namespace, plan.Hash, allow)
	if err != nil {
		return err
	}
	return applied(ctx, opts, c, p, result)
}

// sameFiles refuses a plan of other files than the folder has. The service tells, since what it substitutes in both is its own.
func sameFiles(ctx context.Context, c *client.Client, f *folder, plan *api.Plan) error {
	archive, err := f.archive()
	if err != nil {
		return err
	}
	here, err := c.Plan(ctx, plan.Namespace, archive)
	if err != nil || here.Next == plan.Next {
		return err
	}
	return &command.Error{
		Exit: command.ExitConflict, Code: "other_files",
		Message: fmt.Sprintf("the service reads other files of %s than %s has, and a reload would serve those", plan.Namespace, f.dir),
		Hint: fmt.Sprintf("bring these to where it reads them (svcctl project get %[1]s -o json names its configFile) and try again, "+
			"or serve what is there with svcctl project reload %[1]s; svcctl project diff shows what either would change", plan.Namespace),
	}
}

// applyNew registers a project. There is nothing yet that could break.
func applyNew(ctx context.Context, opts *applyOptions, c *client.Client, f *folder) error {
	file := filepath.Join(f.dir, filepath.FromSlash(f.entry))
	name := filepath.Base(f.dir)
	ctx, cancel := command.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	p, err := c.Projects().Create(ctx, api.ProjectWrite{Name: &name, ConfigFile: &file, Enabled: new(true)})
	if err != nil {
		return err
	}
	opts.st.Notef("%s is registered", p.Namespace)
	status, err := c.ProjectStatus(ctx, p.ID)
	if err != nil {
		return err
	}
	return applied(ctx, opts, c, p, &api.ReloadResult{Generation: status.ObservedGeneration, Changed: true, Revision: status.Revision})
}

// applied waits until a project is Ready, and shows how it went.
func applied(ctx context.Context, opts *applyOptions, c *client.Client, p *api.Project, result *api.ReloadResult) error {
	patience := 0
	if !result.Changed {
		patience = settleLooks
	}
	if !opts.Wait {
		return showReload(opts.st, p.Namespace, result)
	}
	status, waitErr := waitReady(ctx, c, p, patience)
	if status != nil {
		result.Conditions = status.Conditions
	}
	if err := showReload(opts.st, p.Namespace, result); err != nil {
		return err
	}
	return waitErr
}
