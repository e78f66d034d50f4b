package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/media"
	"github.com/svcctl/svc/pkg/project"
)

// maxOwners is how many of the records are named that have one damaged file.
const maxOwners = 3

// owners are the records that name a file which is damaged in a snapshot.
type owners struct {
	named   []Differing // the first of those whose file is served, and is the same one; if there are none, of all
	all     int         // of these
	same    bool        // there are such
	whole   *Differing  // one whose file is served, and is whole; nil: none was found
	looked  int         // how many files were read for that
	damaged []fs.FileInfo
}

func (o *owners) add(at *Differing, same bool) {
	if same && !o.same {
		o.named, o.all, o.same = nil, 0, true
	}
	if same != o.same {
		return
	}
	if o.all++; len(o.named) < maxOwners {
		o.named = append(o.named, *at)
	}
}

// trace has what a check has found of files of records say which ones these are, and what helps.
func (s *Snapshots) trace(ctx context.Context, p *project.Project, o *opened, beside *others, c *checking) error {
	of := map[string]*owners{} // by hash
	for _, f := range c.v.Found {
		if hash, ok := mediaHash(f.Path); ok {
			of[hash] = &owners{}
			if info, err := o.dir.Stat(f.Path); err == nil {
				of[hash].damaged = append(of[hash].damaged, info)
			}
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
				var failed error
				eachReference(c.m, col, doc, c.differing, func(at Differing) {
					if who := of[at.SHA256]; who != nil && failed == nil {
						failed = s.owner(ctx, p, c, who, &at)
					}
				})
				return failed
			})
			from.close()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && errs.From(err).Code != ErrDamaged.Code { // which is told of as that
			return err
		}
	}
	for i := range c.v.Found {
		f := &c.v.Found[i]
		if hash, ok := mediaHash(f.Path); ok {
			help, err := of[hash].help(ctx, beside, hash)
			if err != nil {
				return err
			}
			f.Text += of[hash].text() + "; " + help
		}
	}
	return nil
}

// owner notes a record that names a damaged file, and looks at what is served of it.
func (s *Snapshots) owner(ctx context.Context, p *project.Project, c *checking, who *owners, at *Differing) error {
	if p.Namespace != c.m.Namespace { // what is served are files of others
		who.add(at, false)
		return nil
	}
	files, name, info, err := s.locate(p, at)
	if err != nil {
		return err
	}
	same := info != nil && isAny(who.damaged, info)
	who.add(at, same)
	if info == nil || same || who.whole != nil || who.looked == maxOwners {
		return nil
	}
	who.looked++
	if sum, _, err := c.hasher.file(ctx, files.Folder(), name); err == nil && sum == at.SHA256 {
		one := *at
		who.whole = &one
	}
	return ctx.Err()
}

// mediaHash gives the hash that a file of records has for a name.
func mediaHash(name string) (hash string, ok bool) {
	dir, hash := path.Split(name)
	return hash, dir == mediaDir+"/" && hexSum.MatchString(hash)
}

func (o *owners) text() string {
	out := ""
	for i := range o.named {
		if i > 0 {
			out += ", "
		} else {
			out = ": "
		}
		out += o.named[i].words()
	}
	if more := o.all - len(o.named); more > 0 {
		out += fmt.Sprintf(", and %d more", more)
	}
	return out
}

// help says what to do about a file of records that is damaged in a snapshot.
func (o *owners) help(ctx context.Context, beside *others, hash string) (string, error) {
	if o.whole != nil && !o.same {
		return "the file that is served is whole: take a new snapshot", nil
	}
	good, err := beside.whole(ctx, hash, o.damaged...)
	switch {
	case o.same && o.whole != nil:
		return "the file that is served is the same one: " + uploadIt + "; " + o.whole.words() + " has it whole", err
	case o.same:
		return "the file that is served is the same one: " + uploadAnew(good, hash), err
	case good != "":
		return good + " has it whole", err
	}
	return "no other snapshot has it whole", err
}

// uploadIt is what helps a record whose file is damaged or missing. In the place of a damaged file the new one gets another name.
const uploadIt = "upload it anew (its address may change)"

// uploadAnew says how a file that is served gets what it had; good is a snapshot that has it, or "".
func uploadAnew(good, hash string) string {
	if good == "" {
		return uploadIt + "; no snapshot has it whole"
	}
	return uploadIt + "; " + good + " has it whole, as " + path.Join(mediaDir, hash)
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
