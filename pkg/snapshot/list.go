package snapshot

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/folder"
	"github.com/svcctl/svc/pkg/project"
)

var profileDir = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)

// isProfileDir says that a folder can be that of a profile's snapshots.
func isProfileDir(name string) bool { return profileDir.MatchString(name) }

// CheckProfileName refuses what can't be the name of a profile (Invalid).
func CheckProfileName(name string) error {
	if !isProfileDir(name) {
		return errs.New(errs.Invalid, "bad_profile", "%.80q can't be the name of a snapshot profile: use letters, digits, '_', '-' and '.', 64 at most", name)
	}
	return nil
}

// List gives the snapshots of a project, newest first.
func (s *Snapshots) List(ctx context.Context, p *project.Project) ([]Info, error) {
	root, err := s.folder(p, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unwritten(err, "open the folder of snapshots")
	}
	defer root.Close() //nolint:errcheck // it was only read
	var all []Info
	err = eachSnapshot(root, func(profile, id string) error {
		if ctx.Err() != nil {
			return ended(ctx, ctx.Err())
		}
		info, err := infoOf(root, profile, id)
		if err == nil {
			all = append(all, info)
		}
		return err
	})
	slices.SortFunc(all, func(a, b Info) int { // of two of one second, the manifests know
		return cmp.Or(strings.Compare(b.second(), a.second()), b.ConsistentAt.Compare(a.ConsistentAt), strings.Compare(b.ID, a.ID), strings.Compare(a.Profile, b.Profile))
	})
	return all, unwritten(err, "list snapshots")
}

// second is the time that an id begins with.
func (i *Info) second() string {
	at, _, _ := strings.Cut(i.ID, "-")
	return at
}

// profileDirs lists the folders of profiles.
func profileDirs(root *folder.Folder) (names []string, err error) {
	list, err := root.Entries(".")
	for _, e := range list {
		if e.IsDir() && isProfileDir(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// eachSnapshot calls fn for the name of each snapshot.
func eachSnapshot(root *folder.Folder, fn func(profile, id string) error) error {
	profiles, err := profileDirs(root)
	if err != nil {
		return err
	}
	for _, profile := range profiles {
		list, err := root.Entries(profile)
		if err != nil {
			return err
		}
		for _, x := range list {
			if !x.IsDir() || !snapshotID.MatchString(x.Name()) {
				continue
			}
			if err := fn(profile, x.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// infoOf reads what is known of a snapshot. One that goes meanwhile is told of as one that can't be read.
func infoOf(root *folder.Folder, profile, id string) (Info, error) {
	at := path.Join(profile, id)
	info := Info{State: readState(root, at)}
	dir, err := root.Sub(at)
	if err == nil {
		defer dir.Close() //nolint:errcheck // it was only read
		var m *Manifest
		if m, err = readHead(dir); err == nil {
			info.Manifest = *m
			info.Differing = slices.Clone(m.Differing[:min(1, len(m.Differing))]) // there may be as many as records, and a list holds all snapshots: it is asked whether there are some
		}
	}
	switch {
	case err != nil:
		info.Manifest, info.Problem = Manifest{}, manifestFile+": "+problem(err)
	case info.ID != id:
		info.Manifest, info.Problem = Manifest{}, manifestFile+" is that of "+info.ID
	}
	info.ID, info.Profile = id, profile // the folder's: somebody may have given it another name
	return info, nil
}

// problem words an error of a file's content for people.
func problem(err error) string {
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return cause(err)
	}
	return err.Error()
}

// Show gives what is known of one snapshot, with the list of its files.
func (s *Snapshots) Show(_ context.Context, p *project.Project, id string) (Info, error) {
	o, err := s.open(p, id)
	if err != nil {
		return Info{}, err
	}
	defer o.close()
	m, err := o.manifest()
	if err != nil {
		return Info{}, err
	}
	m.Profile = path.Dir(o.at)
	return Info{Manifest: *m, State: readState(o.root, o.at)}, nil
}

// Read calls fn with a snapshot that is not deleted meanwhile, and its folder, in which nothing may be changed.
func (s *Snapshots) Read(_ context.Context, p *project.Project, id string, fn func(dir *folder.Folder, m *Manifest) error) error {
	o, err := s.open(p, id)
	if err != nil {
		return err
	}
	defer o.close()
	m, err := o.manifest()
	if err != nil {
		return err
	}
	return fn(o.dir, m)
}
