package pipeline

import (
	"bytes"
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// sample is $sample: so many documents at random.
type sample int64

func compileSample(_ *compiler, name string, spec any) (stage, any, error) {
	d, ok := asObject(spec)
	if !ok {
		return nil, nil, bad(28745, "%s needs an object with a size", name)
	}
	size := int64(-1)
	for _, e := range d {
		if e.Key != "size" {
			return nil, nil, bad(28748, "%s does not know %s", name, document.Readable(e.Key))
		}
		if size, ok = truncated(e.Value); !ok {
			return nil, nil, bad(28746, "%s needs a number as size", name)
		}
		if size < 0 {
			return nil, nil, bad(28747, "%s needs a size that is not negative", name)
		}
	}
	if size < 0 {
		return nil, nil, bad(28749, "%s needs a size", name)
	}
	return sample(size), bson.D{{Key: "size", Value: size}}, nil
}

func (s sample) open(r *run, next sink) sink { return &sampling{r: r, next: next, size: int64(s)} }

// sampling keeps a fair choice of what has come so far.
type sampling struct {
	r     *run
	next  sink
	size  int64
	seen  int64
	docs  []bson.Raw
	bytes int
}

const sampledSize = 48 // bytes of a document that is kept, beside itself

func (s *sampling) push(doc bson.Raw) error {
	if s.size == 0 {
		return errEnough
	}
	s.seen++
	if int64(len(s.docs)) < s.size {
		s.docs = append(s.docs, bytes.Clone(doc))
		s.bytes += len(doc) + sampledSize
		return s.r.hold(len(doc) + sampledSize)
	}
	i := int64(math.Floor(s.r.random() * float64(s.seen)))
	if i >= s.size {
		return nil
	}
	more := len(doc) - len(s.docs[i])
	s.docs[i] = bytes.Clone(doc)
	s.bytes += more
	return s.r.hold(more)
}

func (s *sampling) end() error {
	for i := len(s.docs) - 1; i > 0; i-- {
		j := int(s.r.random() * float64(i+1))
		s.docs[i], s.docs[j] = s.docs[j], s.docs[i]
	}
	if err := giveAll(s.docs, func(doc bson.Raw) error { return s.r.give(s.next, doc) }); err != nil {
		return err
	}
	s.r.release(s.bytes)
	return s.next.end()
}
