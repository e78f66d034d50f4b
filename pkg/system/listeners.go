package system

import "sync"

// listeners are told of changes to the records of a model.
type listeners struct {
	mu  sync.Mutex
	fns []func(id string)
}

// OnChange registers fn to be called with the id of each record that this process changes or deletes, before the
// change is answered.
func (l *listeners) OnChange(fn func(id string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fns = append(l.fns, fn)
}

func (l *listeners) changed(id string) {
	l.mu.Lock()
	fns := l.fns
	l.mu.Unlock()
	for _, fn := range fns {
		fn(id)
	}
}
