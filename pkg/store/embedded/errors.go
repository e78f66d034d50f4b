package embedded

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/svcctl/svc/pkg/errs"
)

// ErrNoStore matches the error for a directory without a store.
var ErrNoStore = errs.New(errs.NotFound, "no_store", "no store yet")

var (
	errFailed     = errs.New(errs.Unavailable, "store_failed", "the store can't write any more and must be restarted")
	errReadOnly   = errs.New(errs.Unavailable, "store_read_only", "the store was opened to be read only")
	errBadOptions = errs.New(errs.Invalid, "store_options", "the settings of the store are not valid")
	errBuildPanic = errs.New(errs.Internal, "internal", "the build of the index failed")
	errDropped    = errs.New(errs.Conflict, "dropped", "the index was dropped while it was being built")
	errSortMemory = errs.New(errs.Limit, "sort_memory", "too many documents to sort: narrow the filter, ask for fewer, or add an index on the sort fields")
	errSeenMemory = errs.New(errs.Limit, "read_memory", "too many documents for the branches or lists of this filter: narrow it, or ask for fewer")
	errEntries    = errs.New(errs.TooLarge, "index_entries", "the document has more than 64 MiB of entries in its indexes: shorten its lists, or what is indexed beside them")
	errIndexes    = errs.New(errs.Invalid, "bad_index", "a collection has 63 indexes at most beside the one on _id: drop one first")
	errBatchSize  = errs.New(errs.Limit, "write_too_large", "too much for one atomic write: send fewer documents at once")
)

// internal is for failures of the engine: text for the log only.
func internal(err error, doing string) error {
	if err == nil {
		return nil
	}
	return errs.Wrap(err, doing)
}

// lockError tells that somebody else has the lock from that it could not be asked for.
func lockError(opts *Options, err error) error {
	const text = "the store in %s is in use by another process%s: stop that one first, or use another directory"
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return openError(opts.Dir, err)
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EACCES):
		who := ""
		if pid := lockHolder(opts.FS.PathJoin(opts.Dir, lockName)); opts.FS == vfs.Default && pid > 0 {
			who = fmt.Sprintf(" (pid %d)", pid)
		}
		return errs.New(errs.Unavailable, codeInUse, text, opts.Dir, who)
	case strings.Contains(err.Error(), "lock held"):
		return errs.New(errs.Unavailable, codeInUse, text, opts.Dir, "") // this process itself
	default:
		return openError(opts.Dir, err)
	}
}

// CodeDamaged is the code of the error for a store of which files are so damaged, or missing, that it can't be opened.
const CodeDamaged = "store_damaged"

const codeInUse = "store_in_use"

// lockName is the file that the engine locks in the directory.
const lockName = "LOCK"

// damageError is proof that a file is not as it was written: "000007.log is damaged at byte 14", "000009.sst is missing".
type damageError struct{ text string }

func (e *damageError) Error() string { return e.text }

func openError(dir string, err error) error {
	if what := damageIn(err); what != "" {
		return errs.New(errs.Unavailable, CodeDamaged, "the store in %s can't be opened: %s: restore a backup", dir, what)
	}
	return errs.New(errs.Unavailable, "store_open", "the store in %s can't be opened", dir).With(err)
}

// What the engine says of tables that are not as its manifest has them.
var (
	wrongSize    = regexp.MustCompile(`(\d+): object size mismatch .*: (\d+) \(disk\) != (\d+) \(MANIFEST\)`)
	missingTable = regexp.MustCompile(`file (\d+) \(type sstable\) unknown`)
)

// damageIn tells, in words, what is wrong with the files of a store that the engine does not open; "" if it is something
// else, such as a right that is missing.
func damageIn(err error) string {
	if damage, ok := errors.AsType[*damageError](err); ok {
		return damage.text
	}
	if pebble.ExtractDataCorruptionInfo(err) != nil {
		return damageText(err)
	}
	if errors.Is(err, pebble.ErrDBNotPristine) { // it looks like a store of an older format
		return "a file marker.format-version.* is missing"
	}
	var found []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if m := wrongSize.FindStringSubmatch(line); m != nil {
			found = append(found, fmt.Sprintf("%s.sst has %s bytes instead of %s", m[1], m[2], m[3]))
		} else if m := missingTable.FindStringSubmatch(line); m != nil {
			found = append(found, m[1]+".sst is missing")
		}
	}
	if len(found) > 0 {
		return strings.Join(found, ", ")
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, fs.ErrNotExist) {
		return filepath.Base(path.Path) + " is missing"
	}
	if errors.Is(err, pebble.ErrCorruption) {
		return damageText(err)
	}
	return ""
}

func errNoStore(dir string) error {
	return errs.New(ErrNoStore.Kind, ErrNoStore.Code, "no store in %s yet", dir)
}

func errLayout(dir string, found []byte) error {
	return errs.New(errs.Unavailable, "store_version",
		"the store in %s was written by another version of this program (layout %s, this one has %d): go on with that version, "+
			"or export what is there with it, start this one with an empty directory, and import it",
		dir, cmp.Or(strings.TrimLeft(hex.EncodeToString(found), "0"), "0"), layoutVersion)
}

// engineLogger gives the engine's log to slog. The engine says Fatalf when its log or manifest can't be written,
// and expects not to come back; here it comes back to a store that has failed.
type engineLogger struct{ s *Store }

func (l engineLogger) Infof(format string, args ...any) {
	l.s.opts.Logger.Debug("store engine", slog.String("text", fmt.Sprintf(format, args...)))
}

func (l engineLogger) Errorf(format string, args ...any) {
	// Behind an error of a damaged file is a line that is of use to the engine's own code only.
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n<corruption detail carrier>", "")
	l.s.opts.Logger.Error("store engine", slog.String("text", text))
}

func (l engineLogger) Fatalf(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	l.s.opts.Logger.Error("store engine failed", slog.String("text", err.Error()))
	l.s.fail(err)
}
