package app

import (
	"context"
	"errors"

	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/script"
	"github.com/svcctl/svc/pkg/store/embedded"
	"github.com/svcctl/svc/pkg/system"
)

// ErrNoStore matches the error of Check that nothing can be registered yet.
var ErrNoStore = embedded.ErrNoStore

// CheckResult is what Check found about one registered project.
type CheckResult struct {
	Namespace   string
	Collections int
	Err         error // a *project.ConfigError, or why the files could not be read
}

// Check loads the config of every registered project, without serving or making anything. Where svcd has never run on the
// embedded store, the error is ErrNoStore.
func Check(ctx context.Context, cfg Config) (results []CheckResult, err error) {
	if err := checkProjectsDir(cfg.ProjectsDir); err != nil {
		return nil, err
	}
	st, err := openStore(ctx, cfg, embedded.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	models := system.New(st, system.Options{Now: cfg.Now})
	all, err := models.Projects.All(ctx)
	if err != nil {
		return nil, err
	}
	engine := script.NewEngine(script.Options{WorkerCommand: cfg.WorkerCommand})
	defer func() { err = errors.Join(err, engine.Close()) }()
	loader := &project.Loader{Env: cfg.Env, Private: cfg.privateFiles(), Scripts: project.NewScripts(engine.Compile)}
	for _, reg := range all {
		r := CheckResult{Namespace: reg.Namespace}
		p, err := controllers.Check(loader, cfg.ProjectsDir, reg.ConfigFile)
		if r.Err = err; err == nil {
			r.Collections = len(p.Collections)
		}
		results = append(results, r)
	}
	return results, nil
}
