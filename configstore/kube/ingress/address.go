// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
)

// locate determines the addresses of the gateways, which are the status of all our Ingresses.
func (c *Converter) locate() {
	next := loadBalancer(c.addresses())
	if slices.EqualFunc(c.published.addresses, next, sameAddress) {
		return
	}
	c.touched, c.published.addresses = true, next
	for key := range c.published.ours.All() {
		c.statuses[key] = true
	}
}

func sameAddress(a, b networkingv1.IngressLoadBalancerIngress) bool {
	return a.IP == b.IP && a.Hostname == b.Hostname
}

// addresses returns the addresses of the gateways' Service. If Mesh has no Service, it returns
// those of a node: the node of the first running pod, by name, whose node has external addresses.
func (c *Converter) addresses() []string {
	if c.mesh.Service != "" {
		if s := c.services[Key{c.opts.Namespace, c.mesh.Service}]; s != nil {
			return s.addresses
		}
		return nil
	}
	label := c.mesh.gatewayPods()
	var first string
	var out []string
	for key, p := range c.pods {
		if p.running && p.label == label && len(c.nodes[p.node]) > 0 && (out == nil || key.Name < first) {
			first, out = key.Name, c.nodes[p.node]
		}
	}
	return out
}

// loadBalancer returns the distinct addresses in the form of a status: first IPs, then host names,
// both sorted as texts.
func loadBalancer(addresses []string) []networkingv1.IngressLoadBalancerIngress {
	var out []networkingv1.IngressLoadBalancerIngress
	for _, a := range addresses {
		switch _, err := netip.ParseAddr(a); {
		case a == "":
		case err == nil:
			out = append(out, networkingv1.IngressLoadBalancerIngress{IP: a})
		default:
			out = append(out, networkingv1.IngressLoadBalancerIngress{Hostname: a})
		}
	}
	slices.SortFunc(out, func(a, b networkingv1.IngressLoadBalancerIngress) int {
		return cmp.Or(strings.Compare(a.Hostname, b.Hostname), strings.Compare(a.IP, b.IP)) // IPs have no host name
	})
	return slices.CompactFunc(out, sameAddress)
}
