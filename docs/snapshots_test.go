package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
