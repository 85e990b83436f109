// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
)

// t73: a route configuration of a TLS server responds with 421 for hosts of the other filter chains
// of its listener, and has no routes for hosts whose own server has other requirements for client
// certificates. Its own hosts without routes are present if a wildcard of the others covers them.
func (c *comparison) t73() {
	if !c.isRouter() {
		return
	}
	for _, l := range c.got[listeners] {
		owners := chainOwners(l)
		for _, config := range routesOfNames(c.got[routes], owners) {
			keepObjects(config, "virtualHosts", func(vh tree) bool { return !misdirects(vh, name(routes, config), owners) && !unrouted(vh) })
			blackhole(config)
		}
		for _, config := range routesOfNames(c.want[routes], owners) {
			c.withoutGuarded(config, owners)
			blackhole(config)
		}
	}
}

// chainOwners returns the route configuration of each server name of a listener, "" for
// connections that are passed on.
func chainOwners(l tree) map[string]string {
	out := make(map[string]string)
	for _, chain := range objects(l, "filterChains") {
		config := ""
		if names := routesOf(resources{{"filterChains": []any{chain}}}); len(names) > 0 {
			config = names[0]
		}
		names := texts(object(chain, "filterChainMatch"), "serverNames")
		if len(names) == 0 {
			names = []string{"*"}
		}
		for _, n := range names {
			out[n] = config
		}
	}
	return out
}

// routesOfNames are the route configurations of filter chains that terminate TLS.
func routesOfNames(all resources, owners map[string]string) resources {
	var out resources
	for _, config := range all {
		if n := name(routes, config); strings.HasPrefix(n, "https.") && slices.Contains(slices.Collect(maps.Values(owners)), n) {
			out = append(out, config)
		}
	}
	return out
}

// ownerOf returns the route configuration of connections to a host. ok is false if no chain has the
// host.
func ownerOf(owners map[string]string, host string) (string, bool) {
	if owner, ok := owners[host]; ok {
		return owner, true
	}
	for i := range host {
		if owner, ok := owners["*"+host[i:]]; ok {
			return owner, true
		}
	}
	owner, ok := owners["*"]
	return owner, ok
}

// misdirects reports whether a virtual host answers hosts of other chains with 421.
func misdirects(vh tree, config string, owners map[string]string) bool {
	list := objects(vh, "routes")
	if len(list) != 1 || object(list[0], "directResponse")["status"] != float64(http.StatusMisdirectedRequest) {
		return false
	}
	return !slices.ContainsFunc(texts(vh, "domains"), func(d string) bool {
		owner, ok := ownerOf(owners, d)
		return !ok || owner == config
	})
}

// unrouted reports whether a virtual host answers 404 as if it were not there.
func unrouted(vh tree) bool { return len(objects(vh, "routes")) == 0 && vh["requireTls"] == nil }

// blackhole makes a virtual host of a route configuration without any (T49).
func blackhole(config tree) {
	if len(objects(config, "virtualHosts")) == 0 {
		setObjects(config, "virtualHosts", []tree{{"domains": []any{"*"}}})
	}
}

// withoutGuarded removes the hosts of servers that ask clients for certificates otherwise.
func (c *comparison) withoutGuarded(config tree, owners map[string]string) {
	own := c.serverOf(name(routes, config))
	var out []tree
	for _, vh := range objects(config, "virtualHosts") {
		domains := slices.DeleteFunc(texts(vh, "domains"), func(d string) bool {
			owner, ok := ownerOf(owners, d)
			if !ok || owner == name(routes, config) || owner == "" {
				return false
			}
			return guards(c.serverOf(owner), own)
		})
		if setTexts(vh, "domains", domains); len(domains) > 0 {
			out = append(out, vh)
		}
	}
	setObjects(config, "virtualHosts", out)
}

// guards reports whether a server asks clients for certificates otherwise than another.
func guards(server, other *networking.ServerTLSSettings) bool {
	switch server.GetMode() {
	case networking.ServerTLSSettings_MUTUAL, networking.ServerTLSSettings_OPTIONAL_MUTUAL, networking.ServerTLSSettings_ISTIO_MUTUAL:
	default:
		return false
	}
	demands := func(s *networking.ServerTLSSettings) *networking.ServerTLSSettings {
		out := &networking.ServerTLSSettings{
			Mode: s.GetMode(), SubjectAltNames: s.GetSubjectAltNames(), VerifyCertificateSpki: s.GetVerifyCertificateSpki(),
			VerifyCertificateHash: s.GetVerifyCertificateHash(), InsecureSkipVerify: s.GetInsecureSkipVerify(),
			CaCertCredentialName: s.GetCaCertCredentialName(), CaCertificates: s.GetCaCertificates(), CaCrl: s.GetCaCrl(),
		}
		if names := append([]string{s.GetCredentialName()}, s.GetCredentialNames()...); out.CaCertCredentialName == "" {
			out.CredentialNames = slices.DeleteFunc(names, func(n string) bool { return n == "" })
			out.CredentialNames = out.CredentialNames[:min(1, len(out.CredentialNames))]
		}
		return out
	}
	return !proto.Equal(demands(server), demands(other))
}

// serverOf returns the TLS settings of the server with a route configuration.
func (c *comparison) serverOf(routeConfig string) *networking.ServerTLSSettings {
	for _, config := range c.gateways {
		for _, server := range config.Spec.(*networking.Gateway).GetServers() {
			n := fmt.Sprintf("https.%d.%s.%s.%s", server.GetPort().GetNumber(), server.GetPort().GetName(), config.Name, config.Namespace)
			if routeConfig == n || strings.HasPrefix(routeConfig, n+".") {
				return server.GetTls()
			}
		}
	}
	return nil
}
