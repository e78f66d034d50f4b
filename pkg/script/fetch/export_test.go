package fetch

// CheckAddress is what the dialer asks at the moment of the connect.
func (l List) CheckAddress(host, address string) error { return l.checkAddress(host, address) }
