package index

import (
	"encoding/binary"
	"math"
)

// ids has the ids of versions by number. It is only ever appended to, so that a copy of it is what it was at that moment.
type ids struct {
	ends  []uint32 // where the id of a number ends; that of the one before is where it begins
	bytes []byte
}

func (s *ids) add(id []byte) {
	s.bytes = append(s.bytes, id...)
	s.ends = append(s.ends, uint32(len(s.bytes)))
}

// of gives an id, which must not be changed; it is empty for a version that was gone when the index was opened.
func (s *ids) of(number uint32) []byte {
	from := uint32(0)
	if number > 0 {
		from = s.ends[number-1]
	}
	return s.bytes[from:s.ends[number]:s.ends[number]]
}

// setLength notes how many terms a record has in a field.
func (ix *Index) setLength(f Field, number, n uint32) {
	l := ix.lengths[f]
	for int(number) >= len(l) {
		l = append(l, 0)
	}
	l[number] = uint16(min(n, 1<<16-1))
	ix.lengths[f] = l
}

// noValue is what a record has that has no value.
const noValue = math.MinInt64

func (ix *Index) setValue(f Field, number uint32, value int64) {
	l := ix.values[f]
	for int(number) >= len(l) {
		l = append(l, noValue)
	}
	l[number] = value
	ix.values[f] = l
}

func valueOf(l []int64, number uint32) (int64, bool) {
	if int(number) >= len(l) || l[number] == noValue {
		return 0, false
	}
	return l[number], true
}

// appendValue appends a number within its chunk and its value.
func appendValue(dst []byte, number uint32, value int64) []byte {
	dst = binary.AppendUvarint(dst, uint64(number&(1<<chunkBits-1)))
	return binary.AppendVarint(dst, value)
}

func (ix *Index) readLengths() error {
	var buf []posting
	return ix.disk.each(ix.key(keyLengths), func(key, v []byte) (err error) {
		f, base, ok := chunkOf(key)
		if !ok {
			return errDamaged
		}
		if buf, err = readBlocks(buf[:0], base, v); err != nil {
			return err
		}
		for _, p := range buf {
			if p.number >= ix.next {
				return errDamaged
			}
			ix.setLength(f, p.number, p.count)
		}
		return nil
	})
}

func (ix *Index) readValues() error {
	return ix.disk.each(ix.key(keyValues), func(key, v []byte) (err error) {
		f, base, ok := chunkOf(key)
		for ok && len(v) > 0 {
			n, k := binary.Uvarint(v)
			value, l := binary.Varint(v[max(k, 0):])
			if k <= 0 || l <= 0 || n >= 1<<chunkBits || base+uint32(n) >= ix.next {
				return errDamaged
			}
			v = v[k+l:]
			ix.setValue(f, base+uint32(n), value)
		}
		if !ok {
			return errDamaged
		}
		return nil
	})
}

// chunkOf reads a key of a field and a chunk.
func chunkOf(key []byte) (f Field, base uint32, ok bool) {
	if len(key) != 6 {
		return 0, 0, false
	}
	return Field(binary.BigEndian.Uint16(key)), binary.BigEndian.Uint32(key[2:]) << chunkBits, true
}

func (ix *Index) chunkKey(kind byte, f Field, chunk uint32) []byte {
	return binary.BigEndian.AppendUint32(ix.fieldKey(kind, f), chunk)
}
