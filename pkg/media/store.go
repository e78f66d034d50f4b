package media

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/folder"
)

// Place is where the files of one field of one record are.
type Place struct {
	Dir    string // the collection's uploadPath, else its name
	Record string // 24 hex digits
	Field  string // path of the field
}

// Info is what is known of a file by its bytes.
type Info struct {
	Name          string
	Type          string // media type, without parameters
	Hash          string // SHA-256 in hex
	Size          int64
	Width, Height int // of a picture, as it is to be looked at; else 0
	ModTime       time.Time
	Warning       string // what a filter could not do as it says; for a header
}

// Limits is what an upload has to keep to.
type Limits struct {
	MaxBytes int64    // 0: any size
	Of       string   // whose limit that is, in words
	Types    []string // media types, or globs such as image/*; empty: all
}

// Options are what a Store needs of its surroundings.
type Options struct {
	Logger *slog.Logger
	Now    func() time.Time
	Images *Images // what filters made; Image needs it

	Fault folder.Fault // of what PutBack and Drop do; nil but in tests
}

// Store keeps the files of one project. All methods can be called at the same time, by several processes on one folder, too.
type Store struct {
	root   *os.Root
	folder *folder.Folder // the same
	opts   Options
	claims *claims

	removals *barrier // of files; closed by a Hold
	uploads  *barrier // that wait for their record; closed by Hold.Quiet

	seed  maphash.Seed
	locks [64]sync.Mutex // of records; see lock

	mu    sync.Mutex
	temps map[string]bool         // names in tmpDir that an upload of this process is at
	holds map[string]*hold        // files in place whose record is being written, by path
	times map[[2]string]time.Time // of files in place, by path and hash: see modified

	deferred map[[2]string]Live // by Place.Dir and record: what is to be removed when a Hold ends
}

const (
	tmpDir     = ".tmp"
	folderMode = 0o700
	fileMode   = 0o600
)

// Open opens the files below dir, which is made when it is not there.
func Open(dir string, opts Options) (*Store, error) {
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return nil, fmt.Errorf("make the folder of uploads: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder of uploads: %w", err)
	}
	claims, err := openClaims(root)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the locks of the folder of uploads: %w", err), root.Close())
	}
	if claims.file == nil {
		opts.Logger.Warn("the folder of uploads has no file locks: let one instance only use it", "folder", dir)
	}
	s := &Store{
		root: root, folder: folder.Of(root, opts.Fault), opts: opts, claims: claims, seed: maphash.MakeSeed(),
		removals: &barrier{claims: claims, at: removalsByte}, uploads: &barrier{claims: claims, at: uploadsByte},
		temps: map[string]bool{}, holds: map[string]*hold{}, times: map[[2]string]time.Time{}, deferred: map[[2]string]Live{},
	}
	if err := s.makeFolder(tmpDir); err != nil {
		return nil, errors.Join(fmt.Errorf("make the folder of uploads: %w", err), s.Close())
	}
	return s, nil
}

// isGone says that the folder was removed, with what Open makes in it.
func (s *Store) isGone() bool {
	for _, name := range []string{tmpDir, claimsFile} {
		if _, err := s.root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// Close ends the use of the folder. Files that were opened can be read on.
func (s *Store) Close() error { return errors.Join(s.claims.close(), s.root.Close()) }

// lock keeps others from changing which files of a record there are. Never take two at once: records share locks.
func (s *Store) lock(record string) (unlock func()) {
	l := &s.locks[maphash.String(s.seed, record)%uint64(len(s.locks))]
	l.Lock()
	return l.Unlock
}

var recordID = regexp.MustCompile(`^[0-9a-f]{24}$`)

// CheckDir says whether a Place can have that Dir: a relative path of plain names. A name of 24 hex digits would be
// taken for a record.
func CheckDir(dir string) error {
	dir = path.Clean(dir)
	ok := fs.ValidPath(dir) && dir != "."
	for name := range strings.SplitSeq(dir, "/") {
		ok = ok && plainName(name) && !recordID.MatchString(name)
	}
	if !ok {
		return errs.New(errs.Invalid, "bad_upload_path", "%q is no folder for uploads: use a relative path of plain names, none of which begins with a dot or is 24 hex digits", dir)
	}
	return nil
}

// plainName says that name can be the name of a file or folder of ours.
func plainName(name string) bool {
	return name != "" && len(name) <= maxName && name[0] != '.' && !strings.ContainsAny(name, `/\`) && strings.IndexFunc(name, unicode.IsControl) < 0
}

// recordFolder gives the folder of a record. Its id is checked here, before anything is removed by it.
func recordFolder(dir, record string) (string, error) {
	if err := CheckDir(dir); err != nil {
		return "", err
	}
	if !recordID.MatchString(record) {
		return "", errs.New(errs.Invalid, "bad_record_id", "%q is no id of a record that can have files", record)
	}
	return path.Join(dir, record), nil
}

func (p Place) folder() (string, error) {
	folder, err := recordFolder(p.Dir, p.Record)
	if err != nil {
		return "", err
	}
	if p.Field == "" {
		return "", errs.New(errs.Invalid, "bad_field", "a file needs a field")
	}
	return folder + "/" + fieldFolder(p.Field), nil
}

var plainField = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}$`)

// fieldFolder gives the folder of a field: its path, where that can be a name, else its hash.
func fieldFolder(field string) string {
	if plainField.MatchString(field) {
		return field
	}
	sum := sha256.Sum256([]byte(field))
	return "~" + hex.EncodeToString(sum[:16])
}

// makeFolder makes folder and what is above it, durably.
func (s *Store) makeFolder(folder string) error {
	for end := 0; end < len(folder); {
		next := strings.IndexByte(folder[end+1:], '/')
		above := folder[:end]
		if next < 0 {
			end = len(folder)
		} else {
			end += 1 + next
		}
		err := s.root.Mkdir(folder[:end], folderMode)
		if err == nil {
			err = s.sync(path.Join(".", above))
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return s.checkPath(folder)
}

// checkPath says that each part of the path is there and none is a symbolic link; all but the last are folders.
func (s *Store) checkPath(name string) error {
	for end := range len(name) + 1 {
		if end < len(name) && name[end] != '/' {
			continue
		}
		info, err := s.root.Lstat(name[:end])
		if err != nil {
			return err
		}
		if !info.IsDir() && (end < len(name) || !info.Mode().IsRegular()) {
			return &fs.PathError{Op: "open", Path: name[:end], Err: errors.New("neither a folder nor a file")}
		}
	}
	return nil
}

// sync makes durable which files a folder has.
func (s *Store) sync(folder string) error {
	f, err := s.root.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// unwritten is the error of a write to the disk that failed.
func unwritten(err error, doing string) error {
	if err == nil {
		return nil
	}
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, full) {
			return errs.New(errs.Full, "uploads_full", "there is no space for the file on the server: nothing was stored; try again when there is").With(err)
		}
	}
	return errs.Wrap(err, doing)
}

// cause is what the system says about a failure, without paths.
func cause(err error) string {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number.Error()
	}
	return "the file system refused"
}
