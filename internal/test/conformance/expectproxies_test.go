// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// podName tells the pods of all clusters apart.
type podName struct{ cluster, namespace, name string }

// workload follows the state of other registries.
func (x *expectation) workload(e *expected, w workload) {
	if w.Network == "" && w.Labels[labelNetwork] != "" {
		x.verbatim = append(x.verbatim, w.Labels)
	}
	if w.Kind == "" || w.Kind == registry.Pod.String() {
		name := podName{w.Cluster, w.Namespace, w.Name}
		if delete(x.pods, name); w.event() != registry.EventDelete {
			x.pods[name] = w.Addresses
			e.proxyAddresses = append(e.proxyAddresses, w.Addresses)
		}
	}
}

// expectProxyUpdates collects the proxies to be pushed. Row 3 has already added the proxies of
// changed addresses.
func (x *expectation) expectProxyUpdates(e *expected) {
	e.addEndpointAddresses()
	for _, c := range e.rec.Calls {
		if c.Call != callProxyUpdate || !row3OnlyIPs(c.IP) {
			continue
		}
		k := proxyName(c.Cluster, c.IP)
		if group := e.row16SameProxy(c); len(group) > 0 && !c.Sometimes {
			e.proxyGroups = append(e.proxyGroups, group)
			continue
		}
		e.proxyUpdates[k] = e.proxyUpdates[k] || !c.Sometimes
	}
	for _, k := range slices.Concat(e.proxyGroups...) {
		e.proxyUpdates[k] = e.proxyUpdates[k] || false
	}
	x.freePods(e)
}

// addEndpointAddresses adds the addresses of endpoints to proxyAddresses.
func (e *expected) addEndpointAddresses() {
	for _, index := range []indexState{e.before, e.all.after} {
		for _, shards := range index {
			for _, ep := range slices.Concat(slices.Collect(maps.Values(shards))...) {
				e.proxyAddresses = append(e.proxyAddresses, ep.Addresses)
			}
		}
	}
}

// freePods lets the pods be pushed, or not, that may be endpoints of a service
// whose endpoints are not determined by the recording.
func (x *expectation) freePods(e *expected) {
	for name, addresses := range x.pods {
		for k := range e.free {
			if k.Namespace != name.namespace {
				continue
			}
			for _, a := range addresses {
				n := proxyName(x.scenario.Options.ClusterID, a)
				e.proxyUpdates[n] = false
				e.proxyGroups = slices.DeleteFunc(e.proxyGroups, func(group []string) bool { return slices.Contains(group, n) })
			}
		}
	}
}

// row16SameProxy: the recorded registry found proxies by an endpoint's first address only, and
// pushed them by any former first address. The addresses of one endpoint or pod belong to one
// proxy, so that pushing one of them is enough. It returns the alternatives, none if there are no
// others, and none for a WorkloadEntry's own change.
func (e *expected) row16SameProxy(c call) []string {
	if c.Source == sourceWorkloads {
		return nil
	}
	same := []string{c.IP}
	for n := 0; n < len(same); n++ {
		for _, addresses := range e.proxyAddresses {
			if slices.Contains(addresses, same[n]) {
				same = append(same, without(addresses, same)...)
			}
		}
	}
	if len(same) == 1 {
		return nil
	}
	out := make([]string, len(same))
	for i, ip := range same {
		out[i] = proxyName(c.Cluster, ip)
	}
	return out
}

// proxyName returns the target of a ProxyUpdate, an IP address in canonical spelling.
func proxyName(cluster, ip string) string {
	if a, err := netip.ParseAddr(ip); err == nil {
		ip = a.Unmap().String()
	}
	return cluster + " " + ip
}

// without returns the elements of a list that another one has not.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
}
