package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/folder"
	"github.com/svcctl/svc/pkg/media"
	"github.com/svcctl/svc/pkg/project"
)

// maxOwners is how many of the records are named that have one damaged file.
const maxOwners = 3

// owners are the records that name a file.
type owners struct {
	first []Differing
	all   int
}

// trace has what a check has found of files of records say which ones these are, and what helps.
func (s *Snapshots) trace(ctx context.Context, p *project.Project, o *opened, beside *others, c *checking) error {
	of := map[string]*owners{} // by hash
	for _, f := range c.v.Found {
		if hash, ok := mediaHash(f.Path); ok {
			of[hash] = &owners{}
		}
	}
	if len(of) == 0 || c.m == nil {
		return nil
	}
	for i := range c.m.Collections {
		col := &c.m.Collections[i]
		from, err := openExport(ctx, o.dir, c.m, col)
		if err == nil {
			err = each(from, func(doc []byte) error {
				eachReference(c.m, col, doc, c.differing, func(at Differing) {
					if who := of[at.SHA256]; who != nil {
						if who.all++; len(who.first) < maxOwners {
							who.first = append(who.first, at)
						}
					}
				})
				return nil
			})
			from.close()
		}
		if err != nil && ctx.Err() != nil { // else it is damaged, too, and told of as that
			return ctx.Err()
		}
	}
	for i := range c.v.Found {
		f := &c.v.Found[i]
		hash, ok := mediaHash(f.Path)
		if !ok {
			continue
		}
		who := of[hash]
		if who.all > 0 {
			f.Text += ": " + who.text()
		}
		help, err := s.help(ctx, p, o.dir, beside, c, hash, who)
		if err != nil {
			return err
		}
		f.Text += "; " + help
	}
	return nil
}

// mediaHash gives the hash that a file of records has for a name.
func mediaHash(name string) (hash string, ok bool) {
	dir, hash := path.Split(name)
	return hash, dir == mediaDir+"/" && hexSum.MatchString(hash)
}

func (o *owners) text() string {
	out := ""
	for i := range o.first {
		if i > 0 {
			out += ", "
		}
		out += o.first[i].words()
	}
	if more := o.all - len(o.first); more > 0 {
		out += fmt.Sprintf(", and %d more", more)
	}
	return out
}

// help says what to do about a file of records that is damaged in a snapshot.
func (s *Snapshots) help(ctx context.Context, p *project.Project, dir *folder.Folder, beside *others, c *checking, hash string, who *owners) (string, error) {
	var damaged []fs.FileInfo
	if info, err := dir.Stat(path.Join(mediaDir, hash)); err == nil {
		damaged = append(damaged, info)
	}
	whole, same := 0, false
	for i := range who.first {
		if p.Namespace != c.m.Namespace { // what is served are files of others
			break
		}
		is, info, err := s.served(ctx, p, &who.first[i], hash, &c.hasher)
		if err != nil {
			return "", err
		}
		if is {
			whole++
		}
		same = same || info != nil && isAny(damaged, info)
	}
	if whole > 0 && !same {
		return "the file that is served is whole: take a new snapshot", nil
	}
	good, err := beside.whole(ctx, hash, damaged...)
	if same {
		return "the file that is served is the same one: " + uploadAnew(good, hash), err
	}
	if good != "" {
		return good + " has it whole", err
	}
	return "no other snapshot has it whole", err
}

// uploadAnew says how a file that is served gets what it had; good is a snapshot that has it, or "".
func uploadAnew(good, hash string) string {
	if good == "" {
		return "upload it anew; no snapshot has it whole"
	}
	return "upload it anew; " + good + " has it whole, as " + path.Join(mediaDir, hash)
}

// served says whether the file that a record names is there as it should be, and which one is there; nil: none is.
func (s *Snapshots) served(ctx context.Context, p *project.Project, at *Differing, hash string, h *hasher) (whole bool, info os.FileInfo, err error) {
	files, name, info, err := s.locate(p, at)
	if err != nil || info == nil {
		return false, nil, err
	}
	sum, _, err := h.file(ctx, files.Folder(), name)
	return err == nil && sum == hash, info, ctx.Err()
}

// locate finds the file that a record of a project names by the names of the config; info is nil if it is not there.
func (s *Snapshots) locate(p *project.Project, at *Differing) (files *media.Store, name string, info fs.FileInfo, err error) {
	if s.o.Media == nil {
		return nil, "", nil, nil
	}
	if has, err := s.hasFiles(p); err != nil || !has {
		return nil, "", nil, err
	}
	if files, err = s.o.Media.Store(p.Namespace); err != nil {
		return nil, "", nil, err
	}
	config := p.Collections[at.Collection]
	if config == nil {
		config = &project.Collection{Name: at.Collection}
	}
	dir := config.Uploads.Dir
	if dir == "" {
		dir = config.StoredName()
	}
	name, info, err = files.Locate(dir, at.Record, media.Key(config.StoredField(at.Field), at.Name))
	if errors.Is(err, errs.ErrNotFound) {
		return files, "", nil, nil
	}
	return files, name, info, err
}
