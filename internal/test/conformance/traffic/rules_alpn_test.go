// SPDX-License-Identifier: Apache-2.0

package traffic

import "slices"

// t69: mutual TLS of the mesh offers HTTP/1.1 besides Istio's names where that is what
// connections speak, or TCP may carry.
func (c *comparison) t69() {
	if c.isGRPC() {
		return
	}
	for _, r := range c.got[clusters] {
		each(r, func(o tree) {
			if names := texts(o, "alpnProtocols"); slices.Equal(names, []string{"istio-peer-exchange", "istio", "http/1.1"}) {
				setTexts(o, "alpnProtocols", names[:2])
			}
		})
	}
}

// t71: gateways take the dot at the end of a host away.
func (c *comparison) t71() {
	for _, r := range c.got[listeners] {
		each(r, func(o tree) { delete(o, "stripTrailingHostDot") })
	}
}

// t76: clients of gateways have a time for the headers of a request.
func (c *comparison) t76() {
	for _, r := range c.got[listeners] {
		each(r, func(o tree) {
			if o["requestHeadersTimeout"] == "15s" {
				delete(o, "requestHeadersTimeout")
			}
		})
	}
}
