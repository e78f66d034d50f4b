package project

import (
	"github.com/svcctl/svc/pkg/schema"
)

// snapshotDir compiles the folder of snapshots of a config that is made of some files. One that leads outside, or holds one of these,
// is refused: a snapshot has copies of them, which would be taken for config.
func (c *compiler) snapshotDir(config *schema.Project, files []schema.File) string {
	const at = "snapshotPath"
	if config.SnapshotPath == "" || c.isBroken(at) { // was not decoded, which has been said
		return ""
	}
	dir := c.Resolve(at, config.SnapshotPath)
	if dir == "" {
		c.fail(at, schema.CodeReference, "%q is no folder inside the project's directory", config.SnapshotPath)
		return ""
	}
	for _, f := range files {
		if isBelow(f.Name, dir) {
			c.fail(at, schema.CodeReference, "%q holds %s, which the config is made of: give snapshots a folder of their own", config.SnapshotPath, f.Name)
			break
		}
	}
	return dir
}
