// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"maps"
	"sync"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// sent has the resources that were sent to Envoys, recorded on the wire.
type sent struct {
	mu sync.Mutex
	// resources are by node id, type URL and name.
	resources map[string]map[string]map[string]*anypb.Any
}

func newSent() *sent { return &sent{resources: make(map[string]map[string]map[string]*anypb.Any)} }

// of returns an Envoy's resources of a type, by name.
func (s *sent) of(node, typeURL string) map[string]*anypb.Any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.resources[node][typeURL])
}

// intercept is a grpc.StreamServerInterceptor.
func (s *sent) intercept(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	return handle(srv, &observedStream{stream, s, envoyproxy.NodeOf(stream.Context())})
}

type observedStream struct {
	grpc.ServerStream
	sent *sent
	node string
}

// SendMsg implements grpc.ServerStream.
func (o *observedStream) SendMsg(m any) error {
	// Encoded resources are what protobuf calls unknown fields.
	data, err := proto.Marshal(m.(proto.Message))
	if err != nil {
		return err
	}
	switch m.(type) {
	case *discovery.DiscoveryResponse:
		r := &discovery.DiscoveryResponse{}
		if err = proto.Unmarshal(data, r); err == nil {
			err = o.full(r)
		}
	case *discovery.DeltaDiscoveryResponse:
		r := &discovery.DeltaDiscoveryResponse{}
		if err = proto.Unmarshal(data, r); err == nil {
			o.incremental(r)
		}
	}
	if err != nil {
		return err
	}
	return o.ServerStream.SendMsg(m)
}

// full notes a response: of clusters and listeners it is complete.
func (o *observedStream) full(r *discovery.DiscoveryResponse) error {
	o.sent.mu.Lock()
	defer o.sent.mu.Unlock()
	have := o.has(r.GetTypeUrl())
	if r.GetTypeUrl() == envoy.ClusterType || r.GetTypeUrl() == envoy.ListenerType {
		clear(have)
	}
	for _, packed := range r.GetResources() {
		m, err := packed.UnmarshalNew()
		if err != nil {
			return err
		}
		have[nameOf(m)] = packed
	}
	return nil
}

func (o *observedStream) incremental(r *discovery.DeltaDiscoveryResponse) {
	o.sent.mu.Lock()
	defer o.sent.mu.Unlock()
	have := o.has(r.GetTypeUrl())
	for _, n := range r.GetRemovedResources() {
		delete(have, n)
	}
	for _, res := range r.GetResources() {
		have[res.GetName()] = res.GetResource()
	}
}

// has returns the resources of a type, with the lock held.
func (o *observedStream) has(typeURL string) map[string]*anypb.Any {
	types := o.sent.resources[o.node]
	if types == nil {
		types = make(map[string]map[string]*anypb.Any)
		o.sent.resources[o.node] = types
	}
	if types[typeURL] == nil {
		types[typeURL] = make(map[string]*anypb.Any)
	}
	return types[typeURL]
}

func nameOf(m proto.Message) string {
	if named, ok := m.(interface{ GetName() string }); ok {
		return named.GetName()
	}
	return m.(interface{ GetClusterName() string }).GetClusterName()
}
