package pipeline

import (
	"math"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// limit is $limit: so many documents at most.
type limit int64

func compileLimit(_ *compiler, name string, spec any) (stage, any, error) {
	n, ok := whole(spec)
	switch {
	case !ok || n < 0:
		return nil, nil, bad(5107201, "%s needs a whole number that is not negative", name)
	case n == 0:
		return nil, nil, bad(15958, "%s has to be above 0", name)
	}
	return limit(n), n, nil
}

func (l limit) lead(q *Query) (stage, bool) { //nolint:unparam // as leading wants it
	if q.Limit == 0 || int64(l) < q.Limit {
		q.Limit = int64(l)
	}
	return nil, true
}

func (l limit) open(r *run, next sink) sink { return &limited{r: r, next: next, left: int64(l)} }

type limited struct {
	r    *run
	next sink
	left int64
}

func (l *limited) push(doc bson.Raw) error {
	if l.left <= 0 {
		return errEnough
	}
	l.left--
	if err := l.r.give(l.next, doc); err != nil {
		return err
	}
	if l.left == 0 {
		return errEnough
	}
	return nil
}

func (l *limited) end() error { return l.next.end() }

// skip is $skip: so many documents are left out.
type skip int64

func compileSkip(_ *compiler, name string, spec any) (stage, any, error) {
	n, ok := whole(spec)
	if !ok || n < 0 {
		return nil, nil, bad(5107200, "%s needs a whole number that is not negative", name)
	}
	return skip(n), n, nil
}

func (s skip) lead(q *Query) (stage, bool) { //nolint:unparam // as leading wants it
	if q.Limit > 0 || q.Skip > math.MaxInt64-int64(s) {
		return nil, false
	}
	q.Skip += int64(s)
	return nil, true
}

func (s skip) open(r *run, next sink) sink { return &skipping{r, next, int64(s)} }

type skipping struct {
	r    *run
	next sink
	left int64
}

func (s *skipping) push(doc bson.Raw) error {
	if s.left > 0 {
		s.left--
		return nil
	}
	return s.r.give(s.next, doc)
}

func (s *skipping) end() error { return s.next.end() }

// count is $count: the number of documents, in a field of this name.
type count string

func compileCount(_ *compiler, name string, spec any) (stage, any, error) {
	field, ok := spec.(string)
	switch {
	case !ok:
		return nil, nil, bad(40156, "%s needs the name of a field", name)
	case field == "":
		return nil, nil, bad(40157, "%s needs the name of a field that is not empty", name)
	case field == idField:
		return nil, nil, bad(15948, "%s: the name of the field can't be _id", name)
	case field[0] == '$':
		return nil, nil, bad(40158, "%s: the name of the field can't begin with $", name)
	case strings.IndexByte(field, 0) >= 0:
		return nil, nil, bad(40159, "%s: the name of the field can't contain NUL", name)
	case strings.IndexByte(field, '.') >= 0:
		return nil, nil, bad(40160, "%s: the name of the field can't contain a dot", name)
	}
	return count(field), field, nil
}

func (c count) open(r *run, next sink) sink { return &counting{r: r, next: next, field: string(c)} }

type counting struct {
	r     *run
	next  sink
	field string
	n     int64
}

func (c *counting) push(bson.Raw) error {
	c.n++
	return nil
}

func (c *counting) end() error {
	if c.n > 0 {
		doc := append([]byte(nil), 0, 0, 0, 0)
		doc = document.Close(document.AppendElement(doc, c.field, integer(c.n)), 0)
		if err := unlessEnough(c.r.give(c.next, doc)); err != nil {
			return err
		}
	}
	return c.next.end()
}
