package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"

	"github.com/svcctl/svc/pkg/store"
)

// The engine takes the first record of its log or manifest that is not whole for the end, as after a power cut, unless a
// later block of the file proves that there was more. Damage there would lose acknowledged writes without a word. So
// before the engine opens, logContent.damaged looks for what else proves it: every batch notes in the log which one was
// known to be on disk before it. What can't be told from a power cut is damage to what was written last to the log of a
// store that was not closed.

// A log or manifest is a row of blocks of chunks, none of which crosses a block. A chunk is
//
//	checksum 4, length 2, type 1, [number of the log 4, [synced 8]], data
//
// with little-endian numbers. The types 1 to 4 have the short header and are for manifests, 5 to 8 have the number too,
// and 9 to 12 everything: synced is up to where the log was on disk when the chunk was written. Of four types the first
// two begin a record. The checksum is over the type and all behind it. A log that was closed ends in a chunk of type 5
// with the number of the next log and without checksum and data.
const (
	logBlock   = 32 << 10
	sectorSize = 512 // what a disk writes whole
)

// logContent is the content of a log or, with number 0, a manifest.
type logContent struct {
	data   []byte
	number uint32
}

// piece is a chunk as its header tells it.
type piece struct {
	at, end int // in the file; end may be behind the block
	header  int
	kind    byte
	synced  uint64
	whole   bool // the checksum says so
	trailer bool // the end of a log that was closed
}

// begins says whether a chunk begins a record: two kinds do, of the four that each header has.
func (p piece) begins() bool { return p.kind%4 == 1 || p.kind%4 == 2 }

// ends says whether a chunk ends its record.
func (p piece) ends() bool { return p.kind%4 == 1 || p.kind%4 == 0 }

// noteMark begins a note of what is on disk, the last thing in a batch.
const noteMark = "on disk "

// noteOnDisk adds to b which batch is known to be on disk. It goes to the log alone.
func (s *Store) noteOnDisk(b *pebble.Batch) error {
	return b.LogData(binary.LittleEndian.AppendUint64([]byte(noteMark), s.onDisk.Load()), nil)
}

// noteAll tells the log that all of it is on disk, before it is closed.
func (s *Store) noteAll() error {
	note := binary.LittleEndian.AppendUint64([]byte(noteMark), s.onDisk.Load())
	return guarded("close the log", func() error { return s.db.LogData(note, pebble.Sync) })
}

// knowOnDisk keeps that b is on disk.
func (s *Store) knowOnDisk(b *pebble.Batch) {
	for n, now := uint64(b.SeqNum()), s.onDisk.Load(); n > now && !s.onDisk.CompareAndSwap(now, n); now = s.onDisk.Load() {
	}
}

// batch gives the number of the batch that begins in p: the first 8 bytes of its data.
func (l logContent) batch(p piece) uint64 {
	if !p.begins() || p.end-p.at-p.header < 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(l.data[p.at+p.header:])
}

// noted gives the number of the batch that p says is on disk; 0 if it says nothing.
func (l logContent) noted(p piece) uint64 {
	note := l.data[p.at+p.header : p.end]
	if !p.ends() || len(note) < 8+len(noteMark) || string(note[len(note)-8-len(noteMark):len(note)-8]) != noteMark {
		return 0
	}
	return binary.LittleEndian.Uint64(note[len(note)-8:])
}

// pieceAt reads the chunk at an offset; ok is false if there can't be any.
func (l logContent) pieceAt(at int) (c piece, ok bool) {
	block := l.data[at:min(len(l.data), (at/logBlock+1)*logBlock)]
	c = piece{at: at, header: 7}
	if len(block) >= 11 && l.number != 0 && bytes.Equal(block[:7], []byte{6: 5}) && binary.LittleEndian.Uint32(block[7:]) == l.number+1 {
		c.end, c.trailer, c.whole = at+11, true, true
		return c, true
	}
	if len(block) < c.header {
		return c, false
	}
	c.kind = block[6]
	fits := c.kind >= 1 && c.kind <= 4
	if l.number != 0 {
		c.header = 19
		if c.kind >= 5 && c.kind <= 8 {
			c.header = 11
		}
		if len(block) < c.header {
			return c, false
		}
		fits = c.kind >= 5 && c.kind <= 12 && binary.LittleEndian.Uint32(block[7:]) == l.number
	}
	if c.header == 19 {
		c.synced = binary.LittleEndian.Uint64(block[11:])
	}
	c.end = at + c.header + int(binary.LittleEndian.Uint16(block[4:]))
	c.whole = fits && c.end-at <= len(block) && checksum(block[6:c.end-at]) == binary.LittleEndian.Uint32(block)
	return c, true
}

func checksum(data []byte) uint32 {
	return cooked(crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
}

func cooked(sum uint32) uint32 { return (sum>>15 | sum<<17) + 0xa282ead8 }

// damaged gives the offset of the first chunk that is not whole but must have been.
func (l logContent) damaged() (at int, yes bool) {
	at, missing := l.end()
	if at == len(l.data) {
		return 0, false
	}
	c, _ := l.pieceAt(at)
	return at, l.goesOn(c, missing) || l.longer(at) || l.written(c)
}

// end gives the offset of the first chunk that is not whole; if there is none, of the end. The batch that comes next, or
// is under way, has the number missing or a higher one; 0: not known.
func (l logContent) end() (at int, missing uint64) {
	for at < len(l.data) {
		c, _ := l.pieceAt(at)
		switch {
		case c.trailer:
			return len(l.data), 0
		case l.padded(at):
			at = nextBlock(at)
		case c.whole:
			at = c.end
			if c.begins() {
				missing = l.batch(c)
			}
			if c.ends() && missing > 0 {
				missing++
			}
		default:
			return at, missing
		}
	}
	return len(l.data), 0
}

// padded says whether what is left of a block at an offset was too small for a chunk, and is as the engine leaves it.
func (l logContent) padded(at int) bool {
	rest := l.data[at:min(len(l.data), nextBlock(at))]
	zero := func(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }
	switch left := nextBlock(at) - at; {
	case len(rest) < 7:
		return true
	case left < 11:
		return zero(rest[:7]) // the engine looks at no more
	default:
		return left < 19 && zero(rest)
	}
}

func nextBlock(at int) int { return (at/logBlock + 1) * logBlock }

// goesOn says whether a chunk behind bad proves that bad was on disk: in a log it says so, in a manifest records are
// synced one by one.
func (l logContent) goesOn(bad piece, missing uint64) bool {
	at := nextBlock(bad.at) // the length of bad may be anything
	if bad.at < bad.end && bad.end < at {
		at = bad.end
	}
	for at < len(l.data) {
		c, ok := l.pieceAt(at)
		if !ok || !c.whole {
			at = nextBlock(at)
			continue
		}
		if c.trailer {
			return false // which is not synced before what is in front of it
		}
		if l.number == 0 && c.begins() {
			return true
		}
		if missing == 0 && c.begins() {
			missing = l.batch(c)
		}
		if l.number != 0 && (c.synced > uint64(bad.at) || (missing > 0 && l.noted(c) >= missing)) { //nolint:gosec // an offset
			return true
		}
		at = c.end
	}
	return false
}

// longer says whether the chunk at an offset is whole but for its length.
func (l logContent) longer(at int) bool {
	block := l.data[at:min(len(l.data), (at/logBlock+1)*logBlock)]
	if len(block) < 7 || block[6] == 0 {
		return false
	}
	if l.number != 0 && (len(block) < 11 || binary.LittleEndian.Uint32(block[7:]) != l.number) { // left by an older log
		return false
	}
	want, table := binary.LittleEndian.Uint32(block), crc32.MakeTable(crc32.Castagnoli)
	for sum, i := uint32(0), 6; i < len(block); i++ {
		if sum = crc32.Update(sum, table, block[i:i+1]); i > 6 && cooked(sum) == want {
			return true
		}
	}
	return false
}

// written says whether all sectors of the last chunk of a manifest were: then it is not whole for another reason. Logs
// are written over older ones, so of them it can't be told.
func (l logContent) written(c piece) bool {
	if l.number != 0 || c.kind < 1 || c.kind > 4 || c.end != len(l.data) {
		return false
	}
	for at := c.at; at < c.end; at = (at/sectorSize + 1) * sectorSize {
		if sector := l.data[at:min(c.end, (at/sectorSize+1)*sectorSize)]; len(bytes.Trim(sector, "\x00")) == 0 {
			return false
		}
	}
	return true
}

// checkLogs refuses a store of which the manifest or the newest log is damaged: of older logs, the engine knows that
// they must be whole.
func checkLogs(dir string, files vfs.FS) error {
	found, err := pebble.Peek(dir, files)
	if err != nil {
		return err
	}
	if !found.Exists {
		return checkUnused(dir, files)
	}
	if err := checkLog(files, files.PathJoin(dir, files.PathBase(found.ManifestFilename)), 0); err != nil {
		return err
	}
	newest, number, err := newestLog(dir, files)
	if err != nil || newest == "" {
		return err
	}
	return checkLog(files, newest, number)
}

// checkUnused refuses a directory in which the engine sees no store, and would begin a new one, although there are files of
// one. The marker that tells which manifest counts is made before any of them.
func checkUnused(dir string, files vfs.FS) error {
	names, err := files.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".log") {
			return &damageError{text: "the file marker.manifest.* is missing"}
		}
	}
	return nil
}

// newestLog gives the path and the number of the last log in a directory; "" if there is none.
func newestLog(dir string, files vfs.FS) (path string, number uint32, err error) {
	names, err := files.List(dir)
	if err != nil {
		return "", 0, err
	}
	for _, name := range names {
		text, isLog := strings.CutSuffix(name, ".log")
		if n, err := strconv.ParseUint(text, 10, 32); isLog && err == nil && n >= uint64(number) {
			path, number = files.PathJoin(dir, name), uint32(n)
		}
	}
	return path, number, nil
}

// cutLog takes from the newest log in a directory what is behind its last whole chunk, if that would pass for damage. It
// is for a copy of a log that was written to meanwhile: the copy may have what came later, but not what was before it.
// The engine is asked as well, for a copy that it refuses is none.
func cutLog(dir string, files vfs.FS) error {
	path, number, err := newestLog(dir, files)
	if err != nil || path == "" {
		return err
	}
	data, err := readLog(files, path)
	if err != nil {
		return err
	}
	end, damaged := logContent{data: data, number: number}.damaged()
	at, no, err := refused(dir, files)
	if err != nil {
		return err
	}
	if no && (!damaged || at < end) {
		end, damaged = at, true
	}
	if !damaged { // else it would be written twice for what an older log has left behind its end
		return nil
	}
	part := path + ".part"
	f, err := files.Create(part, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(data[:end])
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := files.Rename(part, path); err != nil {
		return err
	}
	return syncDir(dir, files)
}

// refused says whether the engine takes the newest log in a directory for damaged, and gives the offset of the first record
// that it can't read.
func refused(dir string, files vfs.FS) (at int, yes bool, err error) {
	logs, err := wal.Scan(wal.Dir{FS: files, Dirname: dir})
	if err != nil || len(logs) == 0 {
		return 0, false, err
	}
	r := logs[len(logs)-1].OpenForRead()
	defer closeInto(&err, r.Close)
	for {
		_, offset, err := r.NextRecord()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, record.ErrUnexpectedEOF):
			return 0, false, nil
		case errors.Is(err, record.ErrInvalidChunk), errors.Is(err, record.ErrZeroedChunk):
			return int(offset.Physical), true, nil
		case err != nil:
			return 0, false, err
		}
	}
}

func readLog(files vfs.FS, name string) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	var data bytes.Buffer
	info, err := f.Stat()
	if err == nil {
		data.Grow(int(info.Size()) + bytes.MinRead)
		_, err = data.ReadFrom(f)
	}
	return data.Bytes(), errors.Join(err, f.Close())
}

func checkLog(files vfs.FS, name string, number uint32) error {
	data, err := readLog(files, name)
	if err != nil {
		return err
	}
	if at, yes := (logContent{data: data, number: number}).damaged(); yes {
		return &damageError{text: fmt.Sprintf("%s is damaged at byte %d", files.PathBase(name), at)}
	}
	return nil
}

// tableDamaged logs that a read has met a table with a wrong checksum: once for each file. The read fails, and what is
// elsewhere can be read and written still; the engine by itself would end the process, again and again.
func (s *Store) tableDamaged(info pebble.DataCorruptionInfo) {
	file := s.opts.FS.PathBase(info.Path)
	if _, before := s.told.LoadOrStore(file, true); before || s.failed.Load() != nil {
		return
	}
	s.opts.Logger.Error("a file of the store is damaged: restore a backup; svcd check --store tells what is in the file",
		slog.String("file", file), slog.String("error", info.Details.Error()))
}

// damageText is what is wrong, in one line and with the file that is damaged if that is known.
func damageText(err error) string {
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil {
		return filepath.Base(info.Path) + " is damaged"
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

var blockAt = regexp.MustCompile(`block (\d+)/`)

// damagedBlock says where in a table the error of a checksum is: " at byte 4711", or what else is wrong with it.
func damagedBlock(err error) string {
	if m := blockAt.FindStringSubmatch(err.Error()); m != nil {
		return " at byte " + m[1]
	}
	return ": " + damageText(err)
}

// checkTables compares every block of the engine's tables with its checksum, and calls report for those that differ.
func (s *Store) checkTables(ctx context.Context, report func(file string, err error)) error {
	levels, err := s.db.SSTables()
	if err != nil {
		return internal(err, "list tables")
	}
	opts := s.engineOptions()
	opts.EnsureDefaults()
	for _, tables := range levels {
		for _, table := range tables {
			if ctx.Err() != nil {
				return store.Ended(ctx)
			}
			if table.Virtual { // a part of a file, all of which was read: the rest may be damaged (see repair.cut)
				continue
			}
			name := fmt.Sprintf("%s.sst", table.BackingSSTNum)
			err := s.checkTable(ctx, s.opts.FS.PathJoin(s.opts.Dir, name), opts.MakeReaderOptions())
			if errors.Is(err, fs.ErrNotExist) { // compacted away meanwhile
				continue
			}
			if err != nil {
				report(name, err)
			}
		}
	}
	return nil
}

func (s *Store) checkTable(ctx context.Context, path string, opts sstable.ReaderOptions) (err error) {
	f, err := s.opts.FS.Open(path)
	if err != nil {
		return err
	}
	var readable objstorage.Readable
	if readable, err = sstable.NewSimpleReadable(f); err != nil {
		return errors.Join(err, f.Close())
	}
	r, err := sstable.NewReader(ctx, readable, opts)
	if err != nil {
		return errors.Join(err, readable.Close())
	}
	return errors.Join(guarded("check", r.ValidateBlockChecksums), r.Close())
}
