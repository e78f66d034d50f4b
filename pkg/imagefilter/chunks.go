package imagefilter

import (
	"encoding/binary"
	"errors"
	"image"
	"image/png"
	"io"
)

// maxPNGChunks bounds the chunks of a PNG. Encoders write them of 8 KB and more, so that the largest picture has fewer; each
// costs the decoder some microseconds, and can be of twelve bytes.
const maxPNGChunks = 100_000

func decodePNG(r io.Reader) (image.Image, error) { return png.Decode(newChunkCounter(r)) }

func configPNG(r io.Reader) (image.Config, error) { return png.DecodeConfig(newChunkCounter(r)) }

var errChunks = errors.New("the PNG has too many chunks")

// chunkCounter counts the chunks of a PNG on its way to a decoder.
type chunkCounter struct {
	src    io.Reader
	chunks int
	skip   int64  // bytes up to the next chunk
	head   []byte // length and type of that, as far as they have come
}

func newChunkCounter(r io.Reader) *chunkCounter {
	const signature, head = 8, 8
	return &chunkCounter{src: r, skip: signature, head: make([]byte, 0, head)}
}

// Read is io.Reader's.
func (c *chunkCounter) Read(p []byte) (int, error) {
	n, err := c.src.Read(p)
	for data := p[:n]; len(data) > 0; {
		if past := min(c.skip, int64(len(data))); past > 0 {
			c.skip -= past
			data = data[past:]
			continue
		}
		take := min(cap(c.head)-len(c.head), len(data))
		c.head = append(c.head, data[:take]...)
		data = data[take:]
		if len(c.head) == cap(c.head) {
			const checksum = 4
			c.skip = int64(binary.BigEndian.Uint32(c.head)) + checksum
			c.head = c.head[:0]
			c.chunks++
		}
	}
	if c.chunks > maxPNGChunks {
		return 0, errChunks
	}
	return n, err
}
