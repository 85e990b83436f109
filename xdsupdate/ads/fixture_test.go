// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"errors"
	"flag"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

const testTimeout = time.Minute

// parts makes all tests use the code that otherwise only requests for many names use.
var parts = flag.Int("parts", 0, "into parts of how many names work on names is divided; 0: the default")

var shard = xdsupdate.ShardKey{Cluster: "c1", Provider: registry.External}

// services is a discovery that tests fill by hand.
type services struct {
	mu   sync.Mutex
	list []*registry.Service
}

func (s *services) set(list ...*registry.Service) {
	if !slices.Contains(list, nil) {
		list = slices.SortedStableFunc(slices.Values(list), registry.CompareServices)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = list
}

func (s *services) Services() []*registry.Service {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list
}

func (s *services) GetService(registry.Hostname) *registry.Service { return nil }
func (s *services) InstancesByPort(*registry.Service, uint32) []*registry.ServiceInstance {
	return nil
}

func (s *services) GetProxyServiceInstances(*registry.Proxy) []*registry.ServiceInstance { return nil }

func (s *services) GetProxyWorkloadLabels(*registry.Proxy) registry.Labels { return nil }

func (s *services) NetworkGateways() []registry.NetworkGateway { return nil }
func (s *services) AppendNetworkGatewayHandler(func())         {}

// service returns a service with a gRPC port 80.
func service(host, namespace string, change ...func(*registry.Service)) *registry.Service {
	s := &registry.Service{
		Hostname:       registry.Hostname(host),
		DefaultAddress: registry.UnspecifiedAddress,
		Ports:          []*registry.Port{{Name: "grpc", Number: 80, Protocol: registry.ProtocolGRPC}},
		Resolution:     registry.ClientSideLB,
		CreationTime:   time.Unix(1000, 0),
		Attributes:     registry.ServiceAttributes{Name: host, Namespace: namespace, ObjectName: host},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func exportTo(v ...registry.Visibility) func(*registry.Service) {
	return func(s *registry.Service) { s.Attributes.ExportTo = v }
}

func endpoint(address string, port uint32) *registry.Endpoint {
	return &registry.Endpoint{
		Addresses: []string{address}, EndpointPort: port, ServicePortName: "grpc", HealthStatus: registry.Healthy,
	}
}

// fixture is a running server.
type fixture struct {
	*ads.Server
	writer   ads.ResourceWriter // in together
	services *services
	listener net.Listener
	t        testing.TB
	serving  func(net.Listener) // serves another listener, too
	stopNow  func()             // ends Run and the gRPC server, and waits for them
}

// serve starts a server of some services; it pushes at once.
func serve(tb testing.TB, options ads.Options, list ...*registry.Service) *fixture {
	tb.Helper()
	discovery := &services{}
	discovery.set(list...)
	f := serveDiscovery(tb, options, discovery)
	f.services = discovery
	return f
}

// serveDiscovery is serve for services from elsewhere.
func serveDiscovery(tb testing.TB, options ads.Options, discovery registry.ServiceDiscovery) *fixture {
	tb.Helper()
	options.Debounce.After = -1
	return serveServer(tb, ads.New(discovery, options))
}

// serveServer is serve for a server.
func serveServer(tb testing.TB, s *ads.Server) *fixture {
	tb.Helper()
	f := &fixture{t: tb, Server: s, listener: network(tb)}
	if *parts > 0 {
		f.SetParts(*parts)
	}
	server := grpc.NewServer()
	f.Register(server)
	stop := make(chan struct{})
	var running sync.WaitGroup
	f.serving = func(listener net.Listener) {
		running.Go(func() {
			if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) { // before it began
				tb.Errorf("Serve: %v", err)
			}
		})
	}
	f.serving(f.listener)
	running.Go(func() { f.Run(stop) })
	f.stopNow = sync.OnceFunc(func() {
		close(stop)
		server.Stop()
		running.Wait()
	})
	tb.Cleanup(f.stopNow)
	return f
}

// address returns the address of a socket of the server.
func (f *fixture) address() string {
	f.t.Helper()
	if _, ok := f.listener.(*net.TCPListener); !ok {
		f.listener = listen(f.t)
		f.serving(f.listener)
	}
	return f.listener.Addr().String()
}

func (f *fixture) dial() *grpc.ClientConn {
	f.t.Helper()
	conn := dialTo(f.t, f.listener)
	f.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// context returns a context for one test.
func (f *fixture) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	f.t.Cleanup(cancel)
	return ctx
}

// eds replaces the endpoints of a service in a namespace.
func (f *fixture) eds(host, namespace string, endpoints ...*registry.Endpoint) {
	f.EDSUpdate(shard, registry.Hostname(host), namespace, slices.SortedFunc(slices.Values(endpoints), registry.CompareEndpoints))
}

// define replaces the services and requests a push of the hosts that changed.
func (f *fixture) define(changed []string, list ...*registry.Service) {
	f.services.set(list...)
	req := &xdsupdate.PushRequest{Full: true, Reason: map[xdsupdate.TriggerReason]int{xdsupdate.ReasonService: 1}}
	var keys []xdsupdate.ConfigKey
	for _, host := range changed {
		keys = append(keys, xdsupdate.ServiceKey(registry.Hostname(host), ""))
	}
	req.ConfigsUpdated = xdsupdate.KeySet(keys...)
	f.ConfigUpdate(req)
}

func (f *fixture) flush() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel() // a soak flushes often: nothing may be left of it until the test ends
	if err := f.Flush(ctx); err != nil {
		f.t.Fatal(err)
	}
}
