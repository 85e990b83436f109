// SPDX-License-Identifier: Apache-2.0

package services

import (
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// port makes the resources of one port of one service. It is immutable, except for the resources
// that it has made.
type port struct {
	service   *registry.Service
	port      *registry.Port
	endpoints *xdsupdate.ServiceEndpoints // of all ports
	cluster   string                      // the name of its cluster

	// restricted means that the visible endpoints depend on the cluster of a client, unix that they
	// depend on its kind.
	restricted bool
	unix       bool
	leftOut    []*registry.Endpoint // endpoints that Envoy would reject, mostly none

	mu       sync.Mutex
	made     made
	prepared *xdsbuild.Prepared // endpoints that serve the port; nil before the first use
	before   *xdsbuild.Prepared // an earlier prepared state, until prepared is set
}

// varieties are resources of a port, mostly one or two: an immutable map takes a fifth of the
// memory of a built-in map for them, and states can share it.
type varieties = pmap.Map[variety, *resource.State]

// made has the resources that were made.
type made struct {
	ofEndpoints varieties
	// others are the resources that do not depend on endpoints.
	others varieties
}

// variety identifies a resource of a port. Views that get the same resource have the same variety.
type variety struct {
	typeURL string
	name    string
	cluster registry.ClusterID
	client  envoy.Client
}

func newPort(svc *registry.Service, p *registry.Port, endpoints *xdsupdate.ServiceEndpoints) *port {
	out := &port{service: svc, port: p, endpoints: endpoints, cluster: envoy.ClusterName(p.Number, svc.Hostname)}
	for e := range endpoints.All() {
		if xdsbuild.Serves(e, p) {
			out.restricted = out.restricted || e.Attributes().DiscoverableFromSameCluster
			if xdsbuild.IsUnix(e) {
				out.unix = true
				if xdsbuild.CheckEndpoint(e) != nil {
					out.leftOut = append(out.leftOut, e)
				}
			}
		}
	}
	return out
}

// withEndpoints returns the port with other endpoints of the service. Resources that do not depend
// on them are kept.
func (p *port) withEndpoints(endpoints *xdsupdate.ServiceEndpoints) *port {
	out := newPort(p.service, p.port, endpoints)
	p.mu.Lock()
	defer p.mu.Unlock()
	if out.before = p.prepared; out.before == nil {
		out.before = p.before
	}
	if sameIdentities(p.endpoints, endpoints) {
		out.made.others = p.made.others
	}
	return out
}

// sameIdentities reports whether clusters with these endpoints expect the same identities.
func sameIdentities(a, b *xdsupdate.ServiceEndpoints) bool {
	return slices.Equal(a.ServiceAccounts(), b.ServiceAccounts())
}

// of returns the resources of a port that belong to a type.
func (m *made) of(typeURL string, p *port) *varieties {
	if typeURL == envoy.LoadAssignmentType || typeURL == envoy.ClusterType && p.service.Resolution.IsDNS() {
		return &m.ofEndpoints
	}
	return &m.others
}

// resource returns the port's resource of a type and name for a view, or nil.
func (p *port) resource(typeURL, name string, v View) *resource.State {
	key := variety{typeURL: typeURL, name: name}
	resolution := p.service.Resolution
	switch typeURL {
	case envoy.ClusterType:
		if resolution != registry.ClientSideLB {
			key.client = v.Client
		}
		if p.restricted && resolution.IsDNS() {
			key.cluster = v.Cluster
		}
	case envoy.LoadAssignmentType:
		if !xdsbuild.ByAssignment(p.service, v.Client) {
			return nil
		}
		if p.restricted {
			key.cluster = v.Cluster
		}
		if p.unix {
			key.client = v.Client
		}
	default:
		// With other resolutions there is no cluster that a gRPC client accepts.
		if !xdsbuild.ByAssignment(p.service, v.Client) && !resolution.IsDNS() {
			return nil
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	made := p.made.of(typeURL, p)
	r, ok := made.Get(key)
	if !ok {
		r = &resource.State{TypeURL: typeURL, Name: name}
		if typeURL == envoy.LoadAssignmentType {
			r.Bytes = func() []byte { return p.assignment(key) }
		} else {
			r.Build = func() (proto.Message, error) { return p.build(key) }
		}
		*made = made.Set(key, r)
	}
	return r
}

func (p *port) build(key variety) (proto.Message, error) {
	var m proto.Message
	switch key.typeURL {
	case envoy.ClusterType:
		u := xdsbuild.Upstream{
			Service: p.service, Port: p.port, Identities: p.endpoints.ServiceAccounts(), Client: key.client,
			EncodedMetadata: true,
		}
		if p.service.Resolution.IsDNS() { // otherwise the cluster does not contain them
			u.Endpoints = p.visible(key.cluster)
		}
		m = u.PlainCluster()
	case envoy.ListenerType:
		m = xdsbuild.APIListener(key.name, p.service, p.port)
	case envoy.RouteType:
		m = xdsbuild.GRPCRoutes(p.service, p.port)
	}
	if m == nil || !m.ProtoReflect().IsValid() {
		return nil, nil
	}
	return m, nil
}

// assignment builds the load assignment from endpoints that are encoded once for all states of the
// port.
func (p *port) assignment(key variety) []byte {
	prepared := p.prepare()
	var visible func(*registry.Endpoint) bool
	if p.restricted {
		visible = func(e *registry.Endpoint) bool { return e.VisibleTo(key.cluster) }
	}
	return prepared.Encode(p.service.Hostname, visible, key.client)
}

func (p *port) prepare() *xdsbuild.Prepared {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.prepared == nil {
		p.prepared, p.before = xdsbuild.Prepare(p.port, slices.Collect(p.endpoints.All()), p.before), nil
	}
	return p.prepared
}

func (p *port) visible(cluster registry.ClusterID) []*registry.Endpoint {
	out := slices.Collect(p.endpoints.All())
	if p.restricted {
		out = slices.DeleteFunc(out, func(e *registry.Endpoint) bool { return !e.VisibleTo(cluster) })
	}
	return out
}
