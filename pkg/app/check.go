package app

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/system"
)

// CheckResult is what Check found about one registered project.
type CheckResult struct {
	Namespace   string
	Collections int
	Err         error // a *project.ConfigError, or why the files could not be read
}

// Check loads the config of every registered project, without serving or making anything.
func Check(ctx context.Context, cfg Config) (results []CheckResult, err error) {
	if err := checkProjectsDir(cfg.ProjectsDir); err != nil {
		return nil, err
	}
	if dir, ok := cfg.embeddedDir(); ok {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return nil, nil // nothing was ever registered
		}
	}
	st, err := OpenStore(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	models := system.New(st, system.Options{Now: cfg.Now})
	all, err := models.Projects.All(ctx)
	if err != nil {
		return nil, err
	}
	for _, reg := range all {
		r := CheckResult{Namespace: reg.Namespace}
		p, err := controllers.Check(cfg.ProjectsDir, reg.ConfigFile, cfg.Env)
		if r.Err = err; err == nil {
			r.Collections = len(p.Collections)
		}
		results = append(results, r)
	}
	return results, nil
}
