package media

// Waiting says how many wait for a picture.
func (i *Images) Waiting(key string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	if m := i.making[key]; m != nil {
		return m.waiting
	}
	return 0
}

// Scanned waits until what was there at the start is known, and until no picture is being made.
func (i *Images) Scanned() { i.work.Wait() }

// Total is how many bytes are known to be on the disk.
func (i *Images) Total() int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.total
}
