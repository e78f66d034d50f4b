package project

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/svcctl/svc/pkg/errs"
)

// entryNames are the files that a directory named as configFile is searched for, in this order.
func entryNames() []string { return []string{"project.yaml", "project.yml", "project.json"} }

// Locate finds a registered config file. configFile is absolute, or relative to projectsDir, or relative to the
// working directory; a directory stands for the project file in it. Wherever symbolic links lead, the file must be
// inside projectsDir: anything else is refused, whether or not it exists, so that nobody can look around on the machine
// by registering files.
func Locate(projectsDir, configFile string) (dir, entry string, err error) {
	root, err := filepath.Abs(projectsDir) // before the links are followed: the working directory may be behind one
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return "", "", errs.New(errs.Unavailable, "no_projects_dir",
			"the service's projects directory can't be read: check the setting projects.dir").With(err)
	}
	if filepath.IsAbs(configFile) {
		return locate(root, configFile)
	}
	dir, entry, err = locate(root, filepath.Join(root, configFile))
	if err != nil {
		if abs, absErr := filepath.Abs(configFile); absErr == nil {
			if dir, entry, absErr := locate(root, abs); absErr == nil {
				return dir, entry, nil
			}
		}
	}
	return dir, entry, err
}

// locate finds the file of an absolute path. root has no symbolic links.
func locate(root, path string) (dir, entry string, err error) {
	resolved, err := filepath.EvalSymlinks(path)
	switch {
	case err == nil && !inside(root, resolved), err != nil && !inside(root, filepath.Clean(path)):
		return "", "", errOutside
	case errors.Is(err, fs.ErrPermission):
		return "", "", errUnreadable.With(err)
	case err != nil:
		return "", "", errNoConfigFile
	}
	return split(path)
}

// inside says whether a clean path is root or in it.
func inside(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}

var (
	errNoConfigFile = errs.New(errs.Limit, "config_not_found",
		"configFile does not exist: give its path inside the service's projects directory, such as blog/project.yaml")
	errUnreadable = errs.New(errs.Limit, "config_unreadable",
		"configFile can't be read: the service needs the permission to read it and to enter its directory")
	errOutside = errs.New(errs.Denied, "config_outside",
		"configFile must be inside the service's projects directory (setting projects.dir)")
)

// split gives the directory and the file name. The directory keeps its symbolic links: a deployment swaps them.
func split(path string) (dir, entry string, err error) {
	info, err := os.Stat(path)
	switch {
	case err != nil: // it went just now
		return "", "", errNoConfigFile
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
