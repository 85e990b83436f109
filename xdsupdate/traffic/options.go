// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"log/slog"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// Options configures New. The zero value works.
type Options struct {
	// Mesh is Istio's mesh configuration. Unset fields have Istio's defaults. Nil stands for all
	// defaults. It must not be modified afterwards. serviceentry.MeshOf derives that registry's
	// settings from the same configuration.
	Mesh *meshconfig.MeshConfig
	// Domain is the suffix of short service names: "cart" in the namespace shop is
	// "cart.shop.svc.DOMAIN". It must be the registries' domain, such as kube.Options.DomainSuffix.
	// The default is "cluster.local".
	Domain string
	// Networks are Istio's mesh networks and the gateways that connect them. Nil means that every
	// endpoint is reached directly.
	Networks *meshconfig.MeshNetworks
	// FilterGatewayClusters restricts the clusters of gateways to services that their
	// VirtualServices route to (Istio's PILOT_FILTER_GATEWAY_CLUSTER_CONFIG). By default gateways
	// have the clusters of all visible services.
	FilterGatewayClusters bool
	// OutliersForGRPC enables the outlier detection of DestinationRules for gRPC clients, as far as
	// they support it. An endpoint is ejected if all its calls within an interval fail and their
	// number is at least the rule's number of consecutive errors. By default gRPC clients have no
	// outlier detection (Istio 1.30).
	OutliersForGRPC bool
	// UnixSockets is the directory on the gateways' machines where Gateway servers may listen on
	// unix sockets ("bind: unix:///run/gateways/a.sock"), including its subdirectories. It must be
	// absolute and contain no other files, because Envoy deletes an existing file at the path. By
	// default there is no such directory, and servers on unix sockets are left out and reported.
	// Sockets in Linux' abstract namespace, "unix://@name", are not files and always allowed.
	UnixSockets string
	// HTTP10 makes gateways accept HTTP/1.0 requests with a Host header (Istio's PILOT_HTTP10). By
	// default gateways answer such requests with 426.
	HTTP10 bool
	// MultipleCustomProviders allows the CUSTOM AuthorizationPolicies of one workload to name
	// several providers. Each provider decides about the requests that its policies match (Istio's
	// ENABLE_MULTIPLE_CUSTOM_AUTHZ_PROVIDERS). By default, requests are denied if they match CUSTOM
	// policies of a workload with several providers.
	MultipleCustomProviders bool
	// KeyFetcher fetches the keys of RequestAuthentications with a URI (jwksUri), or with an issuer
	// alone. Nil stands for HTTPKeyFetcher. Only Policies.Run fetches keys.
	KeyFetcher KeyFetcher
	// KeyRefresh is the interval between fetches of the same keys. 0 stands for 20 minutes, as in
	// Istio.
	KeyRefresh time.Duration
	// Logger receives failures to fetch keys, and policies that are closed (Policies.Closed). A
	// persistent failure is logged at once and then after 1, 2, 4 … 60 minutes, a closed policy when
	// it changes. Each kind of message is limited to about a hundred a minute.
	// Nil discards.
	Logger *slog.Logger
	// Limits bound the contribution of each object to the resources of clients.
	Limits Limits
}

// defaultDomain is the default cluster domain of Kubernetes.
const defaultDomain = "cluster.local"

// settings are the options with all defaults. They are immutable.
type settings struct {
	objects.Settings
	options  Options
	gateways *xdsbuild.Networks
	// unixSockets is a canonical path. It is empty if there is no such directory.
	unixSockets string
	limits      Limits
	// keys is set by New.
	keys *tokenKeys
}

func newSettings(o Options) *settings {
	s := &settings{
		options: o, limits: o.Limits.withDefaults(),
		gateways:    xdsbuild.NewNetworks(networkGateways(o.Networks)),
		unixSockets: cleanDirectory(o.UnixSockets),
	}
	s.Settings = objects.Settings{
		Mesh: defaultMesh(), Domain: cmp.Or(strings.ToLower(strings.Trim(o.Domain, ".")), defaultDomain), Matches: s.limits.Matches,
	}
	if o.Mesh != nil {
		override(s.Mesh, o.Mesh)
	}
	return s
}

// networkGateways returns the network gateways that are specified by address.
func networkGateways(networks *meshconfig.MeshNetworks) []registry.NetworkGateway {
	var out []registry.NetworkGateway
	for name, n := range networks.GetNetworks() {
		for _, g := range n.GetGateways() {
			out = append(out, registry.NetworkGateway{Network: name, Addr: g.GetAddress(), Port: g.GetPort()})
		}
	}
	return out
}

// defaultMesh returns the defaults of the mesh configuration (Istio 1.30).
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

// override replaces each field of the defaults that a configuration sets. Unlike proto.Merge, it
// replaces lists and messages as a whole.
func override(defaults, with *meshconfig.MeshConfig) {
	with.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		defaults.ProtoReflect().Set(f, v)
		return true
	})
}
