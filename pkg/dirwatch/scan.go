package dirwatch

import (
	"crypto/sha256"
	"encoding/binary"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// maxFiles bounds what is looked at in one tree.
	maxFiles = 20_000
	// maxHashed is the size above which a file is known by size and time instead of content.
	maxHashed = 4 << 20
	// settled is the age from which a file's modification time tells two versions of it apart.
	settled = 2 * time.Second
	// maxLinks bounds the symbolic links on the way to a directory.
	maxLinks = 40
)

// snapshot is what one look at a tree found.
type snapshot struct {
	sum       [32]byte               // over the names and contents of all files; zero when there is no directory
	files     map[string]file        // by slash path relative to the directory
	dirs      map[string]fs.FileInfo // real paths of the directories in the tree
	anchors   map[string]anchor      // directories outside of the tree in which some names matter
	truncated bool
}

// anchor is a directory through which the way to the tree leads, where a change of some names changes the tree.
type anchor struct {
	info  fs.FileInfo
	names []string
}

type file struct {
	size    int64
	modTime time.Time
	sum     [32]byte
	trusted bool // size and time are enough to know that it is unchanged
}

// concerns says whether an event for a path may have changed the tree.
func (s *snapshot) concerns(name string) bool {
	if _, ok := s.dirs[name]; ok {
		return true
	}
	dir, base := filepath.Split(name)
	dir = filepath.Clean(dir)
	if _, ok := s.dirs[dir]; ok && !ignored(base) {
		return true
	}
	return slices.Contains(s.anchors[dir].names, base)
}

// copied is how copies are called that the service takes of files, large ones among them, and what it makes on the way.
var copied = regexp.MustCompile(`^(\.lock|\.(trash|partial)-.*|[0-9]{8}T[0-9]{6}Z-[a-z0-9]{6}(\.state\.json)?)$`)

// ignored says whether a name is one that editors, version control and the service's snapshots make for themselves.
func ignored(name string) bool {
	switch {
	case copied.MatchString(name):
		return true
	case name == ".git", name == "4913": // vim probes a directory with this name
		return true
	case strings.HasSuffix(name, "~"), strings.HasPrefix(name, ".#"): // backups, and locks of emacs
		return true
	case len(name) > 1 && strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#"): // what emacs has not saved yet
		return true
	case strings.HasPrefix(name, ".goutputstream-"): // what GNOME's editors rename to the file
		return true
	}
	return strings.HasPrefix(name, ".") && slices.Contains([]string{".swp", ".swo", ".swx", ".kate-swp"}, path.Ext(name))
}

// scan looks at the tree under dir. known are the files of the look before, which spare reading what is unchanged.
func scan(dir string, skip []string, known map[string]file) snapshot {
	s := snapshot{files: map[string]file{}, dirs: map[string]fs.FileInfo{}, anchors: map[string]anchor{}}
	realDir, ok := s.resolve(dir)
	if !ok {
		return s
	}
	root, err := os.OpenRoot(realDir)
	if err != nil {
		return s
	}
	defer root.Close() //nolint:errcheck // it was only read
	info, err := root.Stat(".")
	if err != nil {
		return s
	}
	sc := scanner{snapshot: &s, root: root, dir: realDir, skip: skip, known: known, now: time.Now()}
	sc.walk(".", []fs.FileInfo{info}, true, false)

	names := make([]string, 0, len(s.files))
	for name := range s.files {
		names = append(names, name)
	}
	slices.Sort(names)
	h := sha256.New()
	for _, name := range names {
		f := s.files[name]
		h.Write([]byte(name))
		h.Write([]byte{0})
		h.Write(f.sum[:])
	}
	h.Sum(s.sum[:0])
	return s
}

// resolve follows the symbolic links on the way to dir by hand, and notes each place where the way could change.
func (s *snapshot) resolve(dir string) (string, bool) {
	volume := filepath.VolumeName(dir)
	cur := volume + string(filepath.Separator)
	rest := parts(dir[len(volume):])
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			cur = filepath.Dir(cur)
			continue
		}
		next := filepath.Join(cur, name)
		info, err := os.Lstat(next)
		if err != nil {
			s.anchor(cur, name)
			return "", false
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			cur = next
			continue
		}
		s.anchor(cur, name)
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return "", false
		}
		if filepath.IsAbs(target) {
			cur = filepath.VolumeName(target) + string(filepath.Separator)
			target = target[len(filepath.VolumeName(target)):]
		}
		rest = append(parts(target), rest...)
	}
	s.anchor(filepath.Dir(cur), filepath.Base(cur))
	return cur, true
}

func parts(p string) []string {
	return slices.DeleteFunc(strings.Split(filepath.ToSlash(p), "/"), func(s string) bool { return s == "" || s == "." })
}

func (s *snapshot) anchor(dir, name string) {
	info, err := os.Lstat(dir)
	if err != nil {
		return
	}
	a := s.anchors[dir]
	s.anchors[dir] = anchor{info: info, names: append(a.names, name)}
}

type scanner struct {
	*snapshot
	root  *os.Root
	dir   string // real path
	skip  []string
	known map[string]file
	now   time.Time
}

// walk looks at the directory rel. above are the directories from the root to it, which a link must not lead back to.
// hashed: its files count. linked: it was reached through a symbolic link, so that its real path is another.
func (sc *scanner) walk(rel string, above []fs.FileInfo, hashed, linked bool) {
	if !linked {
		sc.dirs[filepath.Join(sc.dir, filepath.FromSlash(rel))] = above[len(above)-1]
	}
	entries, err := fs.ReadDir(sc.root.FS(), rel)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := path.Join(rel, e.Name())
		if ignored(e.Name()) || slices.Contains(sc.skip, name) {
			continue
		}
		if len(sc.files) >= maxFiles || len(sc.dirs) >= maxFiles {
			sc.truncated = true
			return
		}
		info, err := sc.root.Stat(name)
		if err != nil {
			continue // gone, a dangling link, or one that leads outside, where no config may be
		}
		// Names like "..data" are where a mounted volume keeps its versions; the files are reached through links.
		counts := hashed && !strings.HasPrefix(e.Name(), "..")
		isLink := e.Type()&fs.ModeSymlink != 0
		switch {
		case info.IsDir():
			back := slices.ContainsFunc(above, func(a fs.FileInfo) bool { return os.SameFile(a, info) })
			if !back && (!isLink || counts) {
				sc.walk(name, append(slices.Clip(above), info), counts, linked || isLink)
			}
		case info.Mode().IsRegular() && counts:
			sc.files[name] = sc.file(name, info)
		}
	}
}

func (sc *scanner) file(name string, info fs.FileInfo) file {
	f := file{size: info.Size(), modTime: info.ModTime()}
	old, ok := sc.known[name]
	if ok && old.trusted && old.size == f.size && old.modTime.Equal(f.modTime) {
		return old
	}
	f.trusted = sc.now.Sub(f.modTime) > settled
	if f.size > maxHashed {
		f.sum = sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(f.size)^uint64(f.modTime.UnixNano())))
		return f
	}
	f.sum = sc.hash(name)
	return f
}

func (sc *scanner) hash(name string) (sum [32]byte) {
	in, err := sc.root.Open(name)
	if err != nil {
		return sum
	}
	defer in.Close() //nolint:errcheck // it was only read
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(in, 2*maxHashed)); err != nil {
		return sum
	}
	h.Sum(sum[:0])
	return sum
}

// gitLocked says whether a git command is changing the checkout that dir is in.
func gitLocked(dir string) bool {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git", "index.lock")); err == nil {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}
