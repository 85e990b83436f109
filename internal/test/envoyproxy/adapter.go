// SPDX-License-Identifier: Apache-2.0

package envoyproxy

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/internal/test/authority"
)

// Adapter stands between a server and Envoys, and substitutes resources that a test machine does
// not have:
//
//   - the addresses of listeners: each Envoy, by its node id, gets an address of
//     127.0.0.0/8 of its own for each address that it is to listen on, and the port
//     remains, so that two listeners collide exactly if they would without this;
//   - unix sockets to listen on, in a folder of the test;
//   - files of certificates, keys, authorities and revocation lists that do not exist.
//
// All other content is forwarded unchanged.
type Adapter struct {
	dir   string
	files map[string]string // by field of the message
	shift uint32            // of privileged ports, where they cannot be had

	mu    sync.Mutex
	nodes map[string]*addresses // by node id
}

// addresses are the addresses of one Envoy.
type addresses struct {
	second, third int
	hosts         map[netip.Addr]string
}

// NewAdapter returns one for a server: Intercept is an interceptor of its streams.
func NewAdapter(tb testing.TB) *Adapter {
	tb.Helper()
	a := &Adapter{dir: socketDir(tb), nodes: make(map[string]*addresses), files: make(map[string]string)}
	issuer := authority.New(tb)
	certificate, key := issuer.Issue("file.example.com")
	for field, data := range map[string][]byte{
		"certificate_chain": certificate, "private_key": key, "trusted_ca": issuer.PEM(), "crl": issuer.RevocationList(),
	} {
		a.files[field] = filepath.Join(a.dir, field)
		if err := os.WriteFile(a.files[field], data, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	if l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.255.255.1:1"); err == nil {
		_ = l.Close()
	} else {
		a.shift = 20_000
	}
	return a
}

// socketDir is a folder with a short path, because the paths of sockets have at most 107 bytes.
func socketDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "envoy") //nolint:usetesting // The path of tb.TempDir has the name of the test.
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Address returns where the Envoy of a node listens for an address that it is sent.
func (a *Adapter) Address(node, host string, port uint32) string {
	return joinAddress(a.host(node, host), a.port(port))
}

// host returns the address that an Envoy gets in place of another. An address that no machine can
// have is returned unchanged.
func (a *Adapter) host(node, host string) string {
	addr, err := netip.ParseAddr(host)
	if err != nil || addr.Zone() != "" || addr.Is4In6() || addr.IsMulticast() {
		return host
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.nodes[node]
	if n == nil {
		n = &addresses{second: 1 + rand.IntN(250), third: 1 + rand.IntN(250), hosts: make(map[netip.Addr]string)}
		a.nodes[node] = n
	}
	if n.hosts[addr] == "" {
		n.hosts[addr] = fmt.Sprintf("127.%d.%d.%d", n.second, n.third, 1+len(n.hosts))
	}
	return n.hosts[addr]
}

// firstFreePort is the first port that everybody may listen on.
const firstFreePort = 1024

func (a *Adapter) port(port uint32) uint32 {
	if port > 0 && port < firstFreePort {
		return port + a.shift
	}
	return port
}

// Intercept is a grpc.StreamServerInterceptor.
func (a *Adapter) Intercept(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	return handle(srv, &adaptedStream{ServerStream: stream, adapter: a, node: NodeOf(stream.Context())})
}

// adaptedStream is a stream of one Envoy.
type adaptedStream struct {
	grpc.ServerStream
	adapter *Adapter
	node    string
}

// SendMsg implements grpc.ServerStream.
func (s *adaptedStream) SendMsg(m any) error {
	switch r := m.(type) {
	case *discovery.DiscoveryResponse:
		return s.send(r, &discovery.DiscoveryResponse{}, r.GetTypeUrl())
	case *discovery.DeltaDiscoveryResponse:
		return s.send(r, &discovery.DeltaDiscoveryResponse{}, r.GetTypeUrl())
	default:
		return s.ServerStream.SendMsg(m)
	}
}

// send sends a response. The server shares encoded resources between responses, so it
// is decoded into an empty one.
func (s *adaptedStream) send(r, decoded proto.Message, typeURL string) error {
	if kind := typeURL[strings.LastIndexByte(typeURL, '.')+1:]; kind != "Listener" && kind != "Cluster" && kind != "Secret" {
		return s.ServerStream.SendMsg(r)
	}
	data, err := proto.Marshal(r)
	if err != nil {
		return err
	}
	if err := proto.Unmarshal(data, decoded); err != nil {
		return err
	}
	if err := s.adapt(decoded); err != nil {
		return err
	}
	return s.ServerStream.SendMsg(decoded)
}

// adapt changes a message and everything that is packed in it.
func (s *adaptedStream) adapt(m proto.Message) error {
	return visit(m.ProtoReflect(), "", func(field string, m proto.Message) {
		switch m := m.(type) {
		case *listenerv3.Listener:
			s.bind(m.GetAddress())
			for _, more := range m.GetAdditionalAddresses() {
				s.bind(more.GetAddress())
			}
		case *core.DataSource:
			if f := m.GetFilename(); f != "" {
				s.adapter.file(field, m, f)
			}
		}
	})
}

func (s *adaptedStream) bind(at *core.Address) {
	if a := at.GetSocketAddress(); a != nil {
		a.Address = s.adapter.host(s.node, a.GetAddress())
		if v, ok := a.GetPortSpecifier().(*core.SocketAddress_PortValue); ok {
			v.PortValue = s.adapter.port(v.PortValue)
		}
	}
	if p := at.GetPipe(); p != nil && len(p.GetPath()) <= maxPathLength {
		p.Path = filepath.Join(s.adapter.dir, strings.ReplaceAll(strings.TrimPrefix(p.GetPath(), "/"), "/", "-"))
	}
}

// maxPathLength is that of sockets; Envoy refuses longer ones.
const maxPathLength = 107

// file puts a file of the test in place of one that does not exist.
func (a *Adapter) file(field string, m *core.DataSource, name string) {
	if _, err := os.Stat(name); err == nil || a.files[field] == "" {
		return
	}
	m.Specifier = &core.DataSource_Filename{Filename: a.files[field]}
}

// unpack calls a function with the packed message and packs it again.
func unpack(packed *anypb.Any, change func(m proto.Message) error) error {
	m, err := packed.UnmarshalNew()
	if err != nil {
		return nil //nolint:nilerr // A type that this process does not know stays as it is.
	}
	if err := change(m); err != nil {
		return err
	}
	return packed.MarshalFrom(m)
}
