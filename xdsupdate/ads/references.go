// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	httpauthz "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	tcpauthz "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/ext_authz/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// hashes are those of names (xxhash.Sum64String), sorted, each once.
type hashes []uint64

func newHashes(list []uint64) hashes {
	slices.Sort(list)
	return slices.Clip(slices.Compact(list))
}

func (h hashes) has(hash uint64) bool {
	_, found := slices.BinarySearch(h, hash)
	return found
}

// without adds those to a list that are not of others.
func (h hashes) without(to []uint64, others hashes) []uint64 {
	for _, hash := range h {
		if !others.has(hash) {
			to = append(to, hash)
		}
	}
	return to
}

// exceed reports whether there are some that are not of others.
func (h hashes) exceed(others hashes) bool {
	return slices.ContainsFunc(h, func(hash uint64) bool { return !others.has(hash) })
}

// references are the names in a listener or a route configuration.
type references struct {
	// clusters are those that requests and connections go to.
	clusters hashes
	// routes are the route configurations that a listener has the client ask for.
	routes []string
	// domains are those of a route configuration of which requests are sent somewhere: that
	// others are answered at once may mean that another listener has them.
	domains hashes
}

// noReferences are those of what is no listener nor a route configuration, and of what
// is not there.
var noReferences = &references{} //nolint:gochecknoglobals // immutable

// references returns what the resource, which may be nil, names. It is found in the
// encoded resource, once, when somebody asks for it: most resources are never asked.
func (r *resource) references() *references {
	if r == nil || !pointsToClusters(r.typeURL) {
		return noReferences
	}
	if known := r.named.Load(); known != nil {
		return known
	}
	found := findReferences(r.typeURL, r.value)
	r.named.Store(found)
	return found
}

// findReferences returns what an encoded resource names.
func findReferences(typeURL string, value []byte) *references {
	f := finder{}
	f.scan(namingTypes[typeName(typeURL)], value)
	return &references{clusters: newHashes(f.clusters), routes: f.routes, domains: newHashes(f.domains)}
}

func typeName(typeURL string) string { return typeURL[strings.LastIndexByte(typeURL, '/')+1:] }

// naming is what the fields of a message have to do with names, by their numbers.
type naming map[protowire.Number]*namingField

// namingField is a field that is a name, or that has messages with names.
type namingField struct {
	is     nameKind
	in     naming // of the message that it has; nil: it has none
	packed bool   // the message is in an Any
}

type nameKind int

const (
	noName nameKind = iota
	// servedBelow: the domains count if there is a served in the message.
	servedBelow
	served
	clusterNamed
	routesNamed
	domainNamed
)

// namingTypes are the messages in which names are looked for, by the names of their types.
//
//nolint:gochecknoglobals // never changed
var namingTypes = compileNaming(
	namingPaths{&routev3.RouteConfiguration{}, map[string]nameKind{
		"virtual_hosts":                                              servedBelow,
		"virtual_hosts.domains":                                      domainNamed,
		"virtual_hosts.routes.route":                                 served,
		"virtual_hosts.routes.redirect":                              served,
		"virtual_hosts.routes.route.cluster":                         clusterNamed,
		"virtual_hosts.routes.route.weighted_clusters.clusters.name": clusterNamed,
		"virtual_hosts.routes.route.request_mirror_policies.cluster": clusterNamed,
		"virtual_hosts.request_mirror_policies.cluster":              clusterNamed,
		"request_mirror_policies.cluster":                            clusterNamed,
	}},
	namingPaths{&listenerv3.Listener{}, map[string]nameKind{
		"filter_chains.filters.typed_config":        noName,
		"default_filter_chain.filters.typed_config": noName,
	}},
	namingPaths{&tcp.TcpProxy{}, map[string]nameKind{
		"cluster":                         clusterNamed,
		"weighted_clusters.clusters.name": clusterNamed,
	}},
	namingPaths{&hcm.HttpConnectionManager{}, map[string]nameKind{
		"rds.route_config_name":                                                   routesNamed,
		"route_config.virtual_hosts.routes.route.cluster":                         clusterNamed,
		"route_config.virtual_hosts.routes.route.weighted_clusters.clusters.name": clusterNamed,
		"route_config.virtual_hosts.routes.route.request_mirror_policies.cluster": clusterNamed,
		"http_filters.typed_config":                                               noName,
	}},
	namingPaths{&httpauthz.ExtAuthz{}, map[string]nameKind{
		"grpc_service.envoy_grpc.cluster_name": clusterNamed,
		"http_service.server_uri.cluster":      clusterNamed,
	}},
	namingPaths{&tcpauthz.ExtAuthz{}, map[string]nameKind{
		"grpc_service.envoy_grpc.cluster_name": clusterNamed,
	}},
)

// namingPaths are the fields of a message that matter; noName: an Any.
type namingPaths struct {
	of    proto.Message
	paths map[string]nameKind
}

func compileNaming(list ...namingPaths) map[string]naming {
	out := make(map[string]naming)
	for _, p := range list {
		message := p.of.ProtoReflect().Descriptor()
		root := make(naming)
		for path, kind := range p.paths {
			root.add(message, strings.Split(path, "."), kind)
		}
		out[string(message.FullName())] = root
	}
	return out
}

// add adds a path. It panics if there is no such field.
func (n naming) add(message protoreflect.MessageDescriptor, path []string, kind nameKind) {
	field := message.Fields().ByName(protoreflect.Name(path[0]))
	f := n[field.Number()]
	if f == nil {
		f = &namingField{}
		n[field.Number()] = f
	}
	switch {
	case len(path) == 1 && kind == noName:
		f.packed = true
	case len(path) == 1:
		f.is = kind
	default:
		if f.in == nil {
			f.in = make(naming)
		}
		f.in.add(field.Message(), path[1:], kind)
	}
}

// finder finds names in encoded messages.
type finder struct {
	clusters, domains []uint64
	routes            []string
	served            bool
	named             func(cluster []byte) // nil, or is called for each of clusters
}

// scan looks at an encoded message. What cannot be decoded ends it: this server has
// encoded it.
func (f *finder) scan(in naming, message []byte) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return
		}
		message = message[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
				return
			}
			message = message[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(message)
		if n < 0 {
			return
		}
		message = message[n:]
		if field := in[number]; field != nil {
			f.found(field, value)
		}
	}
}

func (f *finder) found(field *namingField, value []byte) {
	switch field.is {
	case servedBelow:
		before := len(f.domains)
		f.served = false
		if f.scan(field.in, value); !f.served {
			f.domains = f.domains[:before]
		}
		return
	case served:
		f.served = true
	default:
	}
	switch {
	case field.in != nil:
		f.scan(field.in, value)
	case field.packed:
		f.scanAny(value)
	case field.is == clusterNamed:
		f.clusters = append(f.clusters, xxhash.Sum64(value))
		if f.named != nil {
			f.named(value)
		}
	case field.is == domainNamed:
		f.domains = append(f.domains, xxhash.Sum64(value))
	case field.is == routesNamed:
		f.routes = append(f.routes, string(value))
	}
}

// scanAny looks at a message in an Any, if there may be names in it.
func (f *finder) scanAny(encoded []byte) {
	const typeURL, value = 1, 2
	var of naming
	for len(encoded) > 0 {
		number, kind, n := protowire.ConsumeTag(encoded)
		if n < 0 || kind != protowire.BytesType {
			return
		}
		field, size := protowire.ConsumeBytes(encoded[n:])
		if size < 0 {
			return
		}
		encoded = encoded[n+size:]
		switch int(number) {
		case typeURL:
			of = namingTypes[typeName(string(field))]
		case value:
			if of != nil {
				f.scan(of, field)
			}
		}
	}
}

// clusterName is the name of a cluster, with its hash.
type clusterName struct {
	hash uint64
	name string
}

// clusterNames are sorted by hash.
type clusterNames []clusterName

func newClusterNames(list []*resource) clusterNames {
	out := make(clusterNames, len(list))
	for i, r := range list {
		out[i] = clusterName{xxhash.Sum64String(r.name), r.name}
	}
	slices.SortFunc(out, func(a, b clusterName) int { return cmp.Compare(a.hash, b.hash) })
	return out
}

func (c clusterNames) find(hash uint64) (int, bool) {
	return slices.BinarySearchFunc(c, hash, func(n clusterName, hash uint64) int { return cmp.Compare(n.hash, hash) })
}

func (c clusterNames) has(name string) bool {
	_, found := c.find(xxhash.Sum64String(name))
	return found
}

// among returns the names that are in h, or only the first of them.
func (c clusterNames) among(h hashes, all bool) (out []string) {
	if len(h) < len(c)/8 {
		for _, hash := range h {
			if i, found := c.find(hash); found {
				if out = append(out, c[i].name); !all {
					return out
				}
			}
		}
		return out
	}
	for _, n := range c {
		if h.has(n.hash) {
			if out = append(out, n.name); !all {
				return out
			}
		}
	}
	return out
}
