// SPDX-License-Identifier: Apache-2.0

package mosn

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
)

// freePorts returns ports that are free. They are below those that systems give to
// connections, and to listeners that name none, so that nobody takes them before the
// proxy does.
func freePorts(t *testing.T, n int) []uint32 {
	t.Helper()
	var ports []uint32
	for try := 0; len(ports) < n; try++ {
		port := uint32(10_000 + rand.IntN(10_000))
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address(port))
		if err == nil {
			defer l.Close() // at the end, so that no port is found twice
			ports = append(ports, port)
		} else if try == 100 {
			t.Fatal(err)
		}
	}
	return ports
}

// backend is an HTTP server that says its name.
type backend struct {
	*httptest.Server
	name string
}

func startBackend(t *testing.T, name string) *backend {
	t.Helper()
	b := &backend{name: name}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s %s", name, r.URL.Path)
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *backend) port() uint32 { return uint32(b.Listener.Addr().(*net.TCPAddr).Port) }

// startEcho is a TCP server that sends back what it gets.
func startEcho(t *testing.T) uint32 {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	return uint32(l.Addr().(*net.TCPAddr).Port)
}

// entry is a ServiceEntry with endpoints on the loopback interface.
func entry(host, protocol string, ports ...uint32) *networking.ServiceEntry {
	e := &networking.ServiceEntry{
		Hosts: []string{host}, Location: networking.ServiceEntry_MESH_INTERNAL, Resolution: networking.ServiceEntry_STATIC,
		Ports: []*networking.ServicePort{{Number: 80, Name: "p", Protocol: protocol}},
	}
	for _, p := range ports {
		e.Endpoints = append(e.Endpoints, &networking.WorkloadEntry{Address: "127.0.0.1", Ports: map[string]uint32{"p": p}})
	}
	return e
}

func server(port uint32, name, protocol string, settings *networking.ServerTLSSettings) *networking.Server {
	return &networking.Server{
		Port: &networking.Port{Number: port, Name: name, Protocol: protocol}, Bind: "127.0.0.1", Hosts: []string{"*"}, Tls: settings,
	}
}

func prefix(p string) []*networking.HTTPMatchRequest {
	return []*networking.HTTPMatchRequest{{Uri: &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: p}}}}
}

func to(host string) []*networking.HTTPRouteDestination {
	return []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: host}}}
}

// scene is a gateway with traffic.
type scene struct {
	*plane
	http, tcp, tls uint32
	one, two       *backend
	authority      *authority
}

// startScene runs a gateway for two HTTP backends and an echo server, and returns
// when it answers.
func startScene(t *testing.T) *scene {
	t.Helper()
	program, ports := buildProxy(t), freePorts(t, 3)
	s := &scene{
		http: ports[0], tcp: ports[1], tls: ports[2],
		one: startBackend(t, "one"), two: startBackend(t, "two"), authority: newAuthority(t),
	}
	s.plane = startPlane(t, s.authority.secret("shop.example.com"))
	s.set(istio.ServiceEntry, "shop", entry("shop.local.test", "HTTP", s.one.port(), s.two.port()))
	s.set(istio.ServiceEntry, "echo", entry("echo.local.test", "TCP", startEcho(t)))
	s.set(istio.Gateway, "edge", &networking.Gateway{Selector: map[string]string{"app": "edge"}, Servers: []*networking.Server{
		server(s.http, "http", "HTTP", nil), server(s.tcp, "tcp", "TCP", nil),
		server(s.tls, "https", "HTTPS", &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_MUTUAL, CredentialName: "edge"}),
	}})
	s.set(istio.VirtualService, "shop", &networking.VirtualService{
		Hosts: []string{"shop.example.com"}, Gateways: []string{"edge"},
		Http: []*networking.HTTPRoute{
			{Match: prefix("/old"), Rewrite: &networking.HTTPRewrite{Uri: "/new"}, Route: to("shop.local.test")},
			{Match: prefix("/teapot"), DirectResponse: &networking.HTTPDirectResponse{Status: http.StatusTeapot}},
			{Match: prefix("/shop"), Route: to("shop.local.test")},
		},
	})
	s.set(istio.VirtualService, "echo", &networking.VirtualService{
		Hosts: []string{"*"}, Gateways: []string{"edge"},
		Tcp: []*networking.TCPRoute{{Route: []*networking.RouteDestination{{Destination: &networking.Destination{Host: "echo.local.test"}}}}},
	})
	s.applied()
	s.fetchSecrets("kubernetes://edge", "kubernetes://edge-cacert")
	startProxy(t, program, "127.0.0.1", s.port)
	s.awaitAnswer()
	return s
}

// awaitAnswer returns when the gateway answers on all ports.
func (s *scene) awaitAnswer() {
	s.t.Helper()
	ctx := s.context()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	// MOSN serves a connection by the routes that it had when the connection came.
	transport := &http.Transport{DisableKeepAlives: true}
	for {
		status, _, err := s.get(transport, "http", s.http, "/shop")
		if err == nil && status == http.StatusOK && s.listens(s.tcp) && s.listens(s.tls) {
			return
		}
		select {
		case <-ctx.Done():
			s.t.Fatalf("the gateway does not answer: status %d, %v", status, err)
		case <-poll.C:
		}
	}
}

func (s *scene) listens(port uint32) bool {
	conn, err := (&net.Dialer{}).DialContext(s.t.Context(), "tcp", address(port))
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

func address(port uint32) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))) }

// get sends a request for shop.example.com to a port of the gateway.
func (s *scene) get(transport http.RoundTripper, scheme string, port uint32, path string) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, scheme+"://"+address(port)+path, nil)
	if err != nil {
		return 0, "", err
	}
	req.Host = "shop.example.com"
	res, err := transport.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return res.StatusCode, string(data), err
}

// TestGateway sends all kinds of traffic through one gateway.
func TestGateway(t *testing.T) {
	s := startScene(t)
	t.Run("HTTP", s.testHTTP)
	t.Run("TCP", s.testTCP)
	t.Run("TLS", s.testTLS)
	t.Run("leaving endpoints", s.testLeaving)
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

func (s *scene) testHTTP(t *testing.T) {
	answers := make(map[string]int)
	for range 40 {
		status, body, err := s.get(http.DefaultTransport, "http", s.http, "/shop/x")
		if err != nil || status != http.StatusOK {
			t.Fatalf("status %d, %v", status, err)
		}
		answers[body]++
	}
	if len(answers) != 2 || answers["one /shop/x"] == 0 || answers["two /shop/x"] == 0 {
		t.Errorf("answers: %v", answers)
	}
	if status, body, err := s.get(http.DefaultTransport, "http", s.http, "/old/x"); err != nil || status != http.StatusOK || body[4:] != "/new/x" {
		t.Errorf("rewritten path: status %d, %q, %v", status, body, err)
	}
	for path, want := range map[string]int{"/teapot": http.StatusTeapot, "/unknown": http.StatusNotFound} {
		if status, _, err := s.get(http.DefaultTransport, "http", s.http, path); err != nil || status != want {
			t.Errorf("%s: status %d, %v; want %d", path, status, err, want)
		}
	}
}

func (s *scene) testTCP(t *testing.T) {
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address(s.tcp))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, text := range []string{"hello", "again"} {
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(text))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
			t.Errorf("echo of %q: %q, %v", text, got, err)
		}
	}
}

func (s *scene) testTLS(t *testing.T) {
	roots := x509.NewCertPool()
	roots.AddCert(s.authority.certificate)
	call := func(certificates ...tls.Certificate) (int, error) {
		transport := &http.Transport{TLSClientConfig: &tls.Config{
			RootCAs: roots, ServerName: "shop.example.com", Certificates: certificates, MinVersion: tls.VersionTLS12,
		}}
		defer transport.CloseIdleConnections()
		status, _, err := s.get(transport, "https", s.tls, "/shop")
		return status, err
	}
	if status, err := call(s.authority.pair(t, "client.example.com")); err != nil || status != http.StatusOK {
		t.Errorf("with a client certificate: status %d, %v", status, err)
	}
	if status, err := call(); err == nil {
		t.Errorf("without a client certificate: status %d", status)
	}
	if status, err := call(newAuthority(t).pair(t, "client.example.com")); err == nil {
		t.Errorf("with a certificate of another authority: status %d", status)
	}
}

// testLeaving: endpoints leave and return under load, and not one request fails.
func (s *scene) testLeaving(t *testing.T) {
	const workers = 4
	var running sync.WaitGroup
	var stopped atomic.Bool
	var done, byOne atomic.Int64
	failures := make(chan error, workers)
	for range workers {
		running.Go(func() {
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			for !stopped.Load() {
				status, body, err := s.get(transport, "http", s.http, "/shop")
				if err == nil && status != http.StatusOK {
					err = fmt.Errorf("status %d", status)
				}
				if err != nil {
					failures <- err
					return
				}
				if done.Inc(); body == "one /shop" {
					byOne.Inc()
				}
			}
		})
	}
	// more returns when some more requests were answered, by one of the backends too
	// if that is asked for.
	more := func(withOne bool) {
		from, one := done.Load(), byOne.Load()
		poll := time.NewTicker(5 * time.Millisecond)
		defer poll.Stop()
		for deadline := time.Now().Add(testTimeout); done.Load() < from+200 || withOne && byOne.Load() == one; <-poll.C {
			if time.Now().After(deadline) {
				failures <- errors.New("too few requests")
				return
			}
		}
	}
	for range 3 {
		more(true)
		s.set(istio.ServiceEntry, "shop", entry("shop.local.test", "HTTP", s.two.port()))
		s.applied()
		more(false)
		s.set(istio.ServiceEntry, "shop", entry("shop.local.test", "HTTP", s.one.port(), s.two.port()))
		s.applied()
	}
	more(true)
	stopped.Store(true)
	running.Wait()
	select {
	case err := <-failures:
		t.Errorf("a request failed after %d: %v", done.Load(), err)
	default:
		t.Logf("%d requests", done.Load())
	}
}
