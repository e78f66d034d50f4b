package mongotest

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Proxy stands between a service and a MongoDB, and does harm to what goes through it. Its methods are safe for concurrent
// use.
type Proxy struct {
	// URI leads to the server through the proxy.
	URI string

	target   string
	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool
	delay  time.Duration
	refuse bool
	silent chan struct{} // closed when bytes pass again; nil: they pass
	closed bool
}

// StartProxy starts a proxy to the first host of a connection string, until the test ends.
func StartProxy(tb testing.TB, uri string) *Proxy {
	tb.Helper()
	to, err := url.Parse(uri)
	if err != nil {
		tb.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{target: to.Host, listener: l, conns: map[net.Conn]bool{}}
	q := to.Query()
	q.Del("replicaSet")
	q.Set("directConnection", "true") // else the driver goes where the set says that it is
	to.Host, to.RawQuery = l.Addr().String(), q.Encode()
	p.URI = to.String()
	p.running.Go(p.accept)
	tb.Cleanup(p.close)
	return p
}

// Heal lets everything pass again.
func (p *Proxy) Heal() { p.set(0, false, false) }

// Slow holds back what goes either way.
func (p *Proxy) Slow(d time.Duration) { p.set(d, false, false) }

// Refuse breaks all connections, and each new one.
func (p *Proxy) Refuse() {
	p.set(0, true, false)
	p.Reset()
}

// Silence holds back everything, and breaks nothing, as a network does that loses packets.
func (p *Proxy) Silence() { p.set(0, false, true) }

// Reset breaks all connections.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // the other side is told at once
		}
		_ = c.Close()
	}
}

func (p *Proxy) set(delay time.Duration, refuse, silent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay, p.refuse = delay, refuse
	switch {
	case silent && p.silent == nil:
		p.silent = make(chan struct{})
	case !silent && p.silent != nil:
		close(p.silent)
		p.silent = nil
	}
}

func (p *Proxy) close() {
	p.Heal()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.Reset()
	p.running.Wait()
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(c) })
	}
}

// keep takes a connection into those that Reset breaks, unless there are to be none.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse || p.closed {
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Proxy) forget(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	_ = c.Close()
}

func (p *Proxy) serve(c net.Conn) {
	defer p.forget(c)
	if !p.keep(c) {
		return
	}
	server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", p.target)
	if err != nil {
		return
	}
	defer p.forget(server)
	if !p.keep(server) {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		p.pass(c, server)
		_ = c.Close()
	})
	p.pass(server, c)
	_ = server.Close()
	back.Wait()
}

// pass copies bytes until a side is closed.
func (p *Proxy) pass(to io.Writer, from io.Reader) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			p.wait()
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// wait holds back as long as there is a reason to.
func (p *Proxy) wait() {
	p.mu.Lock()
	delay, silent := p.delay, p.silent
	p.mu.Unlock()
	if silent != nil {
		<-silent
	}
	if delay > 0 {
		time.Sleep(delay)
	}
}
