package controller

// Waiters is how many keys of a controller have callers that wait for a result.
func (m *Manager) Waiters(name string) int {
	r := m.runners[name]
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiters)
}
