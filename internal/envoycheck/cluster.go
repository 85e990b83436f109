// SPDX-License-Identifier: Apache-2.0

package envoycheck

import (
	"math/big"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	proxyprotocol "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/proxy_protocol/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	http "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"

	"github.com/pilotkit/pilotkit/internal/fingerprint"
)

const (
	maxRing   = 8 << 20
	maxMaglev = 5000011
	maxSNI    = 255

	optionsKey = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
	tlsName    = "envoy.transport_sockets.tls"
	dnsName    = "envoy.clusters.dns"
)

func (r *report) cluster(c *clusterv3.Cluster) {
	if c.GetName() == "" {
		r.fail("no name")
	}
	r.discovery(c)
	r.balancing(c)
	r.protocol(c)
	if r.grpc {
		r.forGRPC(c)
	}
	for _, s := range socketsOf(c) {
		r.socket(s)
	}
	names := make(map[string]bool)
	for _, m := range c.GetTransportSocketMatches() {
		if names[m.GetName()] {
			r.fail("transport socket match %q twice", m.GetName())
		}
		names[m.GetName()] = true
	}
}

// discovery checks how the endpoints are discovered.
func (r *report) discovery(c *clusterv3.Cluster) {
	custom := c.GetClusterType() != nil
	if eds := c.GetEdsClusterConfig() != nil; eds != (!custom && c.GetType() == clusterv3.Cluster_EDS) {
		r.fail("type %v with eds_cluster_config %t", c.GetType(), eds)
	}
	provided := c.GetLbPolicy() == clusterv3.Cluster_CLUSTER_PROVIDED
	if provided != (custom && c.GetClusterType().GetName() != dnsName || c.GetType() == clusterv3.Cluster_ORIGINAL_DST) {
		r.fail("type %v with balancing %v", c.GetType(), c.GetLbPolicy())
	}
	if custom {
		r.custom(c)
		return
	}
	switch c.GetType() {
	case clusterv3.Cluster_STRICT_DNS, clusterv3.Cluster_LOGICAL_DNS:
		r.resolved(c, c.GetType() == clusterv3.Cluster_LOGICAL_DNS)
	case clusterv3.Cluster_EDS, clusterv3.Cluster_ORIGINAL_DST:
		if c.GetLoadAssignment() != nil {
			r.fail("type %v with a load assignment", c.GetType())
		}
	case clusterv3.Cluster_STATIC:
	default:
		r.fail("type %v", c.GetType())
	}
}

// custom checks the cluster types that are extensions.
func (r *report) custom(c *clusterv3.Cluster) {
	if c.GetClusterType().GetName() != dnsName {
		return
	}
	config, ok := unpackTo(c.GetClusterType().GetTypedConfig(), &dnsv3.DnsCluster{})
	if !ok {
		r.fail("cluster type %s with a configuration of type %s", dnsName, c.GetClusterType().GetTypedConfig().GetTypeUrl())
		return
	}
	r.resolved(c, config.GetAllAddressesInSingleEndpoint())
}

// resolved checks the endpoints of a DNS cluster; logical is set for LOGICAL_DNS.
func (r *report) resolved(c *clusterv3.Cluster, logical bool) {
	r.assignment(c.GetLoadAssignment(), true)
	n := 0
	for _, l := range c.GetLoadAssignment().GetEndpoints() {
		n += len(l.GetLbEndpoints())
	}
	if n == 0 {
		r.fail("DNS without endpoints")
	}
	if logical && (n != 1 || len(c.GetLoadAssignment().GetEndpoints()) != 1) {
		r.fail("LOGICAL_DNS with %d endpoints", n)
	}
}

// balancing checks that the load balancer's configuration belongs to the chosen policy.
func (r *report) balancing(c *clusterv3.Cluster) {
	want := clusterv3.Cluster_CLUSTER_PROVIDED
	switch config := c.GetLbConfig().(type) {
	case nil:
		return
	case *clusterv3.Cluster_RingHashLbConfig_:
		want = clusterv3.Cluster_RING_HASH
		if config.RingHashLbConfig.GetMinimumRingSize().GetValue() > maxRing {
			r.fail("a ring of %d", config.RingHashLbConfig.GetMinimumRingSize().GetValue())
		}
	case *clusterv3.Cluster_MaglevLbConfig_:
		want = clusterv3.Cluster_MAGLEV
		if n := config.MaglevLbConfig.GetTableSize().GetValue(); n > maxMaglev || !new(big.Int).SetUint64(n).ProbablyPrime(0) {
			r.fail("a maglev table of %d", n)
		}
	case *clusterv3.Cluster_RoundRobinLbConfig_:
		want = clusterv3.Cluster_ROUND_ROBIN
	case *clusterv3.Cluster_LeastRequestLbConfig_:
		want = clusterv3.Cluster_LEAST_REQUEST
	case *clusterv3.Cluster_OriginalDstLbConfig_:
	}
	if c.GetLbPolicy() != want {
		r.fail("%v with a configuration of %v", c.GetLbPolicy(), want)
	}
}

// protocol checks the HTTP options: they need one version, and auto_san_validation needs auto_sni.
func (r *report) protocol(c *clusterv3.Cluster) {
	packed := c.GetTypedExtensionProtocolOptions()[optionsKey]
	if packed == nil {
		return
	}
	options, ok := unpackTo(packed, &http.HttpProtocolOptions{})
	if !ok {
		r.fail("protocol options of type %s", packed.GetTypeUrl())
		return
	}
	if options.GetUpstreamProtocolOptions() == nil {
		r.fail("protocol options without a protocol")
	}
	auto := options.GetUpstreamHttpProtocolOptions()
	if auto.GetAutoSanValidation() && !auto.GetAutoSni() {
		r.fail("auto_san_validation without auto_sni")
	}
	if t := c.GetClusterType(); t != nil && t.GetName() != dnsName && (!auto.GetAutoSni() || !auto.GetAutoSanValidation()) {
		r.fail("a dynamic forward proxy that does not verify hosts")
	}
}

func (r *report) forGRPC(c *clusterv3.Cluster) {
	if t := c.GetType(); c.GetClusterType() != nil || t != clusterv3.Cluster_EDS && t != clusterv3.Cluster_LOGICAL_DNS {
		r.fail("type %v for gRPC", t)
	}
	switch c.GetLbPolicy() {
	case clusterv3.Cluster_ROUND_ROBIN, clusterv3.Cluster_LEAST_REQUEST, clusterv3.Cluster_RING_HASH:
	default:
		r.fail("balancing %v for gRPC", c.GetLbPolicy())
	}
	if source := c.GetEdsClusterConfig().GetEdsConfig(); c.GetType() == clusterv3.Cluster_EDS && source.GetAds() == nil && source.GetSelf() == nil {
		r.fail("EDS from elsewhere for gRPC")
	}
	if len(c.GetTransportSocketMatches()) > 0 {
		r.fail("transport socket matches for gRPC")
	}
	if s := c.GetTransportSocket(); s != nil {
		context, ok := unpackTo(s.GetTypedConfig(), &tlsv3.UpstreamTlsContext{})
		if !ok || s.GetName() != tlsName {
			r.fail("transport socket %s for gRPC", s.GetName())
			return
		}
		r.providers(context.GetCommonTlsContext())
	}
}

// providers checks that certificates come from the client's bootstrap, by the fields that old and
// new clients read.
func (r *report) providers(c *tlsv3.CommonTlsContext) {
	if len(c.GetTlsCertificateSdsSecretConfigs()) > 0 || c.GetValidationContextSdsSecretConfig() != nil ||
		c.GetCombinedValidationContext().GetValidationContextSdsSecretConfig() != nil {
		r.fail("secrets for gRPC")
	}
	validation := c.GetCombinedValidationContext().GetDefaultValidationContext()
	if validation == nil {
		validation = c.GetValidationContext()
	}
	if validation.GetCaCertificateProviderInstance() == nil {
		r.fail("no roots for gRPC")
	}
}

// socketsOf returns all transport sockets, including nested ones.
func socketsOf(c *clusterv3.Cluster) []*core.TransportSocket {
	var out []*core.TransportSocket
	add := func(s *core.TransportSocket) {
		for s != nil {
			out = append(out, s)
			outer, ok := unpackTo(s.GetTypedConfig(), &proxyprotocol.ProxyProtocolUpstreamTransport{})
			if !ok {
				return
			}
			s = outer.GetTransportSocket()
		}
	}
	add(c.GetTransportSocket())
	for _, m := range c.GetTransportSocketMatches() {
		add(m.GetTransportSocket())
	}
	return out
}

func (r *report) socket(s *core.TransportSocket) {
	if s.GetName() == "" || s.GetTypedConfig() == nil {
		r.fail("transport socket %q without a configuration", s.GetName())
	}
	context, ok := unpackTo(s.GetTypedConfig(), &tlsv3.UpstreamTlsContext{})
	if !ok {
		return
	}
	switch name := context.GetSni(); {
	case len(name) > maxSNI:
		r.fail("a server name of %d bytes", len(name))
	case strings.IndexByte(name, 0) >= 0:
		r.fail("SNI names containing NULL-byte are not allowed")
	}
	r.hashes(context.GetCommonTlsContext())
}

// hashes checks the hashes of accepted certificates.
func (r *report) hashes(c *tlsv3.CommonTlsContext) {
	for _, v := range []*tlsv3.CertificateValidationContext{
		c.GetValidationContext(), c.GetCombinedValidationContext().GetDefaultValidationContext(),
	} {
		for _, hash := range v.GetVerifyCertificateHash() {
			if !fingerprint.Is(hash) {
				r.fail("Invalid hex-encoded SHA-256 %.100q", hash)
			}
		}
		for _, key := range v.GetVerifyCertificateSpki() {
			if !fingerprint.IsSPKI(key) {
				r.fail("Invalid base64-encoded SHA-256 %.100q", key)
			}
		}
	}
}
