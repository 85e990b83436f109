// SPDX-License-Identifier: Apache-2.0

package xdstest

import (
	"context"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// stream is an ADS stream of either protocol.
type stream interface {
	send(r request) error
	receive() (Response, error)
	close()
}

// open opens a stream in the client's protocol.
func (c *Client) open(ctx context.Context) (stream, error) {
	ads := discovery.NewAggregatedDiscoveryServiceClient(c.conn)
	if c.options.Delta {
		s, err := ads.DeltaAggregatedResources(ctx)
		return deltaStream{s}, err
	}
	s, err := ads.StreamAggregatedResources(ctx)
	return sotwStream{s}, err
}

// cancelStream is a stream that ends with its context.
type cancelStream struct {
	stream
	cancel context.CancelFunc
}

func (s cancelStream) close() { s.cancel() }

type sotwStream struct {
	discovery.AggregatedDiscoveryService_StreamAggregatedResourcesClient
}

func (s sotwStream) close() {}

func (s sotwStream) send(r request) error {
	return s.Send(&discovery.DiscoveryRequest{
		Node: r.node, TypeUrl: r.typeURL, VersionInfo: r.version, ResponseNonce: r.nonce,
		ResourceNames: r.names, ErrorDetail: refusalOf(r.refusal),
	})
}

func (s sotwStream) receive() (Response, error) {
	m, err := s.Recv()
	if err != nil {
		return Response{}, err
	}
	out := Response{TypeURL: m.GetTypeUrl(), Version: m.GetVersionInfo(), Nonce: m.GetNonce(), Bytes: proto.Size(m)}
	for _, a := range m.GetResources() {
		out.Resources = append(out.Resources, Resource{Name: nameOf(a), Version: out.Version, Any: a})
	}
	return out, nil
}

type deltaStream struct {
	discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
}

func (s deltaStream) close() {}

func (s deltaStream) send(r request) error {
	return s.Send(&discovery.DeltaDiscoveryRequest{
		Node: r.node, TypeUrl: r.typeURL, ResponseNonce: r.nonce,
		ResourceNamesSubscribe: r.subscribe, ResourceNamesUnsubscribe: r.unsubscribe,
		InitialResourceVersions: r.versions, ErrorDetail: refusalOf(r.refusal),
	})
}

func (s deltaStream) receive() (Response, error) {
	m, err := s.Recv()
	if err != nil {
		return Response{}, err
	}
	out := Response{
		TypeURL: m.GetTypeUrl(), Version: m.GetSystemVersionInfo(), Nonce: m.GetNonce(),
		Removed: m.GetRemovedResources(), Bytes: proto.Size(m),
	}
	for _, r := range m.GetResources() {
		out.Resources = append(out.Resources, Resource{Name: r.GetName(), Version: r.GetVersion(), Any: r.GetResource()})
	}
	return out, nil
}

func refusalOf(err error) *rpcstatus.Status {
	if err == nil {
		return nil
	}
	return &rpcstatus.Status{Code: int32(codes.InvalidArgument), Message: err.Error()}
}
