// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"net/http"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// Limits bound what one object adds to what clients are sent. A short object can make a
// long resource: the matches of a rule that delegates are multiplied with those of the
// delegate, each match repeats all destinations of its rule, each host of a Gateway's
// server the routes of a wildcard, each service the subsets of one. What is over a limit
// is left out and reported like everything that is left out (Policies.Ineffective, the
// log of the server): requests fail with 500 where there are routes for them. Other
// objects are served as without it. Where several objects share a resource and do not fit, the
// namespace that has the most loses first, and of its objects the newest: what a namespace has within
// its share, the limit divided by the number of namespaces, stays whatever others have. Of two that are
// equally old the order is that of their names.
//
// A limit of 0 has its default, a negative one is none.
type Limits struct {
	// Matches is how many matches a VirtualService has with those of its delegates, each
	// counted with each of the rule that delegates to it. A rule with which they are more
	// fails. The default is 10,000; Istio's documentation advises to stay below 1,000.
	Matches int
	// Routes is how many routes a virtual host has: a proxy tries one after the other for
	// each request. The default is 10,000.
	Routes int
	// RouteBytes is how many bytes the routes of a VirtualService have, encoded, in one
	// virtual host. Regular expressions count with their programs too, here and in the next
	// two limits: a byte for each instruction, of which an Envoy makes 32. The default is 3 MiB: what gRPC clients take in one response is 4 MiB,
	// and they have routes of one service, which are those of one VirtualService, in a
	// route configuration.
	RouteBytes int
	// RepeatedBytes is how many bytes a client is sent of one object that many resources
	// or virtual hosts repeat: the routes of a VirtualService in each virtual host, on
	// each port of a service and by each server of a Gateway, and the policy of a
	// DestinationRule in each cluster. Route configurations of a single service, which gRPC
	// clients ask for by name, count each by itself. The default is 16 MiB, which is a retry
	// policy for all of 20,000 services.
	RepeatedBytes int
	// SharedBytes is how many bytes all VirtualServices together have in one route
	// configuration. The default is 32 MiB, 3 KiB for each of 10,000 hosts. Only Envoys
	// share route configurations, and they set no limit to what they receive. A client of
	// another kind, whose gRPC has a limit of 4 MiB, needs a lower one here, or a higher one
	// there.
	SharedBytes int
	// VirtualHosts is how many virtual hosts VirtualServices make in one route
	// configuration, without those of services. The default is 50,000.
	VirtualHosts int
	// Clusters is how many clusters the subsets of the DestinationRules of a namespace for
	// one host have: for each port of each service that the host covers. Envoys keep
	// statistics for each cluster. The default is 10,000.
	Clusters int
	// HashEntries is how many entries the rings and tables have, by which the requests to
	// the clusters of the DestinationRules of a namespace for one host are hashed: of each
	// port and subset of each service that the host covers, for each priority that the
	// policy can make. An entry is of 48 bytes in an Envoy. The requests to services beyond the shares
	// of their namespaces are not hashed if it would be more. The default is 4 Mi, which is the default
	// ring, of 1,024 entries, for 4,096 clusters.
	HashEntries int
	// FilterChains is how many filter chains all AUTO_PASSTHROUGH servers of a Gateway have:
	// each has one for each port, and subset, of the services that its hosts cover. It is
	// also how many matches of server names and ranges a listener has, if some TCP or TLS
	// route is for destinationSubnets: each range repeats all matches of the listener. The
	// VirtualServices with which they are more are left out. The default is 100,000.
	FilterChains int
	// Imports is how many services the egress listeners of a Sidecar import, each service
	// counted for each of the listeners. A listener with which they are more fails all
	// requests. The default is 200,000.
	Imports int
	// KeyBytes is how many bytes are fetched for one JSON Web Key Set: Envoys are sent it in each filter chain. Of a larger one
	// none is used, and no token of its issuer is valid. The default is 128 KiB.
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

// exceeds reports whether a number is over a limit; 0 is none.
func exceeds(n, limit int) bool { return limit > 0 && n > limit }

func tooManyMatches(limit int) error {
	return fmt.Errorf("with those of the delegate there are more than %d matches", limit)
}

// failingRule answers what a rule matches with 500.
func failingRule(r *networking.HTTPRoute) *networking.HTTPRoute {
	return &networking.HTTPRoute{
		Name: r.GetName(), Match: r.GetMatch(),
		DirectResponse: &networking.HTTPDirectResponse{Status: http.StatusInternalServerError},
	}
}

// sizeOf returns how many bytes routes have in a virtual host, with the programs of their
// regular expressions.
func sizeOf(routes []*routev3.Route) int {
	n := 0
	for _, r := range routes {
		size := proto.Size(r)
		n += 1 + protowire.SizeBytes(size) + envoy.ProgramSize(r)
	}
	return n
}

// rulePlace says where a rule comes from.
type rulePlace struct {
	// at is the position among the VirtualService's own rules.
	at int
	// delegate is whose rule it is; nil: the VirtualService's.
	delegate *virtualService
	// failing: it is in the place of rules that are over a limit.
	failing bool
}
