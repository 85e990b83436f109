// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"net/netip"
	"slices"
	"strings"
)

// The rules that turn a recording into an expectation. Each refers to its row of DECISIONS.md, or
// says "incidental" if README.md, section 6, does. Rules that need more than one value are methods
// of expectation.

// labelNetwork carries the network of a workload.
const labelNetwork = "topology.istio.io/network"

// row2SameNames: workloads of one namespace and name hid one another, regardless of their kind and
// cluster. The row lists the scenarios with such workloads, whose recorded endpoints are wrong.
// There, results that depend on endpoints are not compared with the recording, but (as in all
// scenarios) with a computation from scratch.
func row2SameNames(topic, name string) bool {
	return topic == "pods" && strings.HasPrefix(name, "same-name-") ||
		topic == "aggregate" && strings.HasPrefix(name, "remote-workloadentry-")
}

// row5EachEndpointOnce: an entry with several addresses gave each endpoint
// several times. Endpoint lists are compared as sets.
func row5EachEndpointOnce(endpoints []endpoint) []endpoint {
	var out []endpoint
	seen := map[string]bool{}
	for _, e := range endpoints {
		if t := e.text(); !seen[t] {
			seen[t] = true
			out = append(out, e)
		}
	}
	return out
}

// row11EffectiveNetwork: the network was in the label only unless it was given as a field. Both
// carry it: the field, else the label (which has the result of the callback).
func row11EffectiveNetwork(e endpoint) endpoint {
	if e.Network == "" {
		e.Network = e.Labels[labelNetwork]
	}
	return e
}

// row14PaddedIPv6: IPv6 addresses allocated by hash were printed without padding,
// so that several services shared one. Ours has both octets of the IPv4 address
// in two digits each. It returns what replaces the recorded address.
func row14PaddedIPv6(v4, v6 string) string {
	a, err4 := netip.ParseAddr(v4)
	b, err6 := netip.ParseAddr(v6)
	if err4 != nil || err6 != nil || !a.Is4() || !b.Is6() {
		return v6
	}
	octets, long := a.As4(), b.As16()
	long[14], long[15] = octets[2], octets[3]
	return netip.AddrFrom16(long).String()
}

// row17OwnCluster: handlers registered for a cluster got the events of all clusters. Ours get the
// events of their own.
func row17OwnCluster(calls []serviceHandlerCall, cluster string) []serviceHandlerCall {
	var out []serviceHandlerCall
	for _, c := range calls {
		if _, of, ok := strings.Cut(c.Handler, "/"); !ok || of == cluster {
			out = append(out, c)
		}
	}
	return out
}

// row17NotifiedOnce: a registry that was removed kept its handlers and, when it was
// added again, got them once more, so that every event was delivered several times. Ours
// is notified once.
func row17NotifiedOnce(calls []serviceHandlerCall) []serviceHandlerCall {
	var out []serviceHandlerCall
	for _, c := range calls {
		if !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// row17KubernetesFirst: GetService preferred External although Kubernetes
// registries come first in Services. It returns the services that are to win.
func row17KubernetesFirst(services []service) []service {
	var kubernetes []service
	for _, s := range services {
		if s.Registry == providerKubernetes {
			kubernetes = append(kubernetes, s)
		}
	}
	if len(kubernetes) > 0 {
		return kubernetes
	}
	return services
}

// row3OnlyIPs: ProxyUpdates went out for host names and empty addresses. Ours are
// for IP addresses only.
func row3OnlyIPs(ip string) bool {
	_, err := netip.ParseAddr(ip)
	return err == nil
}

// incidentalEmptyAddress: an endpoint without address was recorded with one empty
// address or none.
func incidentalEmptyAddress(e endpoint) endpoint {
	e.Addresses = slices.DeleteFunc(slices.Clone(e.Addresses), func(a string) bool { return a == "" })
	return e
}

// incidentalAccountsOfEmptyKey: the service accounts that the index remembers for a key without
// endpoints. (They show when the endpoints come back, as the push type.)
func incidentalAccountsOfEmptyKey(e indexEntry) indexEntry {
	if len(e.Shards) == 0 {
		e.ServiceAccounts = nil
	}
	return e
}
