package embedded

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
)

// keySet is a set of keys. It keeps them in one piece of memory, so that adding one rarely allocates.
type keySet struct {
	seed  maphash.Seed
	slots []uint64 // upper half of the hash, and where in keys the key begins, plus 1; 0: free
	used  int
	keys  []byte // each with its length before it
}

// newKeySet makes an empty set.
func newKeySet() *keySet { return &keySet{seed: maphash.MakeSeed(), slots: make([]uint64, 64)} }

// add says whether key is new. It fails when the set has grown too large for a query.
func (s *keySet) add(key []byte) (added bool, err error) {
	if 4*s.used >= 3*len(s.slots) {
		s.grow()
	}
	hash := maphash.Bytes(s.seed, key)
	i := s.find(hash, key)
	if s.slots[i] != 0 {
		return false, nil
	}
	if len(s.keys)+len(key)+8*len(s.slots) > maxSortMemory {
		return false, errSeenMemory
	}
	s.slots[i] = hash&^(1<<32-1) | uint64(len(s.keys)+1)
	s.used++
	s.keys = binary.AppendUvarint(s.keys, uint64(len(key)))
	s.keys = append(s.keys, key...)
	return true, nil
}

// find gives the slot of key, or the free one where it belongs.
func (s *keySet) find(hash uint64, key []byte) int {
	mask := len(s.slots) - 1
	for i := int(hash) & mask; ; i = (i + 1) & mask { //nolint:gosec // masked
		slot := s.slots[i]
		if slot == 0 || slot>>32 == hash>>32 && bytes.Equal(s.at(slot), key) {
			return i
		}
	}
}

func (s *keySet) at(slot uint64) []byte {
	b := s.keys[slot&(1<<32-1)-1:]
	n, size := binary.Uvarint(b)
	return b[size : size+int(n)] //nolint:gosec // written from a length
}

func (s *keySet) grow() {
	old := s.slots
	s.slots = make([]uint64, 2*len(old))
	for _, slot := range old {
		if slot != 0 {
			key := s.at(slot)
			s.slots[s.find(maphash.Bytes(s.seed, key), key)] = slot
		}
	}
}
