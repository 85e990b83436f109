// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// t42: a TLS server that shares a host with an older one is left out, regardless of the namespaces
// of their hosts.
func (c *comparison) t42() {
	if !c.isRouter() {
		return
	}
	for _, l := range c.want[listeners] {
		chains := objects(l, "filterChains")
		slices.SortStableFunc(chains, func(a, b tree) int { return cmp.Compare(c.age(a), c.age(b)) })
		taken := make(map[string]bool)
		var out []tree
		for _, chain := range chains {
			names := texts(object(chain, "filterChainMatch"), "serverNames")
			if len(names) == 0 && chain["transportSocket"] != nil {
				names = []string{"*"}
			}
			if slices.ContainsFunc(names, func(n string) bool { return taken[n] }) {
				continue
			}
			for _, n := range names {
				taken[n] = true
			}
			out = append(out, chain)
		}
		setObjects(l, "filterChains", out)
	}
}

// age returns the position of the server that a filter chain of HTTPS is of, in the
// order of precedence. That of others is not known: they come last.
func (c *comparison) age(chain tree) int {
	found := ""
	each(chain, func(o tree) {
		if n := text(o, "routeConfigName"); n != "" {
			found = n
		}
	})
	i := 0
	for _, config := range c.gateways {
		for _, server := range config.Spec.(*networking.Gateway).GetServers() {
			i++
			prefix := fmt.Sprintf("https.%d.%s.%s.%s", server.GetPort().GetNumber(), server.GetPort().GetName(), config.Name, config.Namespace)
			if strings.HasPrefix(found, prefix) {
				return i
			}
		}
	}
	return math.MaxInt
}

// t45: what TLS offers by ALPN is incidental for servers that are not HTTP.
func (c *comparison) t45() {
	if !c.isRouter() {
		return
	}
	c.both(listeners, func(l tree) {
		for _, chain := range objects(l, "filterChains") {
			isTCP := slices.ContainsFunc(objects(chain, "filters"), func(f tree) bool {
				return strings.HasSuffix(text(f, "name"), "tcp_proxy")
			})
			if isTCP {
				delete(object(object(object(chain, "transportSocket"), "typedConfig"), "commonTlsContext"), "alpnProtocols")
			}
		}
	})
}

// t83t84: names of clients that no authority verifies make Envoy refuse a listener, and servers of
// ISTIO_MUTUAL have the versions and ciphers of their settings.
func (c *comparison) t83t84() {
	for _, l := range c.want[listeners] {
		each(l, func(o tree) {
			if v := object(o, "validationContext"); len(v) == 1 && v["matchSubjectAltNames"] != nil {
				delete(o, "validationContext")
			}
		})
	}
	for _, l := range c.got[listeners] {
		each(l, func(o tree) {
			if list := objects(o, "tlsCertificateSdsSecretConfigs"); len(list) > 0 && text(list[0], "name") == "default" {
				delete(o, "tlsParams")
			}
		})
	}
}
