// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// consulServer is as much of a Consul server as the catalogue of the example needs: the
// catalogue of services, their instances with checks, and blocking queries. It answers
// as a Consul 1.20 does: a query with an index waits until that of the server is higher,
// or for the time that it gives, and up to a sixteenth more; every answer has the index;
// that of a table grows when the table changes, and begins again when the server has lost
// its data. It listens in memory, so that it can be used where time is simulated.
type consulServer struct {
	server   *http.Server
	listener *pipeListener

	mu sync.Mutex
	// index counts all changes; services and checks have that of their last one.
	index, services, checks uint64
	// changed is closed, and replaced, with each change.
	changed   chan struct{}
	instances []*consulInstance
	// empty makes every list empty, as that of a server that has lost its data.
	empty bool
	// fault, if set, is what every answer is.
	fault int
}

// consulInstance is a registered instance.
type consulInstance struct {
	service, id, address string
	port                 int
	tags                 []string
	status               string
}

func startConsul() *consulServer {
	s := &consulServer{changed: make(chan struct{}), index: 10, services: 10, checks: 10}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/catalog/services", s.answer(func() *uint64 { return &s.services }, s.listServices))
	mux.HandleFunc("GET /v1/health/state/any", s.answer(func() *uint64 { return &s.checks }, s.listChecks))
	mux.HandleFunc("GET /v1/health/service/{name}", s.answer(func() *uint64 { return &s.index }, s.listInstances))
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	s.listener = newPipeListener()
	go func() { _ = s.server.Serve(s.listener) }()
	return s
}

// stop ends the server with all its connections.
func (s *consulServer) stop() {
	s.listener.away(true)
	_ = s.server.Close()
}

// client returns a client whose connections lead here.
func (s *consulServer) client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.listener.dial(ctx) },
		// Idle connections are closed, because otherwise tests would share them.
		DisableKeepAlives: true,
	}}
}

// change changes the server, and wakes up the queries that wait for it.
func (s *consulServer) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index++
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

// register adds an instance, or replaces that of the same ID.
func (s *consulServer) register(service, id, address string, port int, tags ...string) {
	s.change(func() {
		s.instances = slices.DeleteFunc(s.instances, func(i *consulInstance) bool { return i.id == id })
		s.instances = append(s.instances, &consulInstance{service, id, address, port, tags, "passing"})
		s.services, s.checks = s.index, s.index
	})
}

func (s *consulServer) deregister(id string) {
	s.change(func() {
		s.instances = slices.DeleteFunc(s.instances, func(i *consulInstance) bool { return i.id == id })
		s.services, s.checks = s.index, s.index
	})
}

// check sets the status of an instance's check.
func (s *consulServer) check(id, status string) {
	s.change(func() {
		for _, i := range s.instances {
			if i.id == id {
				i.status = status
			}
		}
		s.checks = s.index
	})
}

// setFault makes every response have a status; 0 removes the fault.
func (s *consulServer) setFault(status int) { s.change(func() { s.fault = status }) }

// restart takes the server away for some time. Its indexes begin again at 1, and it has
// lost its data if empty is set.
func (s *consulServer) restart(after time.Duration, empty bool) {
	s.listener.away(true)
	time.Sleep(after)
	s.change(func() { s.index, s.services, s.checks, s.empty = 1, 1, 1, empty })
	s.listener.away(false)
}

// recover gives the server its data back.
func (s *consulServer) recover() {
	s.change(func() { s.empty = false; s.services, s.checks = s.index, s.index })
}

// answer makes the handler of a path from what lists, and its index.
func (s *consulServer) answer(index func() *uint64, list func(*http.Request) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.block(r, index())
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.fault != 0 {
			http.Error(w, "No cluster leader", s.fault)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Consul-Index", strconv.FormatUint(*index(), 10))
		_ = json.NewEncoder(w).Encode(list(r))
	}
}

// block waits as a query with an index demands.
func (s *consulServer) block(r *http.Request, index *uint64) {
	from, _ := strconv.ParseUint(r.URL.Query().Get("index"), 10, 64)
	wait, _ := time.ParseDuration(r.URL.Query().Get("wait"))
	if from == 0 {
		return
	}
	timer := time.NewTimer(wait + wait/16)
	defer timer.Stop()
	for {
		s.mu.Lock()
		now, changed, fault := *index, s.changed, s.fault
		s.mu.Unlock()
		if now > from || fault != 0 {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (s *consulServer) listServices(*http.Request) any {
	out := map[string][]string{}
	for _, i := range s.instances {
		if !s.empty {
			out[i.service] = append(out[i.service], i.tags...)
		}
	}
	return out
}

func (s *consulServer) listChecks(*http.Request) any {
	out := []map[string]any{}
	for _, i := range s.instances {
		if !s.empty {
			out = append(out, map[string]any{"CheckID": "service:" + i.id, "Status": i.status, "ServiceName": i.service})
		}
	}
	return out
}

func (s *consulServer) listInstances(r *http.Request) any {
	out := []map[string]any{}
	for _, i := range s.instances {
		if s.empty || i.service != r.PathValue("name") {
			continue
		}
		out = append(out, map[string]any{
			"Node": map[string]any{"Node": "node-1", "Address": "10.9.9.9"},
			"Service": map[string]any{
				"ID": i.id, "Service": i.service, "Address": i.address, "Port": i.port, "Tags": i.tags,
				"Weights": map[string]int{"Passing": 1, "Warning": 1},
			},
			"Checks": []map[string]any{
				{"CheckID": "serfHealth", "Status": "passing"}, {"CheckID": "service:" + i.id, "Status": i.status},
			},
		})
	}
	return out
}

// pipeListener is a listener in memory.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once

	mu   sync.Mutex
	gone bool
	open []net.Conn
}

var errAway = errors.New("connection refused")

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// away closes all connections, and rejects new ones until it is called with false.
func (l *pipeListener) away(gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = gone
	for _, c := range l.open {
		_ = c.Close()
	}
	l.open = nil
}

func (l *pipeListener) dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	l.mu.Lock()
	gone := l.gone
	if !gone {
		l.open = append(l.open, server)
	}
	l.mu.Unlock()
	if gone {
		return nil, errAway
	}
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, errAway
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

// Network implements net.Addr.
func (pipeAddr) Network() string { return "pipe" }

// String implements net.Addr.
func (pipeAddr) String() string { return "consul" }
