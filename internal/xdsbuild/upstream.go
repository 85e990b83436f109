// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// Upstream is a port of a service, or a subset of it, as one kind of proxies calls it under a
// traffic policy. It is the input for a cluster and its load assignment. Service and Port must be
// set. The methods only read it, and its data must not change while a method runs.
type Upstream struct {
	Service *registry.Service
	Port    *registry.Port
	// Subset is the name of a subset. Its endpoints have the Labels. Empty means the service
	// itself.
	Subset string
	Labels registry.Labels
	// Policy is the result of TrafficPolicy; nil means no policy.
	Policy *networking.TrafficPolicy
	// SelectedByLabels is set if the policy belongs to a rule with a workload selector. Only such a
	// rule may use private credentials (tls.credentialName) for proxies that are not gateways.
	SelectedByLabels bool
	// Certificate is the credentialName of the client certificate that the proxy presents if a
	// server requests one, under a policy of mode SIMPLE. Empty means no certificate.
	Certificate string
	// Mesh is the mesh's configuration; nil means Istio's defaults.
	Mesh *meshconfig.MeshConfig
	// Networks are the gateways of other networks; nil means that every endpoint is reached
	// directly.
	Networks *Networks
	// Endpoints are the endpoints of the service, of all its ports and subsets.
	Endpoints []*registry.Endpoint
	// Identities are the identities (SPIFFE IDs) of the endpoints of the service.
	Identities []string
	// MutualTLS is set if some of the Endpoints have, or had, TLS mode "istio"
	// (xdsupdate.ServiceEndpoints.MutualTLS). If a policy does not set TLS, Envoys then select the
	// transport socket by the endpoint, so that these endpoints get mutual TLS, and the cluster
	// references the secrets of the mesh. Without such an endpoint it does not reference them. If
	// false, only Endpoints decide.
	MutualTLS bool
	// Plaintext reports whether a PeerAuthentication disables mutual TLS for a workload, regardless
	// of the TLS mode of its endpoint. Nil means for none.
	Plaintext func(*registry.Endpoint) bool
	Client    envoy.Client
	// OutliersForGRPC enables outlier detection for gRPC clients, too.
	OutliersForGRPC bool
	// Gateway is set if the proxy is an Envoy that serves as a gateway. A gateway cannot send
	// requests to the client's original destination, and may use credentials.
	Gateway bool
	// AutoPassthrough is set if the cluster is for connections that a gateway forwards by their SNI
	// without terminating TLS. The cluster has no TLS of its own, and only endpoints that accept
	// mutual TLS.
	AutoPassthrough bool
	// EncodedMetadata is set if the cluster is only to be encoded. Its metadata is then encoded
	// already, as unknown fields of the message, which has no readable fields. The encoding of the
	// cluster is the same, at half the cost.
	EncodedMetadata bool
	// Proxy has the attributes of the proxy that affect the result: addresses, labels (including
	// topology labels), locality, network. Nil means that the proxy is unknown; then endpoints have
	// no preference by locality.
	Proxy *registry.Proxy
}

// name returns the name of the cluster and of its load assignment: "outbound|PORT|SUBSET|HOST", or
// the server name for AutoPassthrough.
func (u *Upstream) name() string {
	if u.AutoPassthrough {
		return u.sni()
	}
	return envoy.SubsetClusterName(u.Port.Number, u.Subset, u.Service.Hostname)
}

// sni returns the server name that gateways of other networks map to the cluster:
// "outbound_.PORT_.SUBSET_.HOST".
func (u *Upstream) sni() string { return envoy.SNIName(u.Port.Number, u.Subset, u.Service.Hostname) }

// Cluster returns the cluster. It is nil for hosts and ports that cannot be part of a resource
// name, for DNS services without a usable endpoint, and if the table in the package comment has no
// cluster. A policy changes that table: simple load balancing PASSTHROUGH makes an Envoy's cluster
// ORIGINAL_DST; a gateway's cluster of a Passthrough service is EDS. Clusters for gRPC clients have
// only these parts of a policy: load balancing, http2MaxRequests, and TLS of mode ISTIO_MUTUAL;
// with OutliersForGRPC also outlier detection, as far as gRPC supports it.
//
// The metadata is that of the function Cluster.
func (u *Upstream) Cluster() *clusterv3.Cluster {
	if !usable(u.Service.Hostname, u.Port) || !usableSubset(u.Subset) {
		return nil
	}
	c := u.base()
	if c == nil {
		return nil
	}
	if u.Client == envoy.ForGRPC {
		u.setForGRPC(c)
		return c
	}
	u.setPool(c)
	u.setBalancer(c)
	u.setOutliers(c)
	u.setSockets(c)
	return c
}

// EDS reports whether there is a cluster whose endpoints come by EDS. It ignores Endpoints,
// Identities and MutualTLS.
func (u *Upstream) EDS() bool {
	return u.resolution() == registry.ClientSideLB && usable(u.Service.Hostname, u.Port) && usableSubset(u.Subset)
}

// setForGRPC sets the parts of a policy that gRPC clients support.
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

// usableSubset reports whether the subset can be part of a cluster's name.
func usableSubset(subset string) bool { return !strings.ContainsFunc(subset, unnameable) }
