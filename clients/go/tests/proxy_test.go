package tests

import (
	"io"
	"net"
	"sync"
	"testing"
)

// proxy stands between a client and its server, and cuts connections when told to.
type proxy struct {
	listener net.Listener
	target   string

	mutex    sync.Mutex
	sockets  map[net.Conn]struct{}
	refusing bool
	taken    int
	// refused has something once a connection was refused.
	refused chan struct{}
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	made := &proxy{
		listener: listener, target: target,
		sockets: map[net.Conn]struct{}{}, refused: make(chan struct{}, 1),
	}
	go made.serve()
	t.Cleanup(func() {
		_ = listener.Close()
		made.refuse()
	})
	return made
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// cut closes every connection there is; new ones are taken.
func (p *proxy) cut() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for socket := range p.sockets {
		_ = socket.Close()
	}
}

// refuse closes every connection, and each new one at once, until heal.
func (p *proxy) refuse() {
	p.mutex.Lock()
	p.refusing = true
	p.mutex.Unlock()
	p.cut()
}

func (p *proxy) heal() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.refusing = false
}

// connections says how many have been asked for.
func (p *proxy) connections() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.taken
}

func (p *proxy) serve() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.target)
		if err != nil || !p.keep(near, far) {
			_ = near.Close()
			if far != nil {
				_ = far.Close()
			}
			continue
		}
		go p.pump(near, far)
		go p.pump(far, near)
	}
}

func (p *proxy) keep(sockets ...net.Conn) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.taken++
	if p.refusing {
		select {
		case p.refused <- struct{}{}:
		default:
		}
		return false
	}
	for _, socket := range sockets {
		p.sockets[socket] = struct{}{}
	}
	return true
}

func (p *proxy) pump(from, to net.Conn) {
	_, _ = io.Copy(to, from)
	_ = from.Close()
	_ = to.Close()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.sockets, from)
}
