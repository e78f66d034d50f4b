package project

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/svcctl/svc/pkg/errs"
)

// entryNames are the files that a directory named as configFile is searched for, in this order.
func entryNames() []string { return []string{"project.yaml", "project.yml", "project.json"} }

// Locate finds a registered config file. configFile is absolute, or relative to projectsDir, or relative to the
// working directory; a directory stands for the project file in it. Wherever symbolic links lead, the file must be
// inside projectsDir: anything else is refused, so that nobody can read the machine's files by registering them.
func Locate(projectsDir, configFile string) (dir, entry string, err error) {
	root, err := filepath.EvalSymlinks(projectsDir)
	if err == nil {
		root, err = filepath.Abs(root)
	}
	if err != nil {
		return "", "", errs.New(errs.Unavailable, "no_projects_dir",
			"the service's projects directory can't be read: check the setting projects.dir").With(err)
	}
	candidates := []string{filepath.Join(root, configFile)}
	if abs, err := filepath.Abs(configFile); err == nil {
		candidates = append(candidates, abs)
	}
	if filepath.IsAbs(configFile) {
		candidates = []string{configFile}
	}
	err = errNoConfigFile
	for _, candidate := range candidates {
		real, evalErr := filepath.EvalSymlinks(candidate)
		if evalErr != nil {
			continue
		}
		if real == root || !strings.HasPrefix(real, root+string(filepath.Separator)) {
			err = errOutside
			continue
		}
		return split(candidate)
	}
	return "", "", err
}

var (
	errNoConfigFile = errs.New(errs.Limit, "config_not_found",
		"configFile does not exist: give its path inside the service's projects directory, such as blog/project.yaml")
	errOutside = errs.New(errs.Denied, "config_outside",
		"configFile must be inside the service's projects directory (setting projects.dir)")
)

// split gives the directory and the file name. The directory keeps its symbolic links: a deployment swaps them.
func split(path string) (dir, entry string, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", "", errNoConfigFile
	case err != nil:
		return "", "", errs.Wrap(err, "stat config file")
	case !info.IsDir():
		return filepath.Dir(path), filepath.Base(path), nil
	}
	for _, name := range entryNames() {
		if _, err := os.Stat(filepath.Join(path, name)); err == nil {
			return path, name, nil
		}
	}
	return "", "", errNoConfigFile
}
