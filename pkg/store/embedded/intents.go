package embedded

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/svcctl/svc/pkg/store"
)

// intents is what open transactions write to: documents, and keys of unique indexes. Nobody else may write to them until
// the transaction ends. The commit mutex guards it.
type intents map[string]*transaction

// held says that a write has to wait for a transaction. It never leaves this package, and is never wrapped.
type held struct{ by *transaction }

func (held) Error() string { return "held by a transaction" }

func isHeld(err error) bool {
	_, ok := err.(held) //nolint:errorlint // never wrapped
	return ok
}

// docIntent and keyIntent name what is held. A collection goes by its name: it may not exist yet.
func docIntent(name collectionName, id []byte) string {
	key := make([]byte, 0, len(name.database)+len(name.collection)+3+len(id))
	return string(append(appendName(key, 'd', name), id...))
}

func keyIntent(name collectionName, x *index, key []byte) string {
	out := make([]byte, 0, len(name.database)+len(name.collection)+7+len(key))
	out = binary.BigEndian.AppendUint32(appendName(out, 'k', name), x.id)
	return string(append(out, key...))
}

func appendName(dst []byte, kind byte, name collectionName) []byte {
	dst = append(dst, kind)
	dst = append(dst, name.database...)
	dst = append(dst, 0)
	dst = append(dst, name.collection...)
	return append(dst, 0)
}

// heldDoc gives the transaction other than self that holds a document, heldKey one that holds a key.
func (s *Store) heldDoc(name collectionName, id []byte, self *transaction) *transaction {
	if len(s.intents) == 0 {
		return nil
	}
	return s.heldBy(docIntent(name, id), self)
}

func (s *Store) heldKey(name collectionName, x *index, key []byte, self *transaction) *transaction {
	if len(s.intents) == 0 {
		return nil
	}
	return s.heldBy(keyIntent(name, x, key), self)
}

func (s *Store) heldBy(intent string, self *transaction) *transaction {
	if t := s.intents[intent]; t != self {
		return t
	}
	return nil
}

// await returns when t has ended, or fails when giveUp comes.
func (s *Store) await(ctx context.Context, t *transaction, giveUp <-chan time.Time) error {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	select {
	case <-t.ended:
		return nil
	case <-giveUp:
		return store.ErrBusy
	case <-ctx.Done():
		return store.Ended(ctx)
	case <-s.state.closing:
		return store.ErrClosed
	}
}

// claim makes intents t's own, all or none. It gives the transaction that has one of them already.
func (s *Store) claim(t *transaction, wanted []string) (other *transaction, err error) {
	s.commit.Lock()
	defer s.commit.Unlock()
	if t.over {
		return nil, store.ErrTransactionTime
	}
	for _, intent := range wanted {
		if other := s.heldBy(intent, t); other != nil {
			return other, nil
		}
	}
	if s.intents == nil {
		s.intents = intents{}
	}
	for _, intent := range wanted {
		if s.intents[intent] == nil {
			s.intents[intent] = t
			t.intents = append(t.intents, intent)
		}
	}
	return nil, nil
}

// unclaim ends t for others: its intents are free, and what waits for it goes on. The caller holds the commit mutex.
func (s *Store) unclaim(t *transaction) {
	if t.over {
		return
	}
	t.over = true
	for _, intent := range t.intents {
		delete(s.intents, intent)
	}
	t.intents = nil
	close(t.ended)
}
