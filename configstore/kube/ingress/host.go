// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"cmp"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// semanticsAnnotation selects how a VirtualService matches paths.
const (
	semanticsAnnotation = "internal.istio.io/route-semantics"
	ingressSemantics    = "ingress"
)

// serve recomputes the VirtualService of a host.
func (c *Converter) serve(host string) {
	key, config := c.virtualService(host)
	old, existed := c.served[host]
	if existed && (config == nil || old != key) {
		c.publish(istio.VirtualService, old, nil)
	}
	put(c.served, host, key, config != nil)
	if config != nil {
		c.publish(istio.VirtualService, key, config)
	}
}

// virtualService returns the VirtualService of a host and its key, or nil without routes.
func (c *Converter) virtualService(host string) (Key, *configstore.Config) {
	sharers := make([]*ingress, 0, len(c.hosts[host]))
	for key := range c.hosts[host] {
		sharers = append(sharers, c.ingresses[key])
	}
	slices.SortFunc(sharers, byAge)
	spec := &networking.VirtualService{Hosts: []string{host}}
	var routes []route
	for _, i := range sharers {
		spec.Gateways = append(spec.Gateways, c.gatewayKey(i.key).String())
		routes = append(routes, i.hosts[host]...)
	}
	if len(routes) == 0 {
		return Key{}, nil
	}
	slices.SortStableFunc(routes, route.compare)
	for _, r := range routes {
		spec.Http = append(spec.Http, r.rule)
	}
	key := virtualServiceKey(host, sharers[0].key)
	config := c.config(istio.VirtualService, key, rankOf(host))
	config.Annotations, config.Spec = map[string]string{semanticsAnnotation: ingressSemantics}, spec
	return key, config
}

// maxHost is the maximum length of a host name.
const maxHost = 253

// rankOf orders hosts that may match the same request: first hosts without a wildcard, then longer
// ones.
func rankOf(host string) int64 {
	if !strings.HasPrefix(host, "*") {
		return 0
	}
	return int64(max(1, maxHost+1-len(host)))
}

// byAge orders Ingresses: the oldest first, then by name, then by namespace.
func byAge(a, b *ingress) int {
	return cmp.Or(
		a.object.CreationTimestamp.Compare(b.object.CreationTimestamp.Time),
		strings.Compare(a.key.Name, b.key.Name),
		strings.Compare(a.key.Namespace, b.key.Namespace),
	)
}
