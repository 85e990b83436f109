// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/ipaddr"
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
	// endpoint is reached directly. Gateways keep the x-envoy headers of requests from the networks'
	// ranges (fromCidr).
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
	// internal are the address ranges of the networks.
	internal []netip.Prefix
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
		internal:    networkRanges(o.Networks),
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

// networkRanges returns the address ranges of the networks, sorted.
func networkRanges(networks *meshconfig.MeshNetworks) []netip.Prefix {
	var out []netip.Prefix
	for _, n := range networks.GetNetworks() {
		for _, e := range n.GetEndpoints() {
			if block, ok := ipaddr.ParseBlock(e.GetFromCidr()); ok {
				out = append(out, block)
			}
		}
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	return slices.Compact(out)
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

// Limits bound the contribution of each object to the resources of clients. A small object can lead
// to large resources: the matches of a delegating rule are multiplied by the delegate's matches,
// each match repeats all destinations of its rule, each host of a Gateway server repeats the routes
// of a wildcard, and each service repeats the subsets of a wildcard DestinationRule.
//
// A part that exceeds a limit is left out and reported like all parts that are left out
// (Policies.Ineffective, the server's log). Requests for left-out routes fail with 500. Other
// objects are not affected. If several objects share a resource and do not fit together, the
// namespace with the largest total loses first, and its newest objects lose first. Objects of equal
// age are ordered by name. A namespace keeps the objects within its share, which is the limit
// divided by the number of namespaces, regardless of other namespaces.
//
// A limit of 0 stands for its default, and a negative limit for none.
type Limits struct {
	// Matches is the maximum number of matches of a VirtualService, including its delegates. A
	// delegate's matches count once for each match of the delegating rule. A rule that exceeds the
	// limit fails its requests. The default is 10,000. Istio's documentation recommends fewer than
	// 1,000.
	Matches int
	// Routes is the maximum number of routes in a virtual host, because a proxy tries them one
	// after the other for each request. The default is 10,000.
	Routes int
	// RouteBytes is the maximum encoded size of a VirtualService's routes in one virtual host. Here
	// and in the next two limits, a regular expression also counts one byte for each instruction of
	// its program, although an instruction takes 32 bytes in an Envoy. The default is 3 MiB,
	// because gRPC clients accept 4 MiB in one response, and their route configurations contain the
	// routes of one service, and so of one VirtualService.
	RouteBytes int
	// RepeatedBytes is the maximum size of all copies of one object's contribution that a client
	// receives: the routes of a VirtualService in each virtual host, on each port of a service and
	// for each Gateway server, and the policy of a DestinationRule in each cluster. Route
	// configurations of a single service, which gRPC clients subscribe to by name, are counted
	// separately. The default is 16 MiB, which suffices for a retry policy for 20,000 services.
	RepeatedBytes int
	// SharedBytes is the maximum size of all VirtualServices together in one route configuration.
	// It also bounds the TLS routes in one listener, the TCP routes of one Gateway server, the
	// copies of policies in the filter chains of one listener, and the policies of one gRPC server.
	// The default is 32 MiB, or 3 KiB for each of 10,000 hosts. Only Envoys share route
	// configurations, and they accept responses of any size. Other clients whose gRPC limits
	// messages to 4 MiB need a lower limit here, or a higher one there.
	SharedBytes int
	// VirtualHosts is the maximum number of virtual hosts that VirtualServices contribute to one
	// route configuration, in addition to the virtual hosts of services. The default is 50,000.
	VirtualHosts int
	// Clusters is the maximum number of clusters for the subsets of a namespace's DestinationRules
	// for one host, counting each port of each service that the host covers. Envoys keep statistics
	// for each cluster. The default is 10,000.
	Clusters int
	// HashEntries is the maximum number of entries in the consistent hash rings and tables of a
	// namespace's DestinationRules for one host, counting each port and subset of each service that
	// the host covers, and each priority that the policy can create. An entry takes 48 bytes in an
	// Envoy. Requests to services beyond the shares of their namespaces are not hashed. The default
	// is 4 Mi, which suffices for default rings of 1,024 entries in 4,096 clusters.
	HashEntries int
	// FilterChains is the maximum number of filter chains of all AUTO_PASSTHROUGH servers of a
	// Gateway. Each server has one for each port and subset of the services that its hosts cover.
	// It is also the maximum number of matches of server names and ranges in a listener if some TCP
	// or TLS route has destinationSubnets, because each range repeats all matches of the listener.
	// VirtualServices that exceed it are left out. The default is 100,000.
	FilterChains int
	// Imports is the maximum number of services that the egress listeners of a Sidecar import. A
	// service counts once for each listener that imports it. The newest services of a listener that
	// exceeds the limit are not imported. The first listener is not limited. The default is
	// 200,000.
	Imports int
	// KeyBytes is the maximum size of a fetched JSON Web Key Set, because Envoys receive it in each
	// filter chain. A larger set is not used, so that no token of its issuer is valid. The default
	// is 128 KiB.
	KeyBytes int
}

const defaultKeyBytes = 128 << 10

func (l Limits) withDefaults() Limits {
	for _, f := range []struct {
		limit *int
		value int
	}{
		{&l.Matches, 10_000},
		{&l.Routes, 10_000},
		{&l.RouteBytes, 3 << 20},
		{&l.RepeatedBytes, 16 << 20},
		{&l.SharedBytes, 32 << 20},
		{&l.VirtualHosts, 50_000},
		{&l.Clusters, 10_000},
		{&l.HashEntries, 4 << 20},
		{&l.FilterChains, 100_000},
		{&l.Imports, 200_000},
		{&l.KeyBytes, defaultKeyBytes},
	} {
		switch {
		case *f.limit == 0:
			*f.limit = f.value
		case *f.limit < 0:
			*f.limit = 0
		}
	}
	return l
}

// exceeds reports whether a number exceeds a limit. The limit 0 stands for none.
func exceeds(n, limit int) bool { return limit > 0 && n > limit }

func tooManyMatches(limit int) error {
	return fmt.Errorf("with those of the delegate there are more than %d matches", limit)
}

// sizeOf returns the encoded size of routes in a virtual host, plus the size of their regular
// expression programs.
func sizeOf(routes []*routev3.Route) int {
	n := 0
	for _, r := range routes {
		size := proto.Size(r)
		n += 1 + protowire.SizeBytes(size) + xdsbuild.ProgramSize(r)
	}
	return n
}
