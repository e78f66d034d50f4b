package index

import (
	"encoding/binary"
	"slices"
)

// A posting says that a record has a term.
type posting struct {
	number uint32 // of the record
	count  uint32 // how often, in one field
}

// Postings are stored in blocks of ascending records: uvarint amount, then for each record uvarint distance from the one
// before it (of the first: from the beginning of the chunk) and uvarint count. Blocks are put behind each other, which is
// what Pebble's merge operator does.

func appendBlock(dst []byte, base uint32, block []posting) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(block)))
	last := base
	for _, p := range block {
		// The count is 1 most of the time: one bit says so.
		d := uint64(p.number-last) << 1
		if p.count == 1 {
			dst = binary.AppendUvarint(dst, d|1)
		} else {
			dst = binary.AppendUvarint(dst, d)
			dst = binary.AppendUvarint(dst, uint64(p.count))
		}
		last = p.number
	}
	return dst
}

// readBlocks appends what is in a value to dst.
func readBlocks(dst []posting, base uint32, b []byte) ([]posting, error) {
	for len(b) > 0 {
		n, k := binary.Uvarint(b)
		if k <= 0 || n > uint64(len(b)) {
			return dst, errDamaged
		}
		b = b[k:]
		dst = slices.Grow(dst, int(n)) //nolint:gosec // it is no more than there are bytes
		doc := base
		for range n {
			if len(b) >= 2 && b[0] < 0x80 && b[1] < 0x80 { // one byte, which most are
				d, count, size := b[0], uint32(1), 1
				if d&1 == 0 {
					count, size = uint32(b[1]), 2
				}
				if count == 0 {
					return dst, errDamaged
				}
				doc += uint32(d >> 1)
				dst, b = append(dst, posting{doc, count}), b[size:]
				continue
			}
			d, k := binary.Uvarint(b)
			if k <= 0 {
				return dst, errDamaged
			}
			b = b[k:]
			doc += uint32(d >> 1)
			count := uint32(1)
			if d&1 == 0 {
				c, k := binary.Uvarint(b)
				if k <= 0 || c == 0 {
					return dst, errDamaged
				}
				count, b = uint32(c), b[k:]
			}
			dst = append(dst, posting{doc, count})
		}
	}
	return dst, nil
}
