package archive

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/svcctl/svc/pkg/errs"
)

// How a stream is cut into frames, by RFC 8878.
const (
	chunkSize    = 1 << 20             // bytes of the tar in a frame
	frameSize    = chunkSize + 4<<10   // of a frame, with its headers
	storedSize   = 128 << 10           // of a block, at most
	maxRatio     = 100                 // how much more a stream may hold than it has
	freeOfIt     = 16 << 20            // bytes of the tar that are not held against the ratio
	ownRatio     = maxRatio / 2        // what the writer keeps to
	ownFree      = int64(freeOfIt / 2) // likewise
	reserved     = 3                   // type of block
	runLength    = 1                   // type of block: one byte, repeated
	checksumSize = 4
	magic        = "\x28\xb5\x2f\xfd" // begins a frame
)

// frameWriter compresses what is written to it. The last chunk is written by finish.
type frameWriter struct {
	to      io.Writer
	encoder *zstd.Encoder
	chunk   []byte
	frame   []byte
	in, out int64
}

func newFrameWriter(to io.Writer) (*frameWriter, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithSingleSegment(true), zstd.WithWindowSize(chunkSize), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, errs.Wrap(err, "make a zstd encoder")
	}
	return &frameWriter{to: to, encoder: encoder, chunk: make([]byte, 0, chunkSize)}, nil
}

func (f *frameWriter) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		part := p[:min(len(p), chunkSize-len(f.chunk))]
		f.chunk = append(f.chunk, part...)
		n, p = n+len(part), p[len(part):]
		if len(f.chunk) == chunkSize {
			if err := f.finish(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// finish writes what is left of the chunk.
func (f *frameWriter) finish() error {
	if len(f.chunk) == 0 {
		return nil
	}
	f.frame = f.encoder.EncodeAll(f.chunk, f.frame[:0])
	f.in += int64(len(f.chunk))
	if f.in > ownFree+ownRatio*(f.out+int64(len(f.frame))) {
		f.frame = stored(f.frame, f.chunk)
	}
	f.out += int64(len(f.frame))
	f.chunk = f.chunk[:0]
	_, err := f.to.Write(f.frame)
	return err
}

// stored makes of the frame of a chunk one that has it as it is. They have one checksum.
func stored(frame, chunk []byte) []byte {
	sum := [checksumSize]byte(frame[len(frame)-checksumSize:])
	head := zstd.Header{SingleSegment: true, FrameContentSize: uint64(len(chunk)), HasCheckSum: true}
	frame, _ = head.AppendTo(frame[:0]) // its error is always nil
	for len(chunk) > 0 {
		block := chunk[:min(len(chunk), storedSize)]
		chunk = chunk[len(block):]
		head := len(block) << 3
		if len(chunk) == 0 {
			head |= 1 // the last
		}
		frame = append(frame, byte(head), byte(head>>8), byte(head>>16))
		frame = append(frame, block...)
	}
	return append(frame, sum[:]...)
}

// frameReader gives what the frames of a stream hold. It holds one frame and its content in memory.
type frameReader struct {
	from    *bufio.Reader
	decoder *zstd.Decoder
	frame   []byte
	content []byte
	rest    []byte // of content
	in, out int64
}

func newFrameReader(from io.Reader) (*frameReader, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(chunkSize), zstd.WithDecoderMaxMemory(chunkSize), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, errs.Wrap(err, "make a zstd decoder")
	}
	return &frameReader{from: bufio.NewReader(from), decoder: decoder}, nil
}

// Read fails by io.EOF at the end of a frame only: a stream that ends elsewhere is an io.ErrUnexpectedEOF.
func (f *frameReader) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		if err := f.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// next reads a frame.
func (f *frameReader) next() error {
	head, size, err := f.head()
	if err != nil {
		return err
	}
	f.frame = f.frame[:0]
	if err := f.take(head.HeaderSize); err != nil {
		return err
	}
	for last := false; !last; {
		if last, err = f.block(); err != nil {
			return err
		}
	}
	if err := f.take(checksumSize); err != nil {
		return err
	}
	f.in, f.out = f.in+int64(len(f.frame)), f.out+size
	if f.out > freeOfIt+maxRatio*f.in {
		return refused("holds more than 100 times its own bytes")
	}
	f.content = slices.Grow(f.content[:0], int(size))
	f.content, err = f.decoder.DecodeAll(f.frame, f.content[:0])
	if err != nil || int64(len(f.content)) != size {
		return refused("is damaged").With(err)
	}
	f.rest = f.content
	return nil
}

// head looks at the header of the next frame, and gives the size of its content.
func (f *frameReader) head() (head zstd.Header, size int64, err error) {
	bytes, err := f.from.Peek(zstd.HeaderMaxSize)
	if len(bytes) == 0 || err != nil && !errors.Is(err, io.EOF) {
		return head, 0, err
	}
	switch err := head.Decode(bytes); {
	case f.in == 0 && !strings.HasPrefix(magic, string(bytes[:min(len(bytes), len(magic))])):
		return head, 0, noArchive()
	case errors.Is(err, io.ErrUnexpectedEOF):
		return head, 0, err
	case err != nil:
		return head, 0, noArchive().With(err)
	case head.Skippable, head.DictionaryID != 0, !head.SingleSegment, !head.HasCheckSum, head.FrameContentSize == 0, head.FrameContentSize > chunkSize:
		return head, 0, refused("is not compressed as svcd does it")
	}
	return head, int64(head.FrameContentSize), nil
}

// block reads a block of the frame.
func (f *frameReader) block() (last bool, err error) {
	if err := f.take(3); err != nil {
		return false, err
	}
	at := len(f.frame) - 3
	head := int(f.frame[at]) | int(f.frame[at+1])<<8 | int(f.frame[at+2])<<16
	size := head >> 3
	switch head >> 1 & 3 {
	case reserved:
		return false, refused("is damaged")
	case runLength:
		size = 1
	}
	return head&1 != 0, f.take(size)
}

// take reads n more bytes of the frame.
func (f *frameReader) take(n int) error {
	at := len(f.frame)
	if n > frameSize-at {
		return refused("is not compressed as svcd does it")
	}
	f.frame = slices.Grow(f.frame, n)[:at+n]
	_, err := io.ReadFull(f.from, f.frame[at:])
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
