package imagefilter

import (
	"bytes"
	"errors"
	"image"
	"image/jpeg"
	"io"
)

// maxScans bounds the scans of a JPEG. A progressive one has about ten; each makes the decoder go through all pixels, and can
// be of a hundred bytes.
const maxScans = 100

// decodeJPEG decodes a JPEG that has no more scans than that.
func decodeJPEG(r io.Reader) (image.Image, error) {
	return jpeg.Decode(&scanCounter{src: r})
}

var errScans = errors.New("the JPEG has too many scans")

// scanCounter counts the scans of a JPEG on its way to a decoder, by the markers as that finds them.
type scanCounter struct {
	src   io.Reader
	scans int

	place  int  // where it is in what is around a marker
	length int  // of the segment, as far as it is known; then what is left of it
	ended  bool // behind the end of the picture
}

// The places in a JPEG, beside that of data of any kind.
const (
	inData = iota
	inMarker
	inLength
	inLengthToo
	inSegment
)

// Read is io.Reader's.
func (c *scanCounter) Read(p []byte) (int, error) {
	n, err := c.src.Read(p)
	if c.count(p[:n]); c.scans > maxScans {
		return 0, errScans
	}
	return n, err
}

func (c *scanCounter) count(data []byte) {
	for !c.ended && len(data) > 0 {
		took := 1
		switch b := data[0]; c.place {
		case inData:
			if took = bytes.IndexByte(data, 0xFF) + 1; took == 0 {
				return
			}
			c.place = inMarker
		case inMarker:
			c.marker(b)
		case inLength:
			c.length, c.place = int(b)<<8, inLengthToo
		case inLengthToo:
			c.length, c.place = c.length+int(b)-2, inSegment
			if c.length <= 0 { // less than nothing is for the decoder to refuse
				c.place = inData
			}
		case inSegment:
			took = min(c.length, len(data))
			if c.length -= took; c.length == 0 {
				c.place = inData
			}
		}
		data = data[took:]
	}
}

// marker looks at what follows a byte of ones.
func (c *scanCounter) marker(b byte) {
	switch {
	case b == 0xFF: // there may be any number
	case b == 0x00, b == 0x01, b >= 0xD0 && b <= 0xD8: // data, or a marker without a segment
		c.place = inData
	case b == 0xD9:
		c.ended = true
	default:
		if b == 0xDA {
			c.scans++
		}
		c.place = inLength
	}
}
