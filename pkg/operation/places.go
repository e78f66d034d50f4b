package operation

import "slices"

// pool is where the runs of one kind take turns, for all databases of a service. It is guarded by Runs.mu.
//
// A database has a number of places at most. Once half of all are taken, only those that have none get one: long runs of some
// projects leave room for those of others.
type pool struct {
	all, each int // places: of all databases, and of one
	taken     int
	databases map[string]*turns
	waiting   []string // databases with runs that wait, the one whose turn is next first
}

// turns are the runs of one kind in one database.
type turns struct {
	taken   int
	waiting []*Live
}

func newPool(all, each int) *pool {
	return &pool{all: all, each: each, databases: map[string]*turns{}}
}

// enter gives a run a place, or has it wait for one; it fails where too many wait already.
func (p *pool) enter(l *Live) error {
	t := p.databases[l.database]
	if t == nil {
		t = &turns{}
		p.databases[l.database] = t
	}
	if len(t.waiting) >= maxWaiting {
		return ErrTooMany
	}
	if len(t.waiting) == 0 && p.fits(t) {
		p.take(t, l)
		return nil
	}
	if len(t.waiting) == 0 {
		p.waiting = append(p.waiting, l.database)
	}
	t.waiting = append(t.waiting, l)
	return nil
}

func (p *pool) fits(t *turns) bool {
	return t.taken < p.each && (p.taken < p.all/2 || t.taken == 0 && p.taken < p.all)
}

func (p *pool) take(t *turns, l *Live) {
	p.taken++
	t.taken++
	l.placed = true
	close(l.place)
}

// leave takes back what enter gave, and gives it to those who wait.
func (p *pool) leave(l *Live) {
	t := p.databases[l.database]
	if l.placed {
		p.taken--
		t.taken--
	} else {
		t.waiting = slices.DeleteFunc(t.waiting, func(w *Live) bool { return w == l })
	}
	p.tidy(l.database)
	for p.next() {
		continue
	}
}

// next gives a place to the first who waits and may have it.
func (p *pool) next() bool {
	for _, name := range p.waiting {
		t := p.databases[name]
		if !p.fits(t) {
			continue
		}
		l := t.waiting[0]
		t.waiting = t.waiting[1:]
		p.waiting = slices.DeleteFunc(p.waiting, func(w string) bool { return w == name })
		if len(t.waiting) > 0 {
			p.waiting = append(p.waiting, name)
		}
		p.take(t, l)
		return true
	}
	return false
}

// tidy forgets a database that has no runs, and its turn where none waits.
func (p *pool) tidy(name string) {
	t := p.databases[name]
	if len(t.waiting) == 0 {
		p.waiting = slices.DeleteFunc(p.waiting, func(w string) bool { return w == name })
	}
	if t.taken == 0 && len(t.waiting) == 0 {
		delete(p.databases, name)
	}
}
