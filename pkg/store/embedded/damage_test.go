package embedded_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"

	"github.com/svcctl/svc/pkg/store/embedded"
)

const logNumber = 7

// gapped is a log with a whole block behind a gap, which says that up to synced all was on disk.
func gapped(t *testing.T, before int, gap []byte, synced uint64) []byte {
	t.Helper()
	log := embedded.AppendLogChunk(nil, logNumber, 0, make([]byte, before-19))
	log = append(log, gap...)
	log = append(log, bytes.Repeat([]byte("x"), embedded.LogBlock-len(log))...)
	return embedded.AppendLogChunk(log, logNumber, synced, make([]byte, 100))
}

// What is behind a gap counts, whatever the gap looks like: its bytes are those of an older log, and may pass for anything.
func TestLogGaps(t *testing.T) {
	long := []byte("\x01\x02\x03\x04\xff\xff\x09") // as if the chunk went on behind the next block
	for name, c := range map[string]struct {
		before int
		gap    []byte
	}{
		"text":                {5000, nil},
		"a chunk of 65 KB":    {5000, long},
		"a short chunk":       {5000, []byte("\x01\x02\x03\x04\x05\x00\x09")},
		"zeros":               {5000, make([]byte, 100)},
		"too small for one":   {embedded.LogBlock - 12, nil},
		"18 bytes":            {embedded.LogBlock - 18, nil},
		"8 bytes":             {embedded.LogBlock - 8, nil},
		"zeros, but the last": {embedded.LogBlock - 18, make([]byte, 17)},
	} {
		if at, yes := embedded.LogDamaged(gapped(t, c.before, c.gap, uint64(c.before)+20), logNumber); !yes || at != c.before {
			t.Errorf("%s: damaged %v, at %d, want it at %d", name, yes, at, c.before)
		}
		if at, yes := embedded.LogDamaged(gapped(t, c.before, c.gap, uint64(c.before)), logNumber); yes {
			t.Errorf("%s: what never was on disk is damaged, at %d", name, at)
		}
	}
	for _, left := range []int{18, 12, 8, 6, 1} { // what a block ends with
		log := gapped(t, embedded.LogBlock-left, make([]byte, left), embedded.LogBlock)
		if at, yes := embedded.LogDamaged(log, logNumber); yes {
			t.Errorf("a block that ends in %d zeros is damaged, at %d", left, at)
		}
	}
}

// Copies of logs that are torn in any way are cut where the engine reads them, and have all in front of the first tear.
func TestCutLog(t *testing.T) {
	seed := seedOf(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range figure(t, "TORN", 300, 60) {
		log, whole := tornLog(r)
		fs := vfs.NewMem()
		write(t, fs, "/000007.log", log)
		if err := embedded.CutLog("/", fs); err != nil {
			t.Fatal(err)
		}
		if err := readByEngine(fs); err != nil {
			t.Errorf("log %d: the engine says %v", i, err)
		}
		data := readFile(t, fs, "/000007.log")
		if at, yes := embedded.LogDamaged(data, logNumber); yes {
			t.Errorf("log %d: still damaged, at %d of %d", i, at, len(data))
		}
		if len(data) < whole {
			t.Errorf("log %d: it has %d bytes, but %d were whole", i, len(data), whole)
		}
	}
}

// tornLog is a log that was copied block by block while it was written over an older one. Everything up to whole was there
// when the copy began.
func tornLog(r *rand.Rand) (log []byte, whole int) {
	const blocks = 4
	older := make([]byte, blocks*embedded.LogBlock)
	for i := range older {
		older[i] = "xyz\x00\x01\x09"[r.IntN(6)]
	}
	if r.IntN(2) == 0 {
		copy(older, written(r, 6, nil))
	}
	var ends []int
	now := written(r, logNumber, &ends)
	at := r.IntN(len(ends))
	for block := range blocks { // each read after some more was written
		n := ends[min(at, len(ends)-1)]
		if block == 0 {
			whole = lastEnd(ends, min(n, embedded.LogBlock))
		}
		state := append(bytes.Clone(now[:n]), older[min(n, len(older)):]...)
		log = append(log, state[block*embedded.LogBlock:(block+1)*embedded.LogBlock]...)
		at += r.IntN(12)
	}
	return log, whole
}

// lastEnd is the last of the ends of records up to at.
func lastEnd(ends []int, at int) (last int) {
	for _, end := range ends {
		if end <= at {
			last = end
		}
	}
	return last
}

// written is a log of records that were synced one by one. It keeps where they end.
func written(r *rand.Rand, number uint32, ends *[]int) (log []byte) {
	const header, batch, room = 19, 12, 50
	for len(log) < 3*embedded.LogBlock {
		left := embedded.LogBlock - len(log)%embedded.LogBlock
		n, zeros := header+batch+r.IntN(6000), 0
		if left-n < room { // up to the end of the block, or nearly
			zeros = r.IntN(header)
			n = left - zeros
		}
		record := bytes.Repeat([]byte("a"), n-header)
		copy(record, make([]byte, batch))
		record[8] = 1 // entry
		log = embedded.AppendLogChunk(log, number, uint64(len(log)), record)
		if ends != nil {
			*ends = append(*ends, len(log))
		}
		log = append(log, make([]byte, zeros)...)
	}
	return log
}

func write(t *testing.T, fs vfs.FS, name string, data []byte) {
	t.Helper()
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// readByEngine reads a log as the engine does when it opens a store.
func readByEngine(fs vfs.FS) error {
	logs, err := wal.Scan(wal.Dir{FS: fs, Dirname: "/"})
	if err != nil {
		return err
	}
	r := logs[0].OpenForRead()
	for err == nil {
		_, _, err = r.NextRecord()
	}
	if errors.Is(err, io.EOF) || errors.Is(err, record.ErrUnexpectedEOF) {
		err = nil
	}
	return errors.Join(err, r.Close())
}
