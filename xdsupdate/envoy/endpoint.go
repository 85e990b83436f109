// SPDX-License-Identifier: Apache-2.0

package envoy

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

// Serves reports whether the endpoint serves a port of its service: by the
// port's number if the endpoint has one, else by the port's name.
func Serves(e *registry.Endpoint, port *registry.Port) bool {
	if e.ServicePort != 0 {
		return e.ServicePort == port.Number
	}
	return e.ServicePortName == port.Name
}

// IsUnix reports whether the endpoint is a unix socket: its address is an
// absolute path or an abstract name.
func IsUnix(e *registry.Endpoint) bool {
	a := e.Address()
	return strings.HasPrefix(a, "/") || strings.HasPrefix(a, "@")
}

// sent reports whether clients are sent the endpoint at all. One that is
// unhealthy is left out unless SendUnhealthyEndpoints is set, as in Istio 1.30,
// whose endpoint index does not push for it either.
func sent(e *registry.Endpoint) bool {
	return e.HealthStatus != registry.UnHealthy || e.Attributes().SendUnhealthyEndpoints
}

// maxUnixPath is the length of the longest path that fits into the address of a
// unix socket on Linux. Envoy refuses a whole assignment with a longer one.
const maxUnixPath = 107

// CheckEndpoint returns why no client is sent an endpoint, whatever its service:
// what is wrong with the path of its unix socket. It returns nil for others; of
// these, too, an endpoint may be left out, such as one with a host name from a
// load assignment.
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

// lbEndpoint returns one endpoint with a TLS mode, or nil if no client could connect
// to its addresses: neither IP addresses with a port, nor a unix socket that passes
// CheckEndpoint. With names, as in the clusters of DNS services, host names count
// too, and unix sockets do not: Envoy refuses them there.
//
// Its metadata is Istio's: "istio" names the workload, and
// "envoy.transport_socket_match" says by "tlsMode" whether the workload takes
// mTLS, for Envoys whose clusters choose their TLS context by it.
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
	// Unset means 1, and gRPC clients refuse an assignment with an explicit 0.
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

// addresses returns the addresses of an endpoint, those of one family first as
// declared. A unix socket is alone.
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
				break // Envoy resolves the first address of a DNS cluster's endpoint only.
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

// ip reports whether clients take the text as an IP address. Zones mean nothing
// on another machine.
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
	// socketMatch is the metadata by which an Envoy chooses a transport socket.
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

// sentTLSMode returns the TLS mode that clients are told of, "" for none.
func sentTLSMode(mode string) string {
	if mode == "disabled" || !utf8.ValidString(mode) {
		return ""
	}
	return mode
}

// workload returns "name;namespace;canonical name;canonical revision;cluster",
// the form that Istio 1.30's telemetry reads, or "" for an unnamed workload.
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
