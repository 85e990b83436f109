// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"cmp"
	"maps"
	"net"
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// isManaged reports whether the Service of a Gateway is created for it, which is the case unless
// the Gateway has addresses of type Hostname.
func isManaged(o *gatewayv1.Gateway) bool {
	return !slices.ContainsFunc(o.Spec.Addresses, func(a gatewayv1.GatewaySpecAddress) bool { return !isIP(a) })
}

func isIP(a gatewayv1.GatewaySpecAddress) bool {
	return deref(a.Type, gatewayv1.IPAddressType) == gatewayv1.IPAddressType
}

// defaultName returns the name of the Service and the service account of a managed Gateway.
func defaultName(o *gatewayv1.Gateway) string { return o.Name + "-" + string(o.Spec.GatewayClassName) }

// serviceAccount returns the required service account of a Gateway's proxies, or "" for any.
func serviceAccount(o *gatewayv1.Gateway, managed bool) string {
	if !managed {
		return ""
	}
	return cmp.Or(o.Annotations[annotationSetServiceAccount], defaultName(o))
}

// findServices sets the Services of a Gateway, and reports whether they are created for it.
func (v view) findServices(o *gatewayv1.Gateway, state *gatewayState) (managed bool) {
	if v.c.opts.Provided || isManaged(o) {
		name := cmp.Or(o.Annotations[annotationNameOverride], defaultName(o))
		state.services = []string{v.c.serviceHost(Key{o.Namespace, name})}
		return true
	}
	for _, address := range o.Spec.Addresses {
		if deref(address.Type, gatewayv1.IPAddressType) != gatewayv1.HostnameAddressType {
			state.badAddresses = problem{string(gatewayv1.GatewayReasonUnsupportedAddress), "only addresses of type Hostname are used"}
			continue
		}
		host := address.Value
		if !strings.Contains(host, ".") {
			host = v.c.serviceHost(Key{o.Namespace, host})
		}
		state.services = append(state.services, host)
	}
	return false
}

// reached contains the addresses at which a Gateway's listeners can be reached.
type reached struct {
	external, hosts, cluster []string
	// unusable and unassigned are the reasons for missing addresses.
	unusable, unassigned string
}

// reach looks up the Services of a Gateway. Only Services of its own namespace count.
func (v view) reach(ns string, services []string, ports []int32) reached {
	var r reached
	for _, host := range services {
		name, ours := strings.CutSuffix(host, "."+ns+".svc."+v.c.opts.Domain)
		var s *service
		key := Key{ns, name}
		if ours {
			s = v.service(key)
		}
		if s == nil {
			r.unusable = "Service " + host + " does not exist"
			continue
		}
		v.reachPorts(&r, key, s, host, ports)
	}
	return r
}

func (v view) reachPorts(r *reached, key Key, s *service, host string, ports []int32) {
	endpoints := v.endpointPorts(key)
	found := false
	for _, port := range ports {
		name, has := s.ports[port]
		switch {
		case !has:
			r.unusable = "Service " + host + " has not all ports of the listeners"
		case !endpoints[name]:
			r.unassigned = "Service " + host + " has no endpoints"
		default:
			found = true
		}
	}
	switch {
	case !found:
	case len(s.external) > 0:
		r.external = append(r.external, s.external...)
	case s.loadBalancer:
		r.unassigned = "Service " + host + " has no address yet"
	default:
		r.hosts = append(r.hosts, host)
		r.cluster = append(r.cluster, s.addresses...)
	}
}

// problem returns the reason why Programmed is not true.
func (r reached) problem(services []string) problem {
	switch {
	case len(services) == 0:
		return problem{string(gatewayv1.GatewayReasonUnsupportedAddress), "there is no address that can be used"}
	case r.unusable != "":
		return problem{string(gatewayv1.GatewayReasonAddressNotUsable), r.unusable}
	case r.unassigned != "":
		return problem{string(gatewayv1.GatewayReasonAddressNotAssigned), r.unassigned}
	}
	return problem{}
}

// addresses returns the addresses of the status: the load balancers', or else the cluster's.
func (r reached) addresses(kind string) []gatewayv1.GatewayStatusAddress {
	list := r.external
	if len(list) == 0 {
		list = r.hosts
		if kind == string(gatewayv1.IPAddressType) {
			list = r.cluster
		}
	}
	var out []gatewayv1.GatewayStatusAddress
	seen := map[string]bool{}
	for _, value := range list {
		if seen[value] {
			continue
		}
		seen[value] = true
		of := gatewayv1.HostnameAddressType
		if net.ParseIP(value) != nil {
			of = gatewayv1.IPAddressType
		}
		out = append(out, gatewayv1.GatewayStatusAddress{Type: &of, Value: value})
	}
	return out
}

// portsOf returns the ports of the working listeners, sorted.
func portsOf(listeners []*listener) []int32 {
	ports := map[int32]bool{}
	for _, l := range listeners {
		if l.works() {
			ports[l.view.Port] = true
		}
	}
	return slices.Sorted(maps.Keys(ports))
}
