// SPDX-License-Identifier: Apache-2.0

// Package reference finds the references in encoded listeners and route configurations: the
// clusters that they lead to, the route configurations of listeners, and the properties that decide
// about the order of responses. Find returns them as a Set.
package reference

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	httpauthz "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	tcpauthz "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/ext_authz/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// Hashes are the hashes of names (xxhash.Sum64String), sorted and unique.
type Hashes []uint64

// NewHashes returns the hashes of a list, which it keeps and sorts.
func NewHashes(list []uint64) Hashes {
	slices.Sort(list)
	return slices.Clip(slices.Compact(list))
}

// Has reports whether a hash is among them.
func (h Hashes) Has(hash uint64) bool {
	_, found := slices.BinarySearch(h, hash)
	return found
}

// Without appends the hashes that are not in others to a list.
func (h Hashes) Without(to []uint64, others Hashes) []uint64 {
	for _, hash := range h {
		if !others.Has(hash) {
			to = append(to, hash)
		}
	}
	return to
}

// Exceed reports whether there are hashes that are not in others.
func (h Hashes) Exceed(others Hashes) bool {
	return slices.ContainsFunc(h, func(hash uint64) bool { return !others.Has(hash) })
}

// Set are the references of a listener, a route configuration or a cluster.
type Set struct {
	// Assignment is the load assignment of a cluster if it has another name than the cluster.
	Assignment string
	// Clusters are the clusters that requests and connections go to.
	Clusters Hashes
	// Routes are the route configurations that a client subscribes to because of a listener.
	Routes []string
	// Domains are the domains of a route configuration whose requests are forwarded or redirected.
	// Other domains, whose requests are answered at once, may belong to another listener now.
	Domains Hashes
	// chains are the filter chains of a listener that lead to each route configuration, sorted by content: see
	// Tightened.
	chains map[string][]*demands
}

// None is the empty set, of resources of other types and of resources that do not exist.
var None = &Set{} //nolint:gochecknoglobals // immutable

// HasClusters reports whether resources of a type may reference clusters.
func HasClusters(typeURL string) bool {
	return typeURL == envoy.ListenerType || typeURL == envoy.RouteType
}

// Find returns the references of an encoded resource, which is nil if there are none.
func Find(typeURL, name string, value []byte) *Set {
	switch {
	case typeURL == envoy.ClusterType:
		if assignment := AssignmentOf(name, value); assignment != "" && assignment != name {
			return &Set{Assignment: assignment}
		}
		return nil
	case !HasClusters(typeURL):
		return nil
	}
	var clusters []uint64
	f := finder{named: func(name []byte) { clusters = append(clusters, xxhash.Sum64(name)) }}
	f.scan(namingTypes[typeName(typeURL)], value)
	for _, list := range f.chains {
		slices.SortFunc(list, func(a, b *demands) int { return cmp.Compare(a.content, b.content) })
	}
	return &Set{Clusters: NewHashes(clusters), Routes: f.routes, Domains: NewHashes(f.domains), chains: f.chains}
}

func typeName(typeURL string) string { return typeURL[strings.LastIndexByte(typeURL, '/')+1:] }

// naming describes the fields of a message that have names, by their numbers.
type naming map[protowire.Number]namingField

// namingField is a field that is a name, or that has messages with names.
type namingField struct {
	is     nameKind
	in     naming // of its message, or nil if it has none
	packed bool   // the message is in an Any
}

type nameKind int

const (
	_ nameKind = iota // no name
	// servedBelow: the domains count if the message has a served field.
	servedBelow
	served
	clusterNamed
	routesNamed
	domainNamed
	// chainOfFilters: the named routes in it are behind its filters.
	chainOfFilters
)

//nolint:gochecknoglobals // never changed
var (
	cluster  = namingField{is: clusterNamed}
	clusters = namingField{in: naming{1: {in: naming{1: cluster}}}} // weighted_clusters: clusters.name
	mirrors  = namingField{in: naming{1: cluster}}                  // request_mirror_policies: cluster
	action   = naming{1: cluster, 3: clusters, 30: mirrors}         // of a RouteAction
	authz    = namingField{in: naming{1: {in: naming{1: cluster}}}} // grpc_service: envoy_grpc.cluster_name
	filter   = namingField{in: naming{4: {packed: true}}}           // filters and http_filters: typed_config
	filters  = namingField{is: chainOfFilters, in: naming{3: filter}}

	// namingTypes are the messages that may have names, by the names of their types.
	namingTypes = map[string]naming{
		nameOf(&routev3.RouteConfiguration{}): {
			2: {is: servedBelow, in: naming{ // virtual_hosts
				2:  {is: domainNamed},                                          // domains
				3:  {in: naming{2: {is: served, in: action}, 3: {is: served}}}, // routes: route, redirect
				22: mirrors,
			}},
			13: mirrors,
		},
		nameOf(&listenerv3.Listener{}): {3: filters, 25: filters}, // filter_chains, default_filter_chain
		nameOf(&tcp.TcpProxy{}):        {2: cluster, 10: clusters},
		nameOf(&hcm.HttpConnectionManager{}): {
			3: {in: naming{2: {is: routesNamed}}},                              // rds.route_config_name
			4: {in: naming{2: {in: naming{3: {in: naming{2: {in: action}}}}}}}, // route_config.virtual_hosts.routes.route
			5: filter,
		},
		// http_service.server_uri.cluster is the other one.
		nameOf(&httpauthz.ExtAuthz{}): {1: authz, 3: {in: naming{1: {in: naming{2: cluster}}}}},
		nameOf(&tcpauthz.ExtAuthz{}):  {2: authz},
	}
)

// finder finds names in encoded messages.
type finder struct {
	named   func(cluster []byte) // is called for each name of a cluster
	domains []uint64
	routes  []string
	served  bool
	chains  map[string][]*demands
	demands map[uint64]*demands // by the contents of filter chains
}

// scan visits an encoded message.
func (f *finder) scan(in naming, message []byte) {
	EachField(message, func(number protowire.Number, _, value []byte) {
		if field, named := in[number]; named && value != nil {
			f.found(field, value)
		}
	})
}

func (f *finder) found(field namingField, value []byte) {
	switch field.is {
	case servedBelow:
		before := len(f.domains)
		f.served = false
		if f.scan(field.in, value); !f.served {
			f.domains = f.domains[:before]
		}
		return
	case chainOfFilters:
		before := len(f.routes)
		f.scan(field.in, value)
		f.chain(value, f.routes[before:])
		return
	case served:
		f.served = true
	default:
	}
	switch {
	case field.in != nil:
		f.scan(field.in, value)
	case field.packed:
		typed, message := unpacked(value)
		f.scan(namingTypes[typed], message)
	case field.is == clusterNamed:
		f.named(value)
	case field.is == domainNamed:
		f.domains = append(f.domains, xxhash.Sum64(value))
	case field.is == routesNamed:
		f.routes = append(f.routes, string(value))
	}
}

// chain records that a filter chain leads to some routes.
func (f *finder) chain(encoded []byte, routes []string) {
	if len(routes) == 0 {
		return
	}
	if f.chains == nil {
		f.chains, f.demands = make(map[string][]*demands), make(map[uint64]*demands)
	}
	found := f.demandsOf(encoded)
	for _, name := range routes {
		f.chains[name] = append(f.chains[name], found)
	}
}

// clusterName is the name of a cluster, with its hash.
type clusterName struct {
	hash uint64
	Name string
}

// ClusterNames are names of clusters, sorted by hash.
type ClusterNames []clusterName

// NewClusterNames returns the names of clusters, with their hashes.
func NewClusterNames[T any](clusters []T, name func(T) string) ClusterNames {
	out := make(ClusterNames, len(clusters))
	for i, c := range clusters {
		out[i] = clusterName{xxhash.Sum64String(name(c)), name(c)}
	}
	slices.SortFunc(out, func(a, b clusterName) int { return cmp.Compare(a.hash, b.hash) })
	return out
}

func (c ClusterNames) find(hash uint64) (int, bool) {
	return slices.BinarySearchFunc(c, hash, func(n clusterName, hash uint64) int { return cmp.Compare(n.hash, hash) })
}

// Has reports whether a name is among them.
func (c ClusterNames) Has(name string) bool {
	_, found := c.find(xxhash.Sum64String(name))
	return found
}

// Among yields the names that are in h.
func (c ClusterNames) Among(h Hashes) iter.Seq[string] {
	return func(yield func(string) bool) {
		if len(h) < len(c)/8 {
			for _, hash := range h {
				if i, found := c.find(hash); found && !yield(c[i].Name) {
					return
				}
			}
			return
		}
		for _, n := range c {
			if h.Has(n.hash) && !yield(n.Name) {
				return
			}
		}
	}
}

// IsEDS reports whether an encoded cluster gets its endpoints from a load assignment.
func IsEDS(cluster []byte) bool {
	const discoveryType = 2 // Cluster.type
	is := false
	EachField(cluster, func(number protowire.Number, field, _ []byte) {
		if number == discoveryType {
			is = varint(field) == uint64(clusterv3.Cluster_EDS)
		}
	})
	return is
}

// AssignmentOf returns the name of the load assignment that clients subscribe to for an encoded
// cluster with a name, or "" if they need none.
func AssignmentOf(name string, cluster []byte) (assignment string) {
	const edsField, serviceNameField = 3, 2
	EachField(cluster, func(number protowire.Number, _, eds []byte) {
		if number != edsField {
			return
		}
		assignment = name
		EachField(eds, func(number protowire.Number, _, text []byte) {
			if number == serviceNameField && len(text) > 0 {
				assignment = string(text)
			}
		})
	})
	return assignment
}
