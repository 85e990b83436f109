// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"context"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	xdscache "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// sotwResponse is an answer that go-control-plane may send or drop.
type sotwResponse struct {
	request   *discovery.DiscoveryRequest
	version   string
	resources []*resource
	changed   []*resource // those of them that are new to the client
	// taken is set when it is about to be sent; only the stream's goroutine
	// touches it.
	taken bool
}

var _ xdscache.Response = (*sotwResponse)(nil)

// GetDiscoveryResponse is called once, right before sending: go-control-plane
// sets the nonce in the result.
func (r *sotwResponse) GetDiscoveryResponse() (*discovery.DiscoveryResponse, error) {
	r.taken = true
	out := &discovery.DiscoveryResponse{
		VersionInfo: r.version,
		TypeUrl:     r.request.GetTypeUrl(),
		Resources:   make([]*anypb.Any, len(r.resources)),
	}
	for i, res := range r.resources {
		out.Resources[i] = res.any
	}
	return out, nil
}

// GetRequest returns the request that opened the watch.
func (r *sotwResponse) GetRequest() *discovery.DiscoveryRequest { return r.request }

// GetVersion returns the version.
func (r *sotwResponse) GetVersion() (string, error) { return r.version, nil }

// GetResponseVersion returns the version.
func (r *sotwResponse) GetResponseVersion() string { return r.version }

// GetContext returns nil: nobody reads it.
func (r *sotwResponse) GetContext() context.Context { return nil }

// GetReturnedResources is nil: subscriptions are tracked here, without work for
// each name.
func (r *sotwResponse) GetReturnedResources() map[string]string { return nil }

// deltaResponse is an answer that go-control-plane sends.
type deltaResponse struct {
	request   *discovery.DeltaDiscoveryRequest
	version   string
	resources []*resource
	removed   []string
}

var _ xdscache.DeltaResponse = (*deltaResponse)(nil)

// GetDeltaDiscoveryResponse is called once, right before sending.
func (r *deltaResponse) GetDeltaDiscoveryResponse() (*discovery.DeltaDiscoveryResponse, error) {
	out := &discovery.DeltaDiscoveryResponse{
		SystemVersionInfo: r.version,
		TypeUrl:           r.request.GetTypeUrl(),
		Resources:         make([]*discovery.Resource, len(r.resources)),
		RemovedResources:  r.removed,
	}
	for i, res := range r.resources {
		out.Resources[i] = res.delta
	}
	return out, nil
}

// GetDeltaRequest returns the request that opened the watch.
func (r *deltaResponse) GetDeltaRequest() *discovery.DeltaDiscoveryRequest { return r.request }

// GetSystemVersion returns the version.
func (r *deltaResponse) GetSystemVersion() (string, error) { return r.version, nil }

// GetResponseVersion returns the version.
func (r *deltaResponse) GetResponseVersion() string { return r.version }

// GetContext returns nil: nobody reads it.
func (r *deltaResponse) GetContext() context.Context { return nil }

// GetNextVersionMap is a new map, because go-control-plane notes in it what is
// unsubscribed.
func (r *deltaResponse) GetNextVersionMap() map[string]string { return make(map[string]string) }

// GetReturnedResources is GetNextVersionMap.
func (r *deltaResponse) GetReturnedResources() map[string]string { return make(map[string]string) }
