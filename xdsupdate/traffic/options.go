// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"log/slog"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// Options for New. The zero value works.
type Options struct {
	// Mesh is Istio's mesh configuration. What it leaves out has Istio's defaults;
	// nil: all of it. It must not be modified afterwards. serviceentry.MeshOf makes the
	// settings of that registry of the same one.
	Mesh *meshconfig.MeshConfig
	// Domain ends the names of services that objects name in short: "cart" in the
	// namespace shop is "cart.shop.svc.DOMAIN". It has to be that of the registries, such
	// as kube.Options.DomainSuffix. Default: "cluster.local".
	Domain string
	// Networks are Istio's mesh networks: which networks there are, and the gateways
	// through which they are reached. Nil: every endpoint is reached directly.
	Networks *meshconfig.MeshNetworks
	// FilterGatewayClusters: gateways have clusters only of services that the routes
	// of their VirtualServices use (Istio's PILOT_FILTER_GATEWAY_CLUSTER_CONFIG).
	// By default they have those of all services that they see.
	FilterGatewayClusters bool
	// OutliersForGRPC: gRPC clients have the outlier detection of DestinationRules,
	// as far as they know one: an endpoint of which all calls within an interval
	// failed, and at least as many as the rule has consecutive errors, is ejected. By
	// default they have none (Istio 1.30).
	OutliersForGRPC bool
	// UnixSockets is the directory, on the machines of gateways, in which servers of
	// Gateways may listen on unix sockets ("bind: unix:///run/gateways/a.sock"), with what
	// is below it. It is absolute, and nobody else's files are there: Envoy deletes the
	// file that it finds at the path. By default there is none, and such servers are left
	// out and reported; sockets of Linux' abstract namespace, "unix://@name", are no files
	// and always allowed.
	UnixSockets string
	// HTTP10: gateways serve requests by HTTP/1.0, if they have a Host header (Istio's
	// PILOT_HTTP10). By default they answer them with 426.
	HTTP10 bool
	// MultipleCustomProviders: the CUSTOM AuthorizationPolicies for one workload may name several
	// providers, and each decides about what its policies match (Istio's
	// ENABLE_MULTIPLE_CUSTOM_AUTHZ_PROVIDERS). By default what the policies of several match is refused.
	MultipleCustomProviders bool
	// KeyFetcher fetches the keys that RequestAuthentications name by a URI (jwksUri), or by an issuer alone; nil:
	// HTTPKeyFetcher. Only Policies.Run fetches.
	KeyFetcher KeyFetcher
	// KeyRefresh is how often keys are fetched again; 0: every 20 minutes, as Istio does.
	KeyRefresh time.Duration
	// Logger gets keys that cannot be fetched: at once, and then, as long as it is so, after 1, 2, 4 … 60 minutes; of all of
	// them about a hundred a minute. Nil discards.
	Logger *slog.Logger
	// Limits bound what one object adds to what clients are sent.
	Limits Limits
}

// defaultDomain is what Kubernetes calls a cluster's domain by default.
const defaultDomain = "cluster.local"

// settings are the options with all defaults. They are immutable.
type settings struct {
	mesh *meshconfig.MeshConfig
	// givenMesh is Options.Mesh: mesh without the defaults; nil if there is none.
	givenMesh *meshconfig.MeshConfig
	// domain is the DNS suffix of short names, in lower case.
	domain                string
	networks              *meshconfig.MeshNetworks
	gateways              *envoy.Networks
	filterGatewayClusters bool
	outliersForGRPC       bool
	http10                bool
	multipleProviders     bool
	// unixSockets is clean; empty: none.
	unixSockets string
	limits      Limits
	// keys are set by New.
	keys *tokenKeys
}

func newSettings(o Options) *settings {
	s := &settings{
		mesh: defaultMesh(), givenMesh: o.Mesh, domain: cmp.Or(strings.ToLower(strings.Trim(o.Domain, ".")), defaultDomain), networks: o.Networks,
		filterGatewayClusters: o.FilterGatewayClusters, outliersForGRPC: o.OutliersForGRPC, http10: o.HTTP10, multipleProviders: o.MultipleCustomProviders, unixSockets: cleanDirectory(o.UnixSockets),
		limits: o.Limits.withDefaults(),
	}
	if s.networks == nil {
		s.networks = &meshconfig.MeshNetworks{}
	}
	s.gateways = envoy.NewNetworks(networkGateways(s.networks))
	if o.Mesh != nil {
		override(s.mesh, o.Mesh)
	}
	return s
}

// networkGateways returns the gateways of networks that are given by address.
func networkGateways(networks *meshconfig.MeshNetworks) []registry.NetworkGateway {
	var out []registry.NetworkGateway
	for name, n := range networks.GetNetworks() {
		for _, g := range n.GetGateways() {
			out = append(out, registry.NetworkGateway{Network: name, Addr: g.GetAddress(), Port: g.GetPort()})
		}
	}
	return out
}

// defaultMesh is what Istio 1.30 assumes where a mesh configuration is silent.
func defaultMesh() *meshconfig.MeshConfig {
	return &meshconfig.MeshConfig{
		RootNamespace:                  "istio-system",
		TrustDomain:                    "cluster.local",
		EnableAutoMtls:                 wrapperspb.Bool(true),
		ConnectTimeout:                 durationpb.New(10 * time.Second),
		DnsRefreshRate:                 durationpb.New(time.Minute),
		LocalityLbSetting:              &networking.LocalityLoadBalancerSetting{Enabled: wrapperspb.Bool(true)},
		DefaultServiceExportTo:         []string{"*"},
		DefaultVirtualServiceExportTo:  []string{"*"},
		DefaultDestinationRuleExportTo: []string{"*"},
		OutboundTrafficPolicy: &meshconfig.MeshConfig_OutboundTrafficPolicy{
			Mode: meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY,
		},
	}
}

// override replaces each field of the defaults that a configuration sets: unlike
// proto.Merge, lists and messages as a whole.
func override(defaults, with *meshconfig.MeshConfig) {
	for _, f := range setFields(with) {
		defaults.ProtoReflect().Clear(f)
	}
	proto.Merge(defaults, with)
}

func (s *settings) rootNamespace() string { return s.mesh.GetRootNamespace() }
