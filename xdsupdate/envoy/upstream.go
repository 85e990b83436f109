// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"strconv"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
)

// Upstream is a port of a service, or a subset of it, as one kind of proxies calls
// it under a traffic policy: what a cluster and its load assignment are built of.
// Service and Port must be set. Everything is only read, and what Upstream points
// to must not change while a method runs.
type Upstream struct {
	Service *registry.Service
	Port    *registry.Port
	// Subset names a subset, whose endpoints have the Labels. Empty: the service
	// itself.
	Subset string
	Labels registry.Labels
	// Policy is the result of TrafficPolicy; nil: none.
	Policy *networking.TrafficPolicy
	// SelectedByLabels: the policy is of a rule with a workload selector. Only these
	// may name credentials (tls.credentialName) for proxies that are not gateways.
	SelectedByLabels bool
	// Certificate is the credentialName of what the proxy shows to servers that ask, by a
	// policy of mode SIMPLE; empty: nothing.
	Certificate string
	// Mesh is the mesh's configuration; nil: Istio's defaults.
	Mesh *meshconfig.MeshConfig
	// Networks are the gateways of other networks; nil: every endpoint is reached
	// directly.
	Networks *Networks
	// Endpoints are those of the service, of all its ports and subsets.
	Endpoints []*registry.Endpoint
	// Identities are those of the endpoints of the service (SPIFFE IDs).
	Identities []string
	// MutualTLS: some of the Endpoints have TLS mode "istio", or had
	// (xdsupdate.ServiceEndpoints.MutualTLS). Where a policy does not say anything of
	// TLS, Envoys choose the socket by the endpoint then, so that these get mutual TLS;
	// the cluster names the secrets of the mesh for it. Without such an endpoint it
	// names none. False: by the Endpoints alone.
	MutualTLS bool
	// Plaintext reports whether a workload takes no mutual TLS, whatever the TLS mode of its endpoint
	// says: a PeerAuthentication of the workload says so. Nil: none.
	Plaintext func(*registry.Endpoint) bool
	Client    Client
	// OutliersForGRPC lets gRPC clients have outlier detection, too.
	OutliersForGRPC bool
	// Gateway: the proxy is an Envoy that serves as a gateway. It cannot send
	// requests to where a client wanted to go, and may use credentials.
	Gateway bool
	// AutoPassthrough: the cluster is for connections that a gateway passes on
	// without ending their TLS, found by their SNI: it has no TLS of its own, and
	// only endpoints that take mutual TLS.
	AutoPassthrough bool
	// Proxy is what in a proxy makes a difference: addresses, labels (those of its
	// topology included), locality, network. Nil: unknown, then endpoints have no
	// preference by locality.
	Proxy *registry.Proxy
}

// name returns the name of the cluster and of its load assignment:
// "outbound|PORT|SUBSET|HOST", or the server name for AutoPassthrough.
func (u *Upstream) name() string {
	if u.AutoPassthrough {
		return u.sni()
	}
	return SubsetClusterName(u.Port.Number, u.Subset, u.Service.Hostname)
}

// sni returns the server name by which gateways of other networks find the cluster:
// "outbound_.PORT_.SUBSET_.HOST".
func (u *Upstream) sni() string { return SNIName(u.Port.Number, u.Subset, u.Service.Hostname) }

// Cluster returns the cluster, or nil if there is none: for hosts and ports that
// cannot be named, for DNS services without a usable endpoint, and where the table
// of the package comment says so. A policy changes that table: simple load
// balancing PASSTHROUGH makes an Envoy's cluster ORIGINAL_DST; a gateway's cluster
// of a Passthrough service is EDS. A gRPC client takes of a policy the
// load balancing, http2MaxRequests, and TLS of mode ISTIO_MUTUAL; with
// OutliersForGRPC also outlier detection, as far as it knows one.
//
// Metadata is that of the function Cluster.
func (u *Upstream) Cluster() *clusterv3.Cluster {
	if !usable(u.Service.Hostname, u.Port) || !usableSubset(u.Subset) {
		return nil
	}
	c := u.base()
	if c == nil {
		return nil
	}
	if u.Client == ForGRPC {
		u.setForGRPC(c)
		return c
	}
	u.setPool(c)
	u.setBalancer(c)
	u.setOutliers(c)
	u.setSockets(c)
	return c
}

// EDS reports whether there is a cluster whose endpoints come by EDS. Endpoints,
// Identities and MutualTLS do not matter.
func (u *Upstream) EDS() bool {
	return u.resolution() == registry.ClientSideLB && usable(u.Service.Hostname, u.Port) && usableSubset(u.Subset)
}

// setForGRPC sets what gRPC clients take of a policy.
func (u *Upstream) setForGRPC(c *clusterv3.Cluster) {
	c.ConnectTimeout, c.CommonLbConfig = nil, nil
	u.setBalancerForGRPC(c)
	if limit := u.Policy.GetConnectionPool().GetHttp().GetHttp2MaxRequests(); limit > 0 {
		c.CircuitBreakers = &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
			MaxRequests: unsigned(limit),
		}}}
	}
	if u.OutliersForGRPC {
		c.OutlierDetection = outliersForGRPC(u.Policy.GetOutlierDetection())
	}
	if u.Policy.GetTls().GetMode() == networking.ClientTLSSettings_ISTIO_MUTUAL {
		c.TransportSocket = u.socketForGRPC()
	}
}

// usableSubset reports whether a cluster can be named after the subset.
func usableSubset(subset string) bool { return !strings.ContainsFunc(subset, unnameable) }

// ParseSubsetClusterName is the inverse of SubsetClusterName.
func ParseSubsetClusterName(name string) (port uint32, subset string, host registry.Hostname, ok bool) {
	rest, ok := strings.CutPrefix(name, clusterPrefix)
	if !ok {
		return 0, "", "", false
	}
	return parseParts(rest, "|")
}

// SNIName returns "outbound_.PORT_.SUBSET_.HOST": the name of the same cluster in a
// form that fits into a TLS server name.
func SNIName(port uint32, subset string, host registry.Hostname) string {
	return sniPrefix + strconv.FormatUint(uint64(port), 10) + sniSeparator + subset + sniSeparator + string(host)
}

// ParseSNIName is the inverse of SNIName.
func ParseSNIName(name string) (port uint32, subset string, host registry.Hostname, ok bool) {
	rest, ok := strings.CutPrefix(name, sniPrefix)
	if !ok {
		return 0, "", "", false
	}
	return parseParts(rest, sniSeparator)
}

const (
	sniPrefix    = "outbound_."
	sniSeparator = "_."
)

func parseParts(rest, separator string) (port uint32, subset string, host registry.Hostname, ok bool) {
	number, rest, ok := strings.Cut(rest, separator)
	if !ok {
		return 0, "", "", false
	}
	subset, name, ok := strings.Cut(rest, separator)
	if !ok || name == "" {
		return 0, "", "", false
	}
	port, ok = parsePort(number)
	return port, subset, registry.Hostname(name), ok
}
