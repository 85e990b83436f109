// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pilotkit/pilotkit/internal/ipaddr"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// choose returns the endpoints to send to the proxy, in the order of CompareEndpoints, without
// duplicate addresses. If names is set, host names are valid addresses, as in the cluster of a DNS
// service.
func (u *Upstream) choose(names bool) []*registry.Endpoint {
	var out []*registry.Endpoint
	for _, e := range u.Endpoints {
		if u.sends(e) && len(addresses(e, names)) > 0 {
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, registry.CompareEndpoints)
	return dedupe(out, func(e *registry.Endpoint) *registry.Endpoint { return e }, names)
}

// sends reports whether the proxy may be sent an endpoint.
func (u *Upstream) sends(e *registry.Endpoint) bool {
	switch {
	case !Serves(e, u.Port), !sent(e), u.Client == envoy.ForGRPC && IsUnix(e):
		return false
	case len(u.Labels) > 0 && !u.Labels.SubsetOf(e.Attributes().Labels):
		return false
	case u.Proxy != nil && !e.VisibleTo(u.Proxy.ClusterID):
		return false
	default:
		return !u.AutoPassthrough || u.mutualTLS(e)
	}
}

// preference orders endpoints by health, from 0 for the best to 2.
func preference(e *registry.Endpoint) int {
	switch e.HealthStatus {
	case registry.HealthUnset, registry.Healthy:
		return 0
	case registry.Draining, registry.Terminating:
		return 1
	default:
		return 2
	}
}

// claim marks all addresses of an endpoint as taken and returns true, or returns false if one
// already is.
func claim(taken map[string]struct{}, e *registry.Endpoint, names bool) bool {
	keys := addressKeys(e, names)
	for i, k := range keys {
		if _, ok := taken[k]; ok || slices.Contains(keys[:i], k) {
			return false
		}
	}
	for _, k := range keys {
		taken[k] = struct{}{}
	}
	return true
}

// addressKeys returns a key for each address. Addresses that clients treat as equal have equal
// keys.
func addressKeys(e *registry.Endpoint, names bool) []string {
	var keys []string
	for _, a := range addresses(e, names) {
		if a.GetPipe() != nil {
			keys = append(keys, a.GetPipe().GetPath())
			continue
		}
		host := a.GetSocketAddress().GetAddress()
		host = strings.ToLower(ipaddr.Canonical(host))
		keys = append(keys, host+"|"+strconv.FormatUint(uint64(a.GetSocketAddress().GetPortValue()), 10))
	}
	return keys
}
