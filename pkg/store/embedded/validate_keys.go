package embedded

import (
	"bytes"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/svcctl/svc/pkg/document"
)

// numbers checks that collections and indexes have numbers of their own, and that they are not given again.
func (v *validation) numbers() {
	found := v.of("", "")
	seen := map[uint32]bool{}
	use := func(id uint32, who string) {
		if seen[id] {
			found.add(false, "%s has the number %d, as another one has", who, id)
		}
		seen[id] = true
		if id >= v.cat.nextID {
			found.add(true, "%s has the number %d, the next one to be given is %d", who, id, v.cat.nextID)
			v.faults.nextID = max(v.faults.nextID, id+1)
		}
	}
	for _, c := range v.cat.sorted() {
		use(c.id, "collection "+c.name.String())
		for _, x := range c.indexes.Load().all {
			use(x.id, "index "+x.def.Name+" of "+c.name.String())
		}
	}
}

// strangers looks for keys that belong to nothing. It reads no others: it jumps over the prefixes that are known.
func (v *validation) strangers() error {
	known := v.known()
	found := v.of("", "")
	defer found.end()
	for from := []byte(nil); ; {
		at, damage, err := v.strangersFrom(from, known, found)
		if err != nil || damage == nil {
			return err
		}
		// An index that can't be read may share a block with the keys beside it: on behind it.
		if from = known.behindUnreadable(at); from == nil {
			found.add(false, "not all keys can be read: %s", damageText(damage))
			return nil
		}
	}
}

// strangersFrom looks from a key on. at is where it was when it met damage.
func (v *validation) strangersFrom(from []byte, known knownKeys, found *findings) (at []byte, damage, err error) {
	it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: from})
	if err != nil {
		return nil, nil, internal(err, "open an iterator")
	}
	defer closeInto(&err, func() error { _ = it.Close(); return nil }) // it repeats what it said before
	at = from
	for ok := it.First(); ok; {
		if err := v.step(); err != nil {
			return nil, nil, err
		}
		key := it.Key()
		k := known.of(key)
		switch {
		case k == nil:
			rg := strangersLike(key)
			found.add(true, "keys that begin with %x belong to nothing", rg.Start)
			v.faults.strangers = append(v.faults.strangers, rg)
			at = rg.End
			ok = it.SeekGE(at)
		case k.single:
			at = append(at[:0:0], key...)
			ok = it.Next()
		default:
			at = document.KeyAfter(k.prefix)
			ok = it.SeekGE(at)
		}
	}
	return at, it.Error(), nil
}

// knownKeys is the prefixes, and single keys, that there may be, in order. None begins another one.
type knownKeys []knownKey

type knownKey struct {
	prefix     []byte
	single     bool
	unreadable bool // an index of which entries can't be read
}

func (v *validation) known() knownKeys {
	known := knownKeys{
		{prefix: keyVersion(), single: true},
		{prefix: keyNextID(), single: true},
		{prefix: keyStoreID(), single: true},
		{prefix: catalogPrefix()},
		{prefix: []byte{spaceFeed}},
	}
	for _, c := range v.cat.sorted() {
		known = append(known, knownKey{prefix: docPrefix(c.id)}, knownKey{prefix: countsKey(c.id), single: true})
		set := c.indexes.Load()
		for _, x := range set.all {
			known = append(known, knownKey{prefix: indexPrefix(c.id, x.id), unreadable: v.faults.unreadable[x.id]})
			if !slices.Contains(set.ready, x) {
				known = append(known, knownKey{prefix: buildKey(c.id, x.id), single: true})
			}
		}
	}
	slices.SortFunc(known, func(a, b knownKey) int { return bytes.Compare(a.prefix, b.prefix) })
	return known
}

// of gives what key belongs to; nil if it is a stranger.
func (k knownKeys) of(key []byte) *knownKey {
	i, exact := slices.BinarySearchFunc(k, key, func(k knownKey, key []byte) int { return bytes.Compare(k.prefix, key) })
	if !exact {
		i--
	}
	if i < 0 || !bytes.HasPrefix(key, k[i].prefix) || (k[i].single && len(key) != len(k[i].prefix)) {
		return nil
	}
	return &k[i]
}

// behindUnreadable gives the end of the first unreadable index that ends behind a key; nil if there is none.
func (k knownKeys) behindUnreadable(key []byte) []byte {
	for i := range k {
		if end := document.KeyAfter(k[i].prefix); k[i].unreadable && bytes.Compare(end, key) > 0 {
			return end
		}
	}
	return nil
}

// strangersLike is the keys of the same collection or index; of others it is the key alone.
func strangersLike(key []byte) pebble.KeyRange {
	n := len(docPrefix(0))
	if key[0] == spaceIndexes {
		n = len(indexPrefix(0, 0))
	}
	if len(key) < n || (key[0] != spaceDocs && key[0] != spaceIndexes) {
		return single(key)
	}
	prefix := bytes.Clone(key[:n])
	return pebble.KeyRange{Start: prefix, End: document.KeyAfter(prefix)}
}

// single is one key alone.
func single(key []byte) pebble.KeyRange {
	return pebble.KeyRange{Start: bytes.Clone(key), End: append(bytes.Clone(key), 0)}
}
