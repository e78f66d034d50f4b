package project

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/svcctl/svc/pkg/schema"
)

// Asset is one folder whose every file is public. It is immutable.
type Asset struct {
	Name string
	Path string // slash-separated, inside the project's directory
}

// Asset finds an asset by its name.
func (p *Project) Asset(name string) (Asset, bool) {
	i := slices.IndexFunc(p.Assets, func(a Asset) bool { return a.Name == name })
	if i < 0 {
		return Asset{}, false
	}
	return p.Assets[i], true
}

// KnowsToken says that a token is one of the project's: an admin token, or one of a collection or an action.
func (p *Project) KnowsToken(hash [32]byte, now time.Time) bool {
	if _, ok := p.AdminTokens.Match(hash, now); ok {
		return true
	}
	for _, c := range p.Collections {
		if c.Permissions.HasToken(hash) {
			return true
		}
	}
	for _, a := range p.Actions {
		if a.Permissions.HasToken(hash) {
			return true
		}
	}
	return false
}

// assets compiles the assets of a config that is made of some files. A folder that holds one of these, a secret or
// snapshots is refused: it would give them to everybody.
func (c *compiler) assets(config *schema.Project, files []schema.File) []Asset {
	assets := make([]Asset, 0, len(config.Assets))
	for i, a := range config.Assets {
		at := "assets[" + strconv.Itoa(i) + "].path"
		if a.Path == "" || c.isBroken(at) { // was not decoded, which has been said
			continue
		}
		folder := c.Resolve(at, a.Path)
		if folder == "" {
			c.fail(at, schema.CodeReference, "%q is no folder inside the project's directory", a.Path)
			continue
		}
		if problem := c.unfit(config, folder, files); problem != "" {
			c.fail(at, schema.CodeReference, "%q %s", a.Path, problem)
			continue
		}
		assets = append(assets, Asset{Name: a.Name, Path: folder})
	}
	return assets
}

// unfit says why a folder can't be that of an asset, or "".
func (c *compiler) unfit(config *schema.Project, folder string, files []schema.File) string {
	const public = ": every file of an asset is public, so give it a folder of its own"
	if strings.HasPrefix(folder, ".") || strings.Contains(folder, "/.") {
		return "is hidden by the dot that its name begins with, and hidden files are not served"
	}
	snapshots := c.Resolve("snapshotPath", config.SnapshotPath)
	if snapshots != "" && (isBelow(snapshots, folder) || isBelow(folder, snapshots)) {
		return "overlaps with snapshotPath, " + strconv.Quote(config.SnapshotPath) + public
	}
	var holds func(name string) bool
	switch reader := c.reader.(type) {
	case *rootReader:
		target, problem := reader.folder(folder)
		if problem != "" {
			return problem
		}
		holds = func(name string) bool {
			file, err := filepath.EvalSymlinks(reader.path(name))
			return err == nil && isBelow(filepath.ToSlash(file), target)
		}
	case *detachedReader:
		if problem := reader.noFolder(folder, c.Secrets); problem != "" {
			return problem
		}
		holds = func(name string) bool { return isBelow(name, folder) }
	default: // the files of a bundle are not in folders
		return ""
	}
	names := slices.Clone(c.Secrets)
	for _, f := range files {
		names = append(names, f.Name)
	}
	for _, name := range names {
		if holds(name) {
			return "holds " + name + ", which the config is made of" + public
		}
	}
	return ""
}

// isBelow says that a path is a folder or lies in it.
func isBelow(name, folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }
