package project

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
)

// The bounds of what a service takes.
const (
	maxBundleFiles = 1000
	maxBundleSize  = 7 << 20 // bytes of all files: the archive has a little more
)

// folder is a project's directory here.
type folder struct {
	dir, entry string
	config     *schema.Project // as far as it can be read
}

// openFolder finds the project file in a directory and reads it, to know what the project is named and which folders are no
// part of its config. Whether it is valid, the service says.
func openFolder(dir string) (*folder, error) {
	at, entry, err := locate(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(at)
	if err != nil {
		return nil, command.Usagef("%s: %v", dir, err)
	}
	defer root.Close() //nolint:errcheck // opened for reading
	standIn := func(name string) (string, bool) { return name, true }
	loaded, problems := schema.LoadProject(project.Files(root), entry, standIn, nil)
	if loaded == nil || loaded.Project.Namespace == "" {
		for _, p := range problems {
			if !p.Warning {
				return nil, command.Usagef("%s", p)
			}
		}
		return nil, command.Usagef("%s: it names no namespace", dir)
	}
	return &folder{at, entry, loaded.Project}, nil
}

// isConfig says by its ending that a file may be one of a config or a script of it.
func isConfig(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx"}, path.Ext(name))
}

// archive packs the files that the config may be made of: no hidden ones, no assets, no snapshots.
func (f *folder) archive() ([]byte, error) {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return nil, command.Usagef("%s: %v", f.dir, err)
	}
	defer root.Close() //nolint:errcheck // opened for reading
	left := []string{path.Clean(f.config.SnapshotPath)}
	for _, a := range f.config.Assets {
		left = append(left, path.Join(path.Dir(f.entry), a.Path))
	}
	var data bytes.Buffer
	w := tar.NewWriter(&data)
	files, size := 0, 0
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && (strings.HasPrefix(d.Name(), ".") || slices.Contains(left, name)):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() || !isConfig(name):
			return nil
		}
		info, err := root.Stat(name) // of what a link points at, if that is inside
		if err != nil || !info.Mode().IsRegular() {
			return nil //nolint:nilerr // the service does not read it either
		}
		content, err := root.ReadFile(name)
		if err != nil {
			return err
		}
		files, size = files+1, size+len(content)
		if files > maxBundleFiles || size > maxBundleSize {
			return fmt.Errorf("more than %d files or %d bytes may be of its config: keep what is not out of that directory", maxBundleFiles, maxBundleSize)
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, command.Usagef("%s: %v", f.dir, err)
	}
	return data.Bytes(), nil
}
