// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"sync"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/anypb"
)

// peer is a stream to a server, in either protocol. Only one goroutine may send, and
// only one receive.
type peer interface {
	// subscribe requests all objects of a type. known has the names and versions of the source's
	// objects. node is nil except for the first request of the stream.
	subscribe(typeURL string, known map[string]string, node *core.Node) error
	// answer is an ACK, or, with a refusal, a NACK.
	answer(r reply) error
	receive() (*response, error)
}

// response is one response of a server, which is for one type.
type response struct {
	typeURL, version, nonce string
	resources               []received
	// removed are the names of objects that are gone; delta only.
	removed []string
	// delta means that objects which are not in the response are unchanged. Else they
	// are gone.
	delta bool
}

// received is one resource of a response.
type received struct {
	// name and version are empty in SotW, where only the resource itself has them.
	name, version string
	resource      *anypb.Any
}

// reply is the source's ACK or NACK of a response.
type reply struct {
	typeURL string
	// version is the version of the last response that was accepted as a whole on this stream.
	version, nonce string
	// refusal is the text of a NACK, empty for an ACK.
	refusal string
}

func (r *reply) detail() *rpcstatus.Status {
	if r.refusal == "" {
		return nil
	}
	return &rpcstatus.Status{Code: int32(codes.InvalidArgument), Message: r.refusal}
}

// open opens a stream.
func (s *Source) open(ctx context.Context, delta bool) (peer, error) {
	client := discovery.NewAggregatedDiscoveryServiceClient(s.conn)
	limit := grpc.MaxCallRecvMsgSize(s.opts.MaxResponseBytes)
	if delta {
		stream, err := client.DeltaAggregatedResources(ctx, limit)
		if err != nil {
			return nil, fmt.Errorf("open a delta stream: %w", err)
		}
		return deltaPeer{stream}, nil
	}
	stream, err := client.StreamAggregatedResources(ctx, limit)
	if err != nil {
		return nil, fmt.Errorf("open a stream: %w", err)
	}
	return sotwPeer{stream}, nil
}

// sotwPeer speaks SotW.
type sotwPeer struct {
	stream grpc.BidiStreamingClient[discovery.DiscoveryRequest, discovery.DiscoveryResponse]
}

// subscribe sends no version, so that the server sends everything, which confirms that the source's
// objects are current.
func (p sotwPeer) subscribe(typeURL string, _ map[string]string, node *core.Node) error {
	return p.stream.Send(&discovery.DiscoveryRequest{TypeUrl: typeURL, Node: node}) //nolint:wrapcheck // the outbox does
}

func (p sotwPeer) answer(r reply) error {
	return p.stream.Send(&discovery.DiscoveryRequest{ //nolint:wrapcheck // the outbox does
		TypeUrl: r.typeURL, VersionInfo: r.version, ResponseNonce: r.nonce, ErrorDetail: r.detail(),
	})
}

func (p sotwPeer) receive() (*response, error) {
	m, err := p.stream.Recv()
	if err != nil {
		return nil, err //nolint:wrapcheck // the session does
	}
	return fromSotW(m), nil
}

func fromSotW(m *discovery.DiscoveryResponse) *response {
	out := &response{typeURL: m.GetTypeUrl(), version: m.GetVersionInfo(), nonce: m.GetNonce()}
	out.resources = make([]received, len(m.GetResources()))
	for i, r := range m.GetResources() {
		out.resources[i].resource = r
	}
	return out
}

// deltaPeer speaks delta.
type deltaPeer struct {
	stream grpc.BidiStreamingClient[discovery.DeltaDiscoveryRequest, discovery.DeltaDiscoveryResponse]
}

func (p deltaPeer) subscribe(typeURL string, known map[string]string, node *core.Node) error {
	return p.stream.Send(&discovery.DeltaDiscoveryRequest{ //nolint:wrapcheck // the outbox does
		TypeUrl: typeURL, Node: node, InitialResourceVersions: known, ResourceNamesSubscribe: []string{"*"},
	})
}

func (p deltaPeer) answer(r reply) error {
	return p.stream.Send(&discovery.DeltaDiscoveryRequest{ //nolint:wrapcheck // the outbox does
		TypeUrl: r.typeURL, ResponseNonce: r.nonce, ErrorDetail: r.detail(),
	})
}

func (p deltaPeer) receive() (*response, error) {
	m, err := p.stream.Recv()
	if err != nil {
		return nil, err //nolint:wrapcheck // the session does
	}
	return fromDelta(m), nil
}

func fromDelta(m *discovery.DeltaDiscoveryResponse) *response {
	out := &response{
		typeURL: m.GetTypeUrl(), version: m.GetSystemVersionInfo(), nonce: m.GetNonce(),
		removed: m.GetRemovedResources(), delta: true,
	}
	out.resources = make([]received, len(m.GetResources()))
	for i, r := range m.GetResources() {
		out.resources[i] = received{name: r.GetName(), version: r.GetVersion(), resource: r.GetResource()}
	}
	return out
}

// outbox sends in its own goroutine: a server that sends much before it reads must not
// keep the source from reading.
type outbox struct {
	mu      sync.Mutex
	pending []func() error
	wake    chan struct{}
}

func newOutbox() *outbox { return &outbox{wake: make(chan struct{}, 1)} }

func (o *outbox) put(send func() error) {
	o.mu.Lock()
	o.pending = append(o.pending, send)
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// run sends until ctx ends or sending fails, which the end of the stream says, too.
func (o *outbox) run(ctx context.Context) {
	for {
		o.mu.Lock()
		pending := o.pending
		o.pending = nil
		o.mu.Unlock()
		for _, send := range pending {
			if send() != nil {
				return
			}
		}
		select {
		case <-o.wake:
		case <-ctx.Done():
			return
		}
	}
}
