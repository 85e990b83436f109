// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"strings"
)

// Explanation describes the handling of a call and the objects that determine it.
type Explanation struct {
	// Sidecar is the Sidecar with the egress listener of the call ("namespace/name"). It is empty
	// if no Sidecar restricts the client's scope.
	Sidecar string
	// Service is the called service ("namespace/host"). It is empty if the client sees no service
	// with this name.
	Service string
	// VirtualServices are the VirtualServices for the host, in the order of precedence, with the
	// reason against each. The last one may be the one that applies.
	VirtualServices []ConsideredVirtualService
	// VirtualService ("namespace/name") and Rule, such as `http[1] "canary"`, are the rule that
	// applies. They are empty if the default route applies, or none. Rules are counted after the
	// rules of delegates replace the delegating rules.
	VirtualService, Rule string
	// AuthorizationPolicies are the policies that a gateway evaluates before routing, as "ACTION
	// namespace/name", in the order of evaluation. Decision is their result.
	AuthorizationPolicies []string
	// Decision is the result of the policies that protect the gateway, or the gRPC server of an
	// inbound call. It is nil if the callee has no protection or no listener.
	Decision *Decision
	// Outcome describes the handling of the request or connection. A denied call has no
	// VirtualServices and no Destinations.
	Outcome string
	// Destinations are the clusters that the call can be routed to.
	Destinations []ExplainedDestination
}

// Outcomes of calls that are allowed without a route.
const (
	outcomeServed   = "served"
	outcomePassedOn = "the connection is passed on"
)

// ConsideredVirtualService is a VirtualService for the host of a call.
type ConsideredVirtualService struct {
	Name string // "namespace/name"
	// Reason says why the VirtualService does not apply. It is empty if it applies.
	Reason string
}

// ExplainedDestination is a cluster that a call can be routed to.
type ExplainedDestination struct {
	Cluster string
	// Weight is the cluster's share of the calls. It is 0 if there is only one destination.
	Weight uint32
	// DestinationRules ("namespace/name") define the cluster's policy. The rules of users come
	// first, from the oldest to the newest, and then the rules generated from BackendTLSPolicies.
	// FoundIn is the step of the lookup that found them, such as "the client's namespace".
	DestinationRules []string
	FoundIn          string
	// Missing says why the client has no such cluster. It is empty if the cluster exists.
	Missing string
	// Endpoints are sorted by priority, the preferred ones first.
	Endpoints []ExplainedEndpoint
}

// ExplainedEndpoint is an endpoint of a destination.
type ExplainedEndpoint struct {
	Address  string // "ip:port", a host name with a port, or the path of a unix socket
	Locality string // "region/zone/subzone"
	Priority uint32
	Weight   uint32
}

// String returns the explanation as lines of text.
func (e Explanation) String() string {
	var b strings.Builder
	line := linesOf(&b)
	if e.Sidecar != "" {
		line("Sidecar %s limits what the client sees", e.Sidecar)
	}
	if e.Service != "" {
		line("service %s", e.Service)
	}
	if len(e.AuthorizationPolicies) > 0 {
		line("AuthorizationPolicies are asked first: %s", strings.Join(e.AuthorizationPolicies, ", "))
	}
	if e.Decision != nil && !e.Decision.plain() {
		e.Decision.write(line)
	}
	for _, v := range e.VirtualServices {
		if v.Reason != "" {
			line("VirtualService %s does not count: %s", v.Name, v.Reason)
		}
	}
	switch {
	case e.Outcome == outcomeServed, e.Outcome == outcomePassedOn, e.Decision != nil && !e.Decision.Allowed:
		line("%s", e.Outcome)
	case e.VirtualService == "":
		line("no VirtualService decides: %s", e.Outcome)
	case e.Rule == "":
		line("VirtualService %s decides: %s", e.VirtualService, e.Outcome)
	default:
		line("VirtualService %s, %s: %s", e.VirtualService, e.Rule, e.Outcome)
	}
	for _, d := range e.Destinations {
		d.write(line)
	}
	return b.String()
}

func (d ExplainedDestination) write(line func(format string, args ...any)) {
	weight := ""
	if d.Weight > 0 {
		weight = fmt.Sprintf(", weight %d", d.Weight)
	}
	line("  to %s%s", d.Cluster, weight)
	if len(d.DestinationRules) > 0 {
		line("    DestinationRule %s, of %s", strings.Join(d.DestinationRules, " and "), d.FoundIn)
	}
	switch {
	case d.Missing != "":
		line("    missing: %s", d.Missing)
	case len(d.Endpoints) == 0:
		line("    no endpoints")
	}
	for _, e := range d.Endpoints {
		line("    priority %d: %s, weight %d, locality %q", e.Priority, e.Address, e.Weight, e.Locality)
	}
}
