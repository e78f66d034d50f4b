package wire

// AllowBookkeeping lets clients reach the collections that the service keeps for itself: an adapter's tests do.
func (s *Server) AllowBookkeeping() { s.bookkeeping = true }

// OpenCursors is how many cursors there are.
func (s *Server) OpenCursors() int { return s.cursors.count() }
