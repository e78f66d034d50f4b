package project

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
)

// projectDirs gives the directories of the projects that are in dir: it itself, or else those directly in it that have a project file. Hidden ones are left out.
func projectDirs(dir string) ([]string, error) {
	_, _, err := locate(dir)
	if err == nil {
		return []string{dir}, nil
	}
	if info, statErr := os.Stat(dir); statErr != nil || !info.IsDir() {
		return nil, err
	}
	entries, readErr := os.ReadDir(dir)
	if readErr != nil {
		return nil, command.Usagef("%v", readErr)
	}
	var dirs []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if info, err := os.Stat(path); strings.HasPrefix(e.Name(), ".") || err != nil || !info.IsDir() {
			continue
		}
		if _, _, err := locate(path); err == nil {
			dirs = append(dirs, path)
		}
	}
	if len(dirs) == 0 {
		return nil, &command.Error{
			Exit: command.ExitUsage, Code: "usage", Message: dir + ": there is no project.yaml, project.yml or project.json in it, nor in a directory in it",
			Hint: "svcctl project unregister has the service forget a project whose files are gone",
		}
	}
	return dirs, nil
}

// pruned is what programs are told of a project that --prune is about.
type pruned struct {
	Namespace    string `json:"namespace"    yaml:"namespace"`
	ConfigFile   string `json:"configFile"   yaml:"configFile"`
	Unregistered bool   `json:"unregistered" yaml:"unregistered"` // false: it would be
}

// findGone finds the projects that were registered from below one of roots and whose files are no longer there, neither here nor for the service. kept are the
// directories of projects that are there: one that has another place now is not gone.
func findGone(ctx context.Context, st *command.State, c *client.Client, roots, kept []string) ([]api.Project, error) {
	there := map[string]bool{}
	for _, dir := range kept {
		f, err := openFolder(dir)
		if err != nil {
			return nil, err
		}
		there[f.config.Namespace] = true
	}
	var gone []api.Project
	for p, err := range c.Projects().All(ctx, client.Query{}) {
		if err != nil {
			return nil, err
		}
		if there[p.Namespace] || !slices.ContainsFunc(roots, func(root string) bool { return goneFrom(root, p.ConfigFile) }) {
			continue
		}
		missing, err := missingThere(ctx, st, c, &p)
		if err != nil {
			return nil, err
		}
		if missing {
			gone = append(gone, p)
		}
	}
	return gone, nil
}

// goneFrom says that a registered file is one below root, and is not there. A relative path is the service's own, which says nothing about here.
func goneFrom(root, configFile string) bool {
	if !filepath.IsAbs(configFile) {
		return false
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return false
	}
	resolved, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return false
	}
	for _, base := range []string{abs, resolved} {
		if rel, err := filepath.Rel(base, configFile); err == nil && rel != "." && filepath.IsLocal(rel) {
			_, _, err := project.Locate(base, configFile)
			return err != nil && errs.From(err).Code == "config_not_found"
		}
	}
	return false
}

// missingThere says that the service does not find the files of a project either. That it does is an error: who applies from another checkout than the service reads
// would have it forget what others serve.
func missingThere(ctx context.Context, st *command.State, c *client.Client, p *api.Project) (bool, error) {
	d, err := c.Drift(ctx, p.Namespace)
	switch {
	case client.IsStatus(err, http.StatusNotFound): // it is not served: what is known of its files is in its status
		status, err := c.ProjectStatus(ctx, p.ID)
		if err != nil {
			return false, err
		}
		if status.Condition("ConfigValid").Reason == "Unreadable" {
			return true, nil
		}
		st.Warnf("%[1]s is left alone, though %[2]s is not here: it is not served (%[3]s), and so the service does not say whether it has the file; svcctl project unregister %[1]s has it forgotten",
			p.Namespace, p.ConfigFile, status.Phase)
		return false, nil
	case err != nil:
		return false, err
	}
	if slices.ContainsFunc(d.Items, func(it api.DriftItem) bool { return it.Kind == api.DriftRegistry && it.Action == api.DriftMissing }) {
		return true, nil
	}
	return false, &command.Error{
		Exit: command.ExitConflict, Code: "other_files",
		Message: fmt.Sprintf("the service has the files of %s, which are not here: %s", p.Namespace, p.ConfigFile),
		Hint:    fmt.Sprintf("take them away where it reads them and try again, or have it forget the project with svcctl project unregister %s", p.Namespace),
	}
}

// confirmPrune lists what --prune will unregister, and asks, before anything is done.
func confirmPrune(opts *applyOptions, server string, gone []api.Project) error {
	var names []string
	for _, p := range gone {
		opts.st.Notef("%s is gone from here: %s", p.Namespace, p.ConfigFile)
		names = append(names, p.Namespace)
	}
	what := "project " + names[0]
	if len(names) > 1 {
		what = fmt.Sprintf("%d projects (%s)", len(names), strings.Join(names, ", "))
	}
	return opts.st.Confirm(opts.Yes, fmt.Sprintf("Unregister %s at %s?", what, server))
}

// prune unregisters projects, or says that it would.
func prune(ctx context.Context, opts *applyOptions, c *client.Client, gone []api.Project) error {
	st := opts.st
	for _, p := range gone {
		if opts.DryRun {
			st.Notef("%s would be unregistered, since %s is gone; its data would stay", p.Namespace, p.ConfigFile)
		} else {
			if _, err := c.Projects().Delete(ctx, p.ID); err != nil && !client.IsStatus(err, http.StatusNotFound) {
				return fmt.Errorf("unregister %s: %w", p.Namespace, err)
			}
			st.Notef("project %s is unregistered; its data stays", p.Namespace)
		}
		printer := st.Printer()
		if printer.ForPeople() {
			continue
		}
		if err := printer.Print(output.Result{Value: pruned{p.Namespace, p.ConfigFile, !opts.DryRun}, Names: []string{"project/" + p.Namespace}}); err != nil {
			return err
		}
	}
	return nil
}

// errOneProject refuses --prune of a directory that is a project, below which others can't be.
func errOneProject(dir string) error {
	return &command.Error{
		Exit: command.ExitUsage, Code: "usage", Message: fmt.Sprintf("--prune is for a directory of projects, and %s is one project", dir),
		Hint: "give the directory that the projects are in, as in: svcctl apply -f projects --prune",
	}
}
