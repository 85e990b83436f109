// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"strings"
)

// Explanation says what becomes of a call, and what decides it.
type Explanation struct {
	// Sidecar is the Sidecar whose egress counts ("namespace/name"); empty: none, all
	// that is visible counts.
	Sidecar string
	// Service is what the host is ("namespace/host"); empty if the client sees no
	// service of this name.
	Service string
	// VirtualServices are those that are for the host, in the order in which they are
	// looked at, and what speaks against each; the last may be the one that counts.
	VirtualServices []ConsideredVirtualService
	// VirtualService ("namespace/name") and Rule, such as `http[1] "canary"`, are what
	// decides; empty: the default route, or none. With delegates the rules are counted
	// as they take the place of the root's.
	VirtualService, Rule string
	// AuthorizationPolicies are those that a gateway asks before all that, as "ACTION namespace/name", in the order in
	// which they are asked. Decision is what they say.
	AuthorizationPolicies []string
	// Decision is what the policies say that protect a gateway, or the gRPC server of an inbound call; nil: none protects what is called,
	// or nothing serves the call.
	Decision *Decision
	// Outcome says in words what is done with the request, or the connection. What is refused has neither VirtualServices nor
	// Destinations.
	Outcome string
	// Destinations are where it can go.
	Destinations []ExplainedDestination
}

// What is done with calls that no route is for.
const (
	outcomeServed   = "served"
	outcomePassedOn = "the connection is passed on"
)

// ConsideredVirtualService is a VirtualService that is for the host of a call.
type ConsideredVirtualService struct {
	Name string // "namespace/name"
	// Reason is why it does not count; empty: it does.
	Reason string
}

// ExplainedDestination is a cluster that a call can go to.
type ExplainedDestination struct {
	Cluster string
	// Weight is its share of the calls; 0 if there is only one destination.
	Weight uint32
	// DestinationRules ("namespace/name") make up its policy, the oldest first, then those of BackendTLSPolicies; they
	// were found in FoundIn, such as "the client's namespace".
	DestinationRules []string
	FoundIn          string
	// Missing is why there is no such cluster for the client; empty: there is.
	Missing string
	// Endpoints are in the order of their priorities, those that are used first
	// before the others.
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
