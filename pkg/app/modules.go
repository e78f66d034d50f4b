package app

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/script"
	"github.com/svcctl/svc/pkg/script/cache"
	"github.com/svcctl/svc/pkg/script/embeddings"
	"github.com/svcctl/svc/pkg/script/fetch"
	"github.com/svcctl/svc/pkg/script/files"
)

// modules are what scripts reach beside the records: the network, a memory, the files of their project, embedding groups. It is
// safe for concurrent use.
type modules struct {
	now     func() time.Time
	private []string          // files that nobody may read
	answers http.RoundTripper // what answers http.fetch; nil: the network
	group   func(name string) (*embedding.Group, error)

	mu       sync.Mutex
	projects map[string]*projectModules // by namespace
}

// projectModules are those of one generation; the cache stays from one to the next, and so do the turns at embedding groups.
type projectModules struct {
	of      *project.Project
	client  *fetch.Client
	cache   *cache.Cache
	vectors *embeddings.Module
	hosts   script.Hosts
}

func newModules(now func() time.Time, private []string, group func(name string) (*embedding.Group, error)) *modules {
	return &modules{now: now, private: private, group: group, projects: map[string]*projectModules{}}
}

// host gives what the scripts of a project ask.
func (m *modules) host(p *project.Project) script.Host {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.projects[p.Namespace]
	switch {
	case known != nil && known.of == p:
		return known.hosts
	case known == nil:
		known = &projectModules{cache: cache.New(m.now), vectors: embeddings.New(m.group)}
	default:
		known.client.Close()
		known = &projectModules{cache: known.cache, vectors: known.vectors}
	}
	var allow fetch.List
	if p.Hook.HTTP != nil {
		allow = fetch.List(p.Hook.HTTP.Allow)
	}
	known.of, known.client = p, fetch.New(allow, nil)
	if m.answers != nil {
		known.client = fetch.NewRecorded(allow, m.answers)
	}
	known.hosts = script.Hosts{"http": known.client, "cache": known.cache, "files": projectFiles{p.Dir, m.private}, "embeddings": known.vectors}
	m.projects[p.Namespace] = known
	return known.hosts
}

// projectFiles reads a project's directory as it is at each call: a deployment may have swapped it.
type projectFiles struct {
	dir     string
	private []string
}

// Call carries out one operation of files.
func (f projectFiles) Call(ctx context.Context, op string, args bson.A) (any, error) {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return nil, errs.New(errs.NotFound, "no_file", "the project's directory can't be read").With(err)
	}
	defer root.Close() //nolint:errcheck // opened for reading
	if len(args) > 0 {
		if name, ok := args[0].(string); ok && f.isPrivate(root, name) {
			return nil, errs.New(errs.NotFound, "no_file", "there is no file %s in the project", name)
		}
	}
	return files.New(root).Call(ctx, op, args)
}

// isPrivate says that a file is one that holds secrets of the service.
func (f projectFiles) isPrivate(root *os.Root, name string) bool {
	info, err := root.Stat(filepath.FromSlash(filepath.Clean(name)))
	if err != nil {
		return false
	}
	for _, p := range f.private {
		if own, err := os.Stat(p); err == nil && os.SameFile(own, info) {
			return true
		}
	}
	return false
}
