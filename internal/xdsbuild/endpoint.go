// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"fmt"
	"net/netip"
	"strings"
	"unicode/utf8"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/registry"
)

// Serves reports whether the endpoint serves a port of its service. They are compared by the port's
// number if the endpoint has one, by the port's name otherwise.
func Serves(e *registry.Endpoint, port *registry.Port) bool {
	if e.ServicePort != 0 {
		return e.ServicePort == port.Number
	}
	return e.ServicePortName == port.Name
}

// IsUnix reports whether the endpoint is a unix socket: its address is an absolute path or an
// abstract name.
func IsUnix(e *registry.Endpoint) bool {
	a := e.Address()
	return strings.HasPrefix(a, "/") || strings.HasPrefix(a, "@")
}

// sent reports whether the endpoint is sent to clients at all. An unhealthy endpoint is omitted
// unless SendUnhealthyEndpoints is set. Istio 1.30 does the same, and its endpoint index does not
// push for such an endpoint either.
func sent(e *registry.Endpoint) bool {
	return e.HealthStatus != registry.UnHealthy || e.Attributes().SendUnhealthyEndpoints
}

// maxUnixPath is the maximum length of a unix socket's path on Linux. Envoy rejects a whole
// assignment with a longer one.
const maxUnixPath = 107

// CheckEndpoint returns the reason why an endpoint is never sent to any client: an invalid path of
// its unix socket. It returns nil for all other endpoints. A load assignment may omit some of
// these, too, such as an endpoint with a host name.
func CheckEndpoint(e *registry.Endpoint) error {
	path := e.Address()
	switch {
	case !IsUnix(e):
		return nil
	case len(path) > maxUnixPath:
		return fmt.Errorf("unix socket %.32q… is %d bytes long, at most %d are possible", path, len(path), maxUnixPath)
	case !utf8.ValidString(path) || strings.ContainsRune(path, 0):
		return fmt.Errorf("unix socket %q: not UTF-8, or with a NUL", path)
	default:
		return nil
	}
}

// lbEndpoint returns one endpoint with a TLS mode, or nil if clients could not connect to its
// addresses: it has neither IP addresses with a port, nor a unix socket that passes CheckEndpoint.
// If names is set, as in the clusters of DNS services, host names are valid addresses and unix
// sockets are not, because Envoy rejects them there.
//
// Its metadata is Istio's: "istio" names the workload. The field "tlsMode" of
// "envoy.transport_socket_match" tells Envoys whether the workload accepts mTLS; their clusters
// select the TLS context by it.
func lbEndpoint(e *registry.Endpoint, names bool, tlsMode string) *endpointv3.LbEndpoint {
	addresses := addresses(e, names)
	if len(addresses) == 0 {
		return nil
	}
	ep := &endpointv3.Endpoint{Address: addresses[0]}
	for _, a := range addresses[1:] {
		ep.AdditionalAddresses = append(ep.AdditionalAddresses, &endpointv3.Endpoint_AdditionalAddress{Address: a})
	}
	lb := &endpointv3.LbEndpoint{
		HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: ep},
		HealthStatus:   health(e.HealthStatus),
		Metadata:       endpointMetadata(e, tlsMode),
	}
	// An unset weight means 1, and gRPC clients reject an assignment with an explicit 0.
	if w := e.Attributes().LbWeight; w != 0 {
		lb.LoadBalancingWeight = wrapperspb.UInt32(w)
	}
	return lb
}

func health(h registry.HealthStatus) core.HealthStatus {
	switch h {
	case registry.Healthy:
		return core.HealthStatus_HEALTHY
	case registry.UnHealthy:
		return core.HealthStatus_UNHEALTHY
	case registry.Draining, registry.Terminating:
		return core.HealthStatus_DRAINING
	default:
		return core.HealthStatus_UNKNOWN
	}
}

// addresses returns the addresses of an endpoint in their declared order. A unix socket is the only
// address.
func addresses(e *registry.Endpoint, names bool) []*core.Address {
	if IsUnix(e) {
		if names || CheckEndpoint(e) != nil {
			return nil
		}
		return []*core.Address{{Address: &core.Address_Pipe{Pipe: &core.Pipe{Path: e.Address()}}}}
	}
	if e.EndpointPort == 0 || e.EndpointPort > maxPort {
		return nil
	}
	var out []*core.Address
	for _, a := range e.Addresses {
		if ip(a) || names && hostName(a) {
			out = append(out, socketAddress(a, e.EndpointPort))
			if names {
				break // Envoy resolves only the first address of an endpoint in a DNS cluster
			}
		}
	}
	return out
}

func socketAddress(address string, port uint32) *core.Address {
	return &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
		Address:       address,
		PortSpecifier: &core.SocketAddress_PortValue{PortValue: port},
	}}}
}

// ip reports whether clients accept the text as an IP address. Zones are invalid, because they mean
// nothing on another machine.
func ip(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Zone() == ""
}

func hostName(s string) bool {
	if s == "" || !utf8.ValidString(s) {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune("/:*|@", r) })
}

const (
	// socketMatch is the metadata key for the selection of a transport socket by an Envoy.
	socketMatch = "envoy.transport_socket_match"
	tlsModeKey  = "tlsMode"
	// istioFilter is the metadata that names the workload.
	istioFilter = "istio"
	workloadKey = "workload"
)

func endpointMetadata(e *registry.Endpoint, tlsMode string) *core.Metadata {
	filters := make(map[string]*structpb.Struct, 2)
	if mode := sentTLSMode(tlsMode); mode != "" {
		filters[socketMatch] = stringStruct(tlsModeKey, mode)
	}
	if w := workload(e); w != "" {
		filters[istioFilter] = stringStruct(workloadKey, w)
	}
	if len(filters) == 0 {
		return nil
	}
	return &core.Metadata{FilterMetadata: filters}
}

// sentTLSMode returns the TLS mode that is sent to clients: "istio", which selects mutual TLS, or "".
func sentTLSMode(mode string) string {
	if mode != tlsModeIstio {
		return ""
	}
	return mode
}

// workload returns "name;namespace;canonical name;canonical revision;cluster", the form that the
// telemetry of Istio 1.30 reads, or "" for a workload without a name.
func workload(e *registry.Endpoint) string {
	if e.WorkloadName == "" {
		return ""
	}
	a := e.Attributes()
	w := strings.Join([]string{
		e.WorkloadName, a.Namespace,
		a.Labels["service.istio.io/canonical-name"], a.Labels["service.istio.io/canonical-revision"],
		string(a.ClusterID),
	}, ";")
	return strings.ToValidUTF8(w, "")
}

func stringStruct(key, value string) *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{key: structpb.NewStringValue(value)}}
}
