package imagefilter

import (
	"encoding/binary"
	"io"
)

const (
	tagOrientation = 0x0112
	typeShort      = 3

	// maxEntries is how many entries of the first directory are looked at. Cameras write about twenty.
	maxEntries = 512
)

// exifOrientation gives the number of the orientation tag in the first directory of a TIFF structure, which is what EXIF is
// and how a TIFF file begins. It gives 1, the right way up, for all that is not such a number: a picture with broken metadata
// is still a picture.
func exifOrientation(r io.ReaderAt) int {
	var head [8]byte
	if !readAt(r, head[:], 0) {
		return 1
	}
	var order binary.ByteOrder
	switch string(head[:4]) {
	case "II*\x00":
		order = binary.LittleEndian
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return 1
	}
	at := int64(order.Uint32(head[4:]))
	var count [2]byte
	if !readAt(r, count[:], at) {
		return 1
	}
	for i := range min(int64(order.Uint16(count[:])), maxEntries) {
		var entry [12]byte
		if !readAt(r, entry[:], at+2+12*i) {
			return 1
		}
		if order.Uint16(entry[:]) != tagOrientation {
			continue
		}
		number := int(order.Uint16(entry[8:]))
		if order.Uint16(entry[2:]) != typeShort || order.Uint32(entry[4:]) != 1 || number < 1 || number > 8 {
			return 1
		}
		return number
	}
	return 1
}

func readAt(r io.ReaderAt, p []byte, at int64) bool {
	n, _ := r.ReadAt(p, at) // io.EOF may come with the last bytes
	return n == len(p)
}
