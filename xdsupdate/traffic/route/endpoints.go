// SPDX-License-Identifier: Apache-2.0

package route

import (
	"net"
	"strconv"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	upstreams "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/proto"
)

// Endpoints are the endpoints of a cluster in one state, and how the proxy connects to them. They
// are immutable.
type Endpoints struct {
	Cluster string
	// List has the endpoints as the proxy receives them: the unhealthy ones, too, if it is sent
	// them, and priorities and weights for the locality of the proxy. It is empty for clusters with
	// OriginalDestination.
	List []Endpoint
	// OriginalDestination: connections go to the address that the client has dialed.
	OriginalDestination bool
	// Resolve: addresses may be host names, which the proxy resolves.
	Resolve bool
	// Policy is the load balancing policy, as Envoy names it, such as "ROUND_ROBIN".
	Policy         string
	ConnectTimeout time.Duration
	// HTTP2: the endpoints are sent HTTP/2.
	HTTP2 bool
}

// Endpoint is an endpoint of a cluster.
type Endpoint struct {
	// Address is "ip:port", "host:port" with Endpoints.Resolve, or the path of a Unix domain
	// socket.
	Address string
	// Healthy endpoints get new requests. Draining ones get none, but keep their sessions.
	Healthy, Draining bool
	// Locality is "region/zone/subzone".
	Locality string
	// Priority 0 is preferred to 1, and so on. Weight is at least 1. LocalityWeight is the share of
	// the whole locality, or 0 if only the weights of endpoints count.
	Priority, Weight, LocalityWeight uint32
	// TLS is how to connect. Nil means plain text. It may be another value in the next state although
	// it is equal.
	TLS *TLS
}

// NewEndpoints returns the endpoints of a cluster and its load assignment, which is nil if the cluster
// contains its endpoints. The result is nil without a cluster.
func NewEndpoints(name string, cluster, assignment proto.Message) *Endpoints {
	c, _ := cluster.(*clusterv3.Cluster)
	if c == nil {
		return nil
	}
	from, _ := assignment.(*endpointv3.ClusterLoadAssignment)
	if from == nil {
		from = c.GetLoadAssignment()
	}
	options := &upstreams.HttpProtocolOptions{}
	_ = c.GetTypedExtensionProtocolOptions()[protocolOptions].UnmarshalTo(options) // it has none otherwise
	out := &Endpoints{
		Cluster: name, Policy: c.GetLbPolicy().String(), ConnectTimeout: c.GetConnectTimeout().AsDuration(),
		OriginalDestination: c.GetType() == clusterv3.Cluster_ORIGINAL_DST,
		Resolve:             c.GetType() == clusterv3.Cluster_STRICT_DNS || c.GetType() == clusterv3.Cluster_LOGICAL_DNS,
		HTTP2:               options.GetExplicitHttpConfig().GetHttp2ProtocolOptions() != nil,
	}
	sockets := newSockets(c, options)
	for _, l := range from.GetEndpoints() {
		for _, e := range l.GetLbEndpoints() {
			health := e.GetHealthStatus()
			out.List = append(out.List, Endpoint{
				Address:  addressText(e.GetEndpoint().GetAddress()),
				Healthy:  health == core.HealthStatus_HEALTHY || health == core.HealthStatus_UNKNOWN,
				Draining: health == core.HealthStatus_DRAINING,
				Locality: localityText(l.GetLocality()), Priority: l.GetPriority(),
				Weight: max(1, e.GetLoadBalancingWeight().GetValue()), LocalityWeight: l.GetLoadBalancingWeight().GetValue(),
				TLS: sockets.of(e),
			})
		}
	}
	return out
}

func addressText(a *core.Address) string {
	if pipe := a.GetPipe(); pipe != nil {
		return pipe.GetPath()
	}
	s := a.GetSocketAddress()
	return net.JoinHostPort(s.GetAddress(), strconv.FormatUint(uint64(s.GetPortValue()), 10))
}

func localityText(l *core.Locality) string {
	return strings.TrimRight(l.GetRegion()+"/"+l.GetZone()+"/"+l.GetSubZone(), "/")
}

// sockets are the transport sockets of a cluster: of endpoints with the TLS mode of the mesh, and of
// others.
type sockets struct{ mesh, others *TLS }

func newSockets(c *clusterv3.Cluster, options *upstreams.HttpProtocolOptions) sockets {
	if s := c.GetTransportSocket(); s != nil {
		t := newTLS(s, options)
		return sockets{t, t}
	}
	var out sockets
	for _, m := range c.GetTransportSocketMatches() {
		if len(m.GetMatch().GetFields()) > 0 {
			out.mesh = newTLS(m.GetTransportSocket(), options)
		} else {
			out.others = newTLS(m.GetTransportSocket(), options)
		}
	}
	return out
}

// The metadata of endpoints that selects their transport socket.
const (
	socketMatch = "envoy.transport_socket_match"
	tlsMode     = "tlsMode"
	meshMode    = "istio"
)

func (s sockets) of(e *endpointv3.LbEndpoint) *TLS {
	if e.GetMetadata().GetFilterMetadata()[socketMatch].GetFields()[tlsMode].GetStringValue() == meshMode {
		return s.mesh
	}
	return s.others
}

const protocolOptions = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// Choose returns a healthy endpoint of the best priority that has one, by weight and a random
// number, or nil if there is none. It is a simple balancer: it ignores the weights of localities,
// hashes and outstanding requests. The receiver may be nil.
func (e *Endpoints) Choose(random uint64) *Endpoint {
	if e == nil {
		return nil
	}
	best, total := uint32(0), uint64(0)
	for i := range e.List {
		switch one := &e.List[i]; {
		case !one.Healthy || total > 0 && one.Priority > best:
		case total == 0 || one.Priority < best:
			best, total = one.Priority, uint64(one.Weight)
		default:
			total += uint64(one.Weight)
		}
	}
	if total == 0 {
		return nil
	}
	at := random % total
	for i := range e.List {
		if one := &e.List[i]; one.Healthy && one.Priority == best {
			if at < uint64(one.Weight) {
				return one
			}
			at -= uint64(one.Weight)
		}
	}
	return nil
}
