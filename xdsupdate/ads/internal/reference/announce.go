// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"slices"

	"github.com/cespare/xxhash/v2"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// The numbers of fields of a RouteConfiguration and of a VirtualHost.
const (
	virtualHostsField = 2
	routesField       = 3
)

// Clusters returns the sorted names of the clusters that an encoded resource references, except
// those in but.
func Clusters(typeURL string, value []byte, but Hashes) (out []string) {
	f := finder{named: func(name []byte) {
		if !but.Has(xxhash.Sum64(name)) {
			out = append(out, string(name))
		}
	}}
	f.scan(namingTypes[typeName(typeURL)], value)
	slices.Sort(out)
	return slices.Compact(out)
}

// Announce returns an encoded route configuration that references more clusters, or nil if it would
// have more than most bytes. The references are in routes that match no call, behind the routes of
// each virtual host, because a client uses one of the virtual hosts.
func Announce(configuration []byte, clusters []string, most int) (out []byte) {
	var routes []byte
	for _, name := range clusters {
		routes = append(routes, announcingRoute(name)...)
	}
	out = make([]byte, 0, len(configuration)+len(routes)+16)
	EachField(configuration, func(number protowire.Number, field, host []byte) {
		if number != virtualHostsField {
			out = append(out, field...)
			return
		}
		out = protowire.AppendTag(out, virtualHostsField, protowire.BytesType)
		out = protowire.AppendVarint(out, uint64(len(host)+len(routes)))
		out = append(append(out, host...), routes...)
	})
	if len(out) > most {
		return nil
	}
	return out
}

// announcingRoute returns a route that matches no call, encoded as a field of a virtual host. All
// clients get the same one: all of them accept a header that has to be present, and absent.
func announcingRoute(cluster string) []byte {
	present := func(inverted bool) *routev3.HeaderMatcher {
		return &routev3.HeaderMatcher{
			Name: "x-announced", InvertMatch: inverted,
			HeaderMatchSpecifier: &routev3.HeaderMatcher_PresentMatch{PresentMatch: true},
		}
	}
	value, _ := proto.MarshalOptions{Deterministic: true}.Marshal(&routev3.Route{
		Match: &routev3.RouteMatch{
			PathSpecifier: &routev3.RouteMatch_Prefix{},
			Headers:       []*routev3.HeaderMatcher{present(false), present(true)},
		},
		Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster}}},
	})
	return protowire.AppendBytes(protowire.AppendTag(nil, routesField, protowire.BytesType), value)
}
