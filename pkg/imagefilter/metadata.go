package imagefilter

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// maxExif bounds the EXIF that is read: a JPEG can't hold more, and what matters comes first.
const maxExif = 1 << 16

// maxChunks bounds the chunks that are looked at for EXIF.
const maxChunks = 1 << 15

const exifHead = "Exif\x00\x00"

// jpegHeader is what the segments before a JPEG's first scan say.
type jpegHeader struct {
	orientation int
	progressive bool
	components  int
	converted   bool // its pixels are RGB or CMYK, of which the decoder makes a picture beside that of the planes
}

// readJPEGHeader goes through the segments up to the first scan. It gives what it found until something was wrong: whether
// the file is a picture is the decoder's to say.
func readJPEGHeader(src io.Reader) jpegHeader {
	found := jpegHeader{orientation: 1, components: 3}
	r := bufio.NewReaderSize(src, maxExif)
	if _, err := r.Discard(2); err != nil {
		return found
	}
	exif := false
	for {
		marker, err := nextMarker(r)
		switch {
		case err != nil || marker == 0xDA || marker == 0xD9: // a scan, the end
			return found
		case marker == 0x01 || marker >= 0xD0 && marker <= 0xD8: // without a body
			continue
		}
		body, ok := segment(r)
		if !ok {
			return found
		}
		switch {
		case marker == 0xE1 && !exif:
			if data, is := bytes.CutPrefix(body, []byte(exifHead)); is {
				exif, found.orientation = true, exifOrientation(bytes.NewReader(data))
			}
		case marker >= 0xC0 && marker <= 0xC2 && len(body) >= 6:
			found.progressive, found.components = marker == 0xC2, int(body[5])
			found.converted = found.converted || found.components == 4 || len(body) == 15 && body[6] == 'R' && body[9] == 'G' && body[12] == 'B'
		case marker == 0xEE && len(body) >= 12 && string(body[:5]) == "Adobe":
			found.converted = found.converted || body[11] == 0
		}
	}
}

// segment reads what follows a marker. It is good until the next read.
func segment(r *bufio.Reader) (body []byte, ok bool) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, false
	}
	length := int(binary.BigEndian.Uint16(head[:])) - len(head)
	if length < 0 {
		return nil, false
	}
	body, err := r.Peek(length)
	if err != nil {
		return nil, false
	}
	_, err = r.Discard(length)
	return body, err == nil
}

// nextMarker gives the number of the next marker, and passes over what is before it.
func nextMarker(r *bufio.Reader) (byte, error) {
	for {
		b, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		if b != 0xFF {
			continue
		}
		for b == 0xFF {
			if b, err = r.ReadByte(); err != nil {
				return 0, err
			}
		}
		if b != 0 {
			return b, nil
		}
	}
}

// chunked is how a file of chunks is built.
type chunked struct {
	head       int64 // bytes before the first chunk
	exif       string
	order      binary.ByteOrder
	typeFirst  bool // the type is before the length
	afterwards int64
	even       bool // a chunk's data has an even length
}

func pngChunks() chunked {
	return chunked{head: 8, exif: "eXIf", order: binary.BigEndian, afterwards: 4}
}

func webpChunks() chunked {
	return chunked{head: 12, exif: "EXIF", order: binary.LittleEndian, typeFirst: true, even: true}
}

// orientation looks for the chunk with EXIF.
func (c chunked) orientation(src io.ReadSeeker) int {
	at := c.head
	for range maxChunks {
		var head [8]byte
		if _, err := src.Seek(at, io.SeekStart); err != nil {
			return 1
		}
		if _, err := io.ReadFull(src, head[:]); err != nil {
			return 1
		}
		length, name := head[:4], head[4:]
		if c.typeFirst {
			length, name = name, length
		}
		size := int64(c.order.Uint32(length))
		if string(name) == c.exif {
			data, err := io.ReadAll(io.LimitReader(src, min(size, maxExif)))
			if err != nil {
				return 1
			}
			return exifOrientation(bytes.NewReader(bytes.TrimPrefix(data, []byte(exifHead))))
		}
		at += 8 + size + c.afterwards
		if c.even {
			at += size % 2
		}
	}
	return 1
}

// seekerAt reads at offsets of what can only be sought in.
type seekerAt struct{ src io.ReadSeeker }

// ReadAt is io.ReaderAt's, for one goroutine.
func (s seekerAt) ReadAt(p []byte, at int64) (int, error) {
	if _, err := s.src.Seek(at, io.SeekStart); err != nil {
		return 0, err
	}
	n, err := io.ReadFull(s.src, p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}
