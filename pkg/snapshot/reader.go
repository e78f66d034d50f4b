package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"slices"
	"strconv"

	"github.com/klauspost/compress/zstd"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/folder"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// records gives documents one after the other, in the order of their ids. Each is good until the next is asked for; behind the last comes
// io.EOF.
type records interface {
	next() (bson.Raw, error)
}

// Bounds of what is read from a file.
const (
	maxLine   = 256 << 20 // Extended JSON takes several times as much as BSON
	maxWindow = 8 << 20   // of the compression; ours is smaller
)

// fileRecords are those of a file of a snapshot. What is wrong with it is an error without a kind.
type fileRecords struct {
	file   *folder.File
	sum    hash.Hash // of the file
	size   int64
	plain  hash.Hash     // of the lines, or what these would be
	zip    *zstd.Decoder // nil: it is BSON
	from   *bufio.Reader
	line   []byte
	doc    []byte
	lastID bson.RawValue
	count  int64
}

func openBSON(ctx context.Context, dir *folder.Folder, name string) (*fileRecords, error) {
	file, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	r := &fileRecords{file: file, sum: sha256.New(), plain: sha256.New()}
	r.from = bufio.NewReaderSize(&hashed{r, &canceled{ctx, file}}, readSize)
	return r, nil
}

func openJSON(ctx context.Context, dir *folder.Folder, name string) (*fileRecords, error) {
	r, err := openBSON(ctx, dir, name)
	if err != nil {
		return nil, err
	}
	r.zip, err = zstd.NewReader(r.from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		r.close()
		return nil, err
	}
	r.from = bufio.NewReaderSize(r.zip, readSize)
	return r, nil
}

// hashed hashes what is read.
type hashed struct {
	of *fileRecords
	r  io.Reader
}

func (h *hashed) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	_, _ = h.of.sum.Write(p[:n]) // a hash takes everything
	h.of.size += int64(n)
	return n, err
}

func (r *fileRecords) close() {
	if r.zip != nil {
		r.zip.Close()
	}
	_ = r.file.Close() // it was only read
}

func (r *fileRecords) next() (bson.Raw, error) {
	var doc bson.Raw
	var err error
	if r.zip != nil {
		doc, err = r.fromLine()
	} else {
		doc, err = r.fromBSON()
	}
	if err != nil {
		return nil, err
	}
	r.count++
	id, ok := document.Field(doc, "_id")
	if !ok || store.CheckID(id) != nil {
		return nil, fmt.Errorf("record %d has no id", r.count)
	}
	if r.lastID.Type != 0 && document.Compare(r.lastID, id) >= 0 {
		return nil, fmt.Errorf("record %d is not in its order", r.count)
	}
	r.lastID.Type, r.lastID.Value = id.Type, append(r.lastID.Value[:0], id.Value...)
	return doc, nil
}

// storable refuses the record that was read last if no store takes it, or gives it back otherwise: each has the id first.
func (r *fileRecords) storable(doc bson.Raw) error {
	if it := document.NewIter(doc); !it.Next() || string(it.Key()) != "_id" {
		return fmt.Errorf("record %d does not begin with its _id", r.count)
	}
	if err := (&store.Op{Kind: store.Insert, Doc: doc}).Check(); err != nil {
		return fmt.Errorf("record %d can't be stored: %w", r.count, err)
	}
	return nil
}

func (r *fileRecords) fromLine() (bson.Raw, error) {
	r.line = r.line[:0]
	for {
		part, err := r.from.ReadSlice('\n')
		r.line = append(r.line, part...)
		switch {
		case err == nil:
			_, _ = r.plain.Write(r.line) // a hash takes everything
			doc, err := document.ParseExtended(bytes.TrimSuffix(r.line, []byte("\n")))
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", r.count+1, err)
			}
			return doc, nil
		case errors.Is(err, io.EOF) && len(r.line) == 0:
			return nil, io.EOF
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("line %d has no end", r.count+1)
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(r.line) > maxLine:
			return nil, fmt.Errorf("line %d is too long", r.count+1)
		}
	}
}

func (r *fileRecords) fromBSON() (bson.Raw, error) {
	var size [4]byte
	if _, err := io.ReadFull(r.from, size[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("record %d has no end", r.count+1)
		}
		return nil, err
	}
	n := binary.LittleEndian.Uint32(size[:])
	if n < 5 || n > document.MaxSize {
		return nil, fmt.Errorf("record %d can't have %d bytes", r.count+1, n)
	}
	r.doc = append(slices.Grow(r.doc[:0], int(n)), size[:]...)[:n]
	if _, err := io.ReadFull(r.from, r.doc[4:]); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("record %d has no end", r.count+1)
		}
		return nil, err
	}
	if !document.WellFormed(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: r.doc}) {
		return nil, fmt.Errorf("record %d is not valid BSON", r.count+1)
	}
	r.line = append(document.AppendExtended(r.line[:0], r.doc), '\n')
	_, _ = r.plain.Write(r.line) // a hash takes everything
	return r.doc, nil
}

// drain reads what is behind the last record, to the end of the file.
func (r *fileRecords) drain() error {
	_, err := io.CopyBuffer(onlyWriter{io.Discard}, &hashed{r, r.file}, make([]byte, readSize))
	return err
}

// check says whether what was read, to the last record, is what the manifest says. bytes are those of the records as BSON.
func (r *fileRecords) check(f *File, col *Collection, bytes int64) error {
	if err := r.drain(); err != nil {
		return err
	}
	switch {
	case r.fileSum() != f.SHA256:
		return errSum
	case r.count != col.Documents:
		return errors.New("it has " + strconv.FormatInt(r.count, 10) + " records, and should have " + strconv.FormatInt(col.Documents, 10))
	case r.count != f.Count:
		return errors.New("it has " + strconv.FormatInt(r.count, 10) + " records, and should have " + strconv.FormatInt(f.Count, 10))
	case bytes != col.Bytes:
		return errors.New("its records take " + strconv.FormatInt(bytes, 10) + " bytes, and should take " + strconv.FormatInt(col.Bytes, 10))
	case col.SHA256 != "" && r.plainSum() != col.SHA256:
		return errors.New("its records are not those of the manifest")
	}
	return nil
}

// export is the records of a collection of a snapshot. What is not as the manifest says is ErrDamaged, at the end at the latest.
type export struct {
	*fileRecords

	ctx   context.Context //nolint:containedctx // it is the reader of one call
	f     *File
	col   *Collection
	bytes int64
}

// exportOf is the file that a collection is restored from.
func (m *Manifest) exportOf(c *Collection) string {
	if m.Mode == DB {
		return path.Join(dbDir, c.File+bsonEnding)
	}
	return path.Join(collectionsDir, c.File+jsonEnding)
}

// openExport opens the export of a collection: the JSON if there is one, else the BSON.
func openExport(ctx context.Context, dir *folder.Folder, m *Manifest, c *Collection) (*export, error) {
	name, open := m.exportOf(c), openJSON
	if m.Mode == DB {
		open = openBSON
	}
	f := m.file(name)
	if f == nil {
		return nil, damaged("%s: the manifest does not have it", name)
	}
	r, err := open(ctx, dir, name)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, damaged("%s: %s", name, problem(err))
	}
	return &export{fileRecords: r, ctx: ctx, f: f, col: c}, nil
}

func (e *export) next() (bson.Raw, error) {
	doc, err := e.fileRecords.next()
	switch {
	case err == nil:
		e.bytes += int64(len(doc))
		return doc, nil
	case errors.Is(err, io.EOF):
		if err = e.check(e.f, e.col, e.bytes); err == nil {
			return nil, io.EOF
		}
	}
	if e.ctx.Err() != nil {
		return nil, e.ctx.Err()
	}
	return nil, damaged("%s: %s", e.f.Path, problem(err))
}

func (r *fileRecords) fileSum() string { return hex.EncodeToString(r.sum.Sum(nil)) }

func (r *fileRecords) plainSum() string { return hex.EncodeToString(r.plain.Sum(nil)) }

// A page of a collection has so many records, and not many more bytes.
const (
	pageRecords = 1000
	pageBytes   = 4 << 20
)

// storeRecords are those of a collection in a store. Between two of them the store can be written to.
type storeRecords struct {
	ctx   context.Context //nolint:containedctx // it is the reader of one call
	from  store.Reader
	page  []bson.Raw
	after []bson.RawValue
	ended bool
}

var errPage = errors.New("the page is full")

func (r *storeRecords) next() (bson.Raw, error) {
	if len(r.page) == 0 {
		if r.ended {
			return nil, io.EOF
		}
		if err := r.read(); err != nil {
			return nil, err
		}
		if len(r.page) == 0 {
			return nil, io.EOF
		}
	}
	doc := r.page[0]
	r.page = r.page[1:]
	return doc, nil
}

func (r *storeRecords) read() error {
	r.page = nil
	size := 0
	err := r.from.Find(r.ctx, store.Query{Sort: mql.Sort{{Path: "_id"}}, After: r.after, Limit: pageRecords}, func(doc bson.Raw) error {
		r.page = append(r.page, slices.Clone(doc))
		if size += len(doc); size > pageBytes {
			return errPage
		}
		return nil
	})
	if err != nil && !errors.Is(err, errPage) {
		return err
	}
	r.ended = err == nil && len(r.page) < pageRecords
	if len(r.page) > 0 {
		id, _ := document.Field(r.page[len(r.page)-1], "_id")
		r.after = []bson.RawValue{id}
	}
	return nil
}
