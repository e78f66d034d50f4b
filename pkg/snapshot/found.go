package snapshot

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
)

// Founder makes projects that snapshots are restored into. Found, Keep and Abandon of one namespace are called one at a time.
type Founder interface {
	// Compile gives the config of a project as that of another one, without its tokens, and refuses it where Found would. Nothing is made by
	// it. A foreign config, of which nobody knows who has written it, is refused if it asks for variables of this service or files of secrets.
	Compile(ctx context.Context, namespace string, of *project.Project, config project.Bundle, foreign bool) (*project.Detached, error)
	// Found makes what Compile has given: its files, and a registration that nobody is served. What fails is ended by Abandon.
	Found(ctx context.Context, d *project.Detached) (*project.Project, error)
	// Founding says that a project was founded, and neither kept nor abandoned since.
	Founding(ctx context.Context, p *project.Project) (bool, error)
	// Keep has a project that was founded be served from now on.
	Keep(ctx context.Context, p *project.Project) error
	// Abandon removes what Found has made of a project, which may be nothing.
	Abandon(ctx context.Context, p *project.Project) error
}

// RestoreNew is Restore into a project that is made for it, of the config of the snapshot. Whatever fails, or ends the process, before the
// records are in their place leaves no project, and whatever does behind it a whole one, by EndFounding at the latest.
func (s *Snapshots) RestoreNew(ctx context.Context, p *project.Project, id, namespace string, f Founder, o RestoreOptions, report Report) (RestoreResult, error) {
	return s.restoreFrom(ctx, p, id, o, report, func(r *restore) error {
		config, err := r.configOf()
		if err != nil {
			return err
		}
		info, err := s.Look(ctx, p, id)
		if err != nil {
			return err
		}
		foreign := info.State.Foreign()
		if err := s.isFree(ctx, namespace); err != nil {
			return err
		}
		target, err := f.Compile(ctx, namespace, p, config, foreign)
		if err != nil {
			return err
		}
		r.own = true
		r.into(target.Project)
		if o.DryRun {
			r.tellMade(target, foreign)
			return r.dryRun(ctx)
		}
		return s.alone(ctx, namespace, func(ctx context.Context) error {
			r.tellMade(target, foreign) // once: who is not alone tries again
			return r.found(ctx, target, f)
		})
	})
}

// found makes the project, and restores into it, by somebody who is alone.
func (r *restore) found(ctx context.Context, target *project.Detached, f Founder) error {
	if err := r.s.isFree(ctx, target.Namespace); err != nil { // once more, now that nobody else makes it
		return err
	}
	made, err := f.Found(ctx, target)
	if made != nil {
		r.into(made)
	}
	if err == nil {
		err = r.run(ctx)
	}
	restored := err == nil && len(r.parts) > 0
	if err == nil {
		err = f.Keep(context.WithoutCancel(ctx), made)
	}
	if err == nil || made == nil { // of another one, somebody else is registered by that name
		return err
	}
	switch left := r.s.endFounding(context.WithoutCancel(ctx), made, f); {
	case left != nil:
		r.s.o.Logger.WarnContext(ctx, "a project that a restore was making is not ended yet; that is tried again", "namespace", made.Namespace, "error", left)
	case restored: // as what is noted of the run says, and it is kept by now
		r.s.o.Logger.WarnContext(ctx, "a project that a restore has made was not kept at once", "namespace", made.Namespace, "error", err)
		return nil
	}
	return err
}

// EndFounding ends what a restore has left that was making a project, of which p need have no more than id and namespace: it is kept if its
// records are in their place, else nothing stays of it. While the restore goes on, it is ErrBusy.
func (s *Snapshots) EndFounding(ctx context.Context, p *project.Project, f Founder) error {
	return ended(ctx, s.alone(ctx, p.Namespace, func(ctx context.Context) error { return s.endFounding(ctx, p, f) }))
}

func (s *Snapshots) endFounding(ctx context.Context, p *project.Project, f Founder) error {
	if founding, err := f.Founding(ctx, p); err != nil || !founding { // who looked before was not alone
		return err
	}
	if err := s.recover(ctx, p); err != nil {
		return err
	}
	there, err := s.o.Store.Database(project.DatabaseName(p.Namespace)).CollectionNames(ctx)
	if err != nil {
		return err
	}
	if len(there) > 0 { // there were none before, and all came in one step
		return f.Keep(ctx, p)
	}
	if s.o.Media != nil {
		if err := s.o.Media.Drop(p.Namespace); err != nil {
			return err
		}
	}
	return f.Abandon(ctx, p)
}

// isFree refuses a namespace of which there are records or files: of a project that was registered once, which nothing may be done to.
func (s *Snapshots) isFree(ctx context.Context, namespace string) error {
	there, err := s.o.Store.Database(project.DatabaseName(namespace)).CollectionNames(ctx)
	if err != nil {
		return err
	}
	var files []string
	if s.o.Media != nil {
		if files, err = s.o.Media.Namespaces(); err != nil {
			return err
		}
	}
	if len(there) > 0 || slices.Contains(files, namespace) {
		return errs.New(errs.Conflict, "namespace_used",
			"there are records or files of a project %s that is registered no more: register it again and restore into that, or choose another namespace", namespace)
	}
	return nil
}

// configOf reads the config that a snapshot has.
func (r *restore) configOf() (project.Bundle, error) {
	out := project.Bundle{Entry: r.from.m.Entry, Files: map[string][]byte{}}
	for i := range r.from.m.Files {
		f := &r.from.m.Files[i]
		name, ok := strings.CutPrefix(f.Path, configDir+"/")
		if !ok {
			continue
		}
		if len(out.Files) == project.MaxFiles {
			return out, damaged("%s: no config has so many files", path.Dir(f.Path))
		}
		text, err := r.from.dir.Read(f.Path, project.MaxFileSize)
		switch {
		case err != nil:
			return out, damaged("%s: %s", f.Path, cause(err))
		case sumOf(text) != f.SHA256:
			return out, damaged("%s: %s", f.Path, errSum)
		}
		out.Files[name] = text
	}
	if out.Files[out.Entry] == nil {
		return out, damaged("%s: the manifest does not have it", path.Join(configDir, out.Entry))
	}
	return out, nil
}
