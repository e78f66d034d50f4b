package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The lines of restores.md run as they are: some collections, merged, into a project that is made for it, taken back, and from an archive.
func TestRestores(t *testing.T) {
	d := newDesk(t)
	d.sample("blog", "medialib", "authors", "articles")
	printed := d.run(strings.Join(blocks(t, "restores.md", "sh"), "\n"))
	d.prints(printed, "nothing would change; nothing was changed", "before-restore", "wrote blog.tar.zst")
	d.prints(d.run("svcctl project list; svcctl doc count trial articles; svcctl snapshot runs blog --kind restore -o name | wc -l"), "trial ", "\n240\n", "\n6\n")
}

// The lines of snapshots.md run as they are.
func TestSnapshots(t *testing.T) {
	d := newDesk(t)
	d.sample("blog", "medialib", "authors", "articles")
	printed := d.run(strings.Join(blocks(t, "snapshots.md", "sh"), "\n"))
	d.prints(printed, "event: done", `"phase":"collections"`, `"profile":"backup"`, `"mediaFiles":`, `"kind":"restore","name":"backup"`, `"status":"succeeded"`, `"same":true`)
	d.prints(printed, "no problems", " verified", "articles", "that is what a restore would change; nothing was changed", "nothing differs", "wrote daily.tar.zst", "DECISION", "nothing would change")
	if info, err := os.Stat(filepath.Join(d.dir, "blog.tar.zst")); err != nil || info.Size() < 1000 {
		t.Error(info, err)
	}
}
