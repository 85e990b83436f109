// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"slices"
	"strings"
	"sync"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/atomic"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
)

// Nearly all tests of sources run in bubbles of testing/synctest, over gRPC in memory: when nothing
// is left to do, time jumps to the next timer. An expired deadline therefore means that the event
// never comes, regardless of the machine's load.

// serviceEntryURL is the type that most tests use.
const serviceEntryURL = "networking.istio.io/v1/ServiceEntry"

// only are options for one kind.
func only(kinds ...configstore.GroupVersionKind) SourceOptions { return SourceOptions{Kinds: kinds} }

// serveADS serves on a network in memory, and returns a connection and what ends both.
func serveADS(
	tb testing.TB, service discovery.AggregatedDiscoveryServiceServer, opts ...grpc.ServerOption,
) (conn *grpc.ClientConn, end func()) {
	tb.Helper()
	server := grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(64<<20))...)
	discovery.RegisterAggregatedDiscoveryServiceServer(server, service)
	return testserver.ServeMemory(tb, server)
}

// run runs a source, and returns what stops it and waits for its end.
func run(source *Source) (stop func()) {
	stopped := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { source.Run(stopped) })
	return sync.OnceFunc(func() {
		close(stopped)
		running.Wait()
	})
}

// driver is a server controlled by a test, on one stream at a time.
type driver struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer
	tb      testing.TB
	options []grpc.ServerOption
	// sotw and delta are the open streams, in order of opening.
	sotw  chan sotwServer
	delta chan deltaServer
	// opened counts the streams, refused returns the errors that end them at once.
	opened  atomic.Int32
	refused func(n int) error
	// noDelta: it does not speak delta.
	noDelta bool
	// requests and deltas are the received requests.
	requests chan *discovery.DiscoveryRequest
	deltas   chan *discovery.DeltaDiscoveryRequest
	// current and now are the stream that the test has opened last.
	current sotwServer
	now     deltaServer
	cut     chan error
}

type (
	sotwServer  = discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer
	deltaServer = discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer
)

// drive serves a driver and runs a source of it. end is to be deferred.
func drive(tb testing.TB, store configstore.ConfigStore, o SourceOptions) (d *driver, source *Source, end func()) {
	tb.Helper()
	d = &driver{}
	d.init(tb)
	source, end = d.run(store, o)
	return d, source, end
}

func (d *driver) init(tb testing.TB) {
	tb.Helper()
	d.tb = tb
	d.sotw, d.delta = make(chan sotwServer, 100), make(chan deltaServer, 100)
	d.requests, d.deltas = make(chan *discovery.DiscoveryRequest, 1000), make(chan *discovery.DeltaDiscoveryRequest, 1000)
	d.cut = make(chan error)
}

func (d *driver) run(store configstore.ConfigStore, o SourceOptions) (source *Source, end func()) {
	d.tb.Helper()
	if o.AskAgain == 0 {
		o.AskAgain = -1 // what is not requested by the test does not wake it
	}
	conn, closed := serveADS(d.tb, d, d.options...)
	source = NewSource(conn, store, o)
	stop := run(source)
	return source, func() {
		stop()
		closed()
	}
}

func (d *driver) StreamAggregatedResources(stream sotwServer) error {
	n := int(d.opened.Inc())
	if d.refused != nil {
		if err := d.refused(n); err != nil {
			return err
		}
	}
	d.sotw <- stream
	return forward(stream.Recv, d.requests, d.cut)
}

func (d *driver) DeltaAggregatedResources(stream deltaServer) error {
	if d.noDelta {
		return status.Error(codes.Unimplemented, "no delta")
	}
	n := int(d.opened.Inc())
	if d.refused != nil {
		if err := d.refused(n); err != nil {
			return err
		}
	}
	d.delta <- stream
	return forward(stream.Recv, d.deltas, d.cut)
}

// forward forwards received messages until the stream ends or is cut.
func forward[T any](receive func() (T, error), to chan<- T, cut <-chan error) error {
	ended := make(chan error, 1)
	go func() {
		for {
			r, err := receive()
			if err != nil {
				ended <- nil
				return
			}
			to <- r
		}
	}()
	select {
	case err := <-ended:
		return err
	case err := <-cut:
		return err
	}
}

// open waits for the next stream, and returns its first requests by type.
func (d *driver) open(kinds int) map[string]*discovery.DiscoveryRequest {
	d.current = <-d.sotw
	out := map[string]*discovery.DiscoveryRequest{}
	for range kinds {
		r := <-d.requests
		out[r.GetTypeUrl()] = r
	}
	return out
}

// openDelta waits for the next stream, and returns its first request.
func (d *driver) openDelta() *discovery.DeltaDiscoveryRequest {
	d.now = <-d.delta
	return <-d.deltas
}

// say sends ServiceEntries and returns the reply.
func (d *driver) say(version string, resources ...*anypb.Any) *discovery.DiscoveryRequest {
	d.send(serviceEntryURL, version, resources...)
	return <-d.requests
}

// send sends a response. Its nonce is its version with an n before it.
func (d *driver) send(url, version string, resources ...*anypb.Any) {
	d.tb.Helper()
	err := d.current.Send(&discovery.DiscoveryResponse{TypeUrl: url, VersionInfo: version, Nonce: "n" + version, Resources: resources})
	if err != nil {
		d.tb.Error(err)
	}
}

// tell sends a delta and returns the reply.
func (d *driver) tell(r *discovery.DeltaDiscoveryResponse) *discovery.DeltaDiscoveryRequest {
	d.tb.Helper()
	if err := d.now.Send(r); err != nil {
		d.tb.Error(err)
	}
	return <-d.deltas
}

// end ends the stream.
func (d *driver) end() { d.cut <- status.Error(codes.Unavailable, "cut") }

// delta returns a response about ServiceEntries.
func delta(tb testing.TB, nonce string, removed []string, objects ...configstore.Config) *discovery.DeltaDiscoveryResponse {
	tb.Helper()
	r := &discovery.DeltaDiscoveryResponse{TypeUrl: serviceEntryURL, Nonce: nonce, RemovedResources: removed}
	for _, c := range objects {
		r.Resources = append(r.Resources, &discovery.Resource{
			Name: resourceName(c.Name, c.Namespace), Version: c.ResourceVersion, Resource: encoded(tb, c),
		})
	}
	return r
}

// entries returns the ServiceEntries of the namespace default with these names.
func entries(tb testing.TB, names ...string) []*anypb.Any {
	tb.Helper()
	out := make([]*anypb.Any, len(names))
	for i, name := range names {
		out[i] = encoded(tb, entry("default", name))
	}
	return out
}

// names returns the names of the ServiceEntries of a store, with the host of each.
func names(store configstore.Reader) string {
	var out []string
	for _, c := range store.List(istio.ServiceEntry, "") {
		out = append(out, c.Name)
	}
	return strings.Join(out, " ")
}

// newStore returns a store that finds out who changes its objects.
func newStore() *memory.Store {
	return memory.Make(istio.Schemas(), memory.Options{DetectMutations: true})
}

// messages returns the errors of a report as text.
func messages(source *Source) []string {
	var out []string
	for _, e := range source.Report().Errors {
		out = append(out, e.Error())
	}
	return slices.Clip(out)
}

// synced waits until a source has synced.
func synced(tb testing.TB, source *Source) {
	tb.Helper()
	if err := configstore.WaitForSync(tb.Context(), source); err != nil {
		tb.Fatal(err)
	}
}
