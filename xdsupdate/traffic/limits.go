// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"net/http"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
)

// Limits bound what one VirtualService adds to a resource of a client. A short object
// can make a long one: the matches of a rule that delegates are multiplied with those of
// the delegate, and each match repeats all destinations of its rule. What is over a limit
// fails its requests with 500 and is reported like everything that is left out
// (Policies.Ineffective, the log of the server); other objects are served as without it.
// A limit of 0 has its default, a negative one is none.
type Limits struct {
	// Matches is how many matches a VirtualService has with those of its delegates, each
	// counted with each of the rule that delegates to it. A rule with which they are more
	// fails. The default is 10,000; Istio's documentation advises to stay below 1,000.
	Matches int
	// RouteBytes is how many bytes the routes of a VirtualService have, encoded, in one
	// virtual host. The default is 3 MiB: what gRPC clients take in one response is 4 MiB.
	RouteBytes int
	// RepeatedBytes is the same for all virtual hosts of a sidecar's route configuration
	// that have routes of the VirtualService, each of which repeats them. The default is
	// 32 MiB.
	RepeatedBytes int
}

func (l Limits) withDefaults() Limits {
	for _, f := range []struct {
		limit *int
		value int
	}{{&l.Matches, 10_000}, {&l.RouteBytes, 3 << 20}, {&l.RepeatedBytes, 32 << 20}} {
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

func sizeOf(routes []*routev3.Route) int {
	n := 0
	for _, r := range routes {
		n += proto.Size(r)
	}
	return n
}

func ineffectiveRoutes(v *virtualService, reason error) error {
	return leftOut(v.config, "spec.http", failedRequests(reason))
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
