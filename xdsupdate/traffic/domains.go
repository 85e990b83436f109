// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
)

// domainForm says whether the domains of a virtual host include ports.
type domainForm uint8

const (
	// bareDomains have no ports, because Envoys strip the port of requests.
	bareDomains domainForm = iota
	// bothDomains exist with and without the port.
	bothDomains
	// portDomains always have the port.
	portDomains
)

// domainsOf returns the domains of some names. IPv6 addresses must already be in brackets.
func (f domainForm) domainsOf(names []string, port uint32) []string {
	if f == bareDomains {
		return names
	}
	suffix := ":" + strconv.FormatUint(uint64(port), 10)
	var out []string
	for _, n := range names {
		if f == bothDomains {
			out = append(out, n)
		}
		out = append(out, n+suffix)
	}
	return out
}

// serviceNames returns the names that requests of a proxy can use for a service: its host name with
// and without a trailing dot, and the short names that the search list of the proxy's resolver
// completes.
func serviceNames(host registry.Hostname, namespace, domain string) (names, short []string) {
	full := string(hostname.Lower(host))
	names = []string{full, full + "."}
	name, ok := strings.CutSuffix(full, ".svc."+domain)
	if !ok || name == "" {
		return names, nil
	}
	if label, rest, _ := strings.Cut(name, "."); rest == namespace {
		short = append(short, label)
	}
	return names, append(short, name, name+".svc")
}

// domainOf returns the domain of a host in the form that hostname.Canonical returns.
func domainOf(host registry.Hostname) string {
	if strings.Contains(string(host), ":") {
		if addr, err := netip.ParseAddr(string(host)); err == nil {
			return bracketed(addr)
		}
	}
	return string(host)
}

// withPods returns the names of a headless service, and the wildcards that cover the names of its
// pods, "POD.NAME".
func withPods(names []string) []string {
	out := slices.Clone(names)
	for _, n := range names {
		out = append(out, "*."+n)
	}
	return out
}

// addressesOf returns the addresses of a service that a proxy can call, as domains. Invalid and
// unspecified addresses, and ranges, are left out.
func addressesOf(svc *mesh.Service, p *proxy) []string {
	var out []string
	for _, s := range svc.Of {
		if len(s.ClusterVIPs) == 0 && !p.allocated {
			out = appendAddress(out, s.DefaultAddress) // The usual case.
			continue
		}
		for _, a := range s.AddressesFor(p.caller()) {
			out = appendAddress(out, a)
		}
	}
	return out
}

// caller returns the properties of the proxy that determine the addresses of services.
func (p *proxy) caller() *registry.Proxy {
	return &registry.Proxy{
		ClusterID: p.cluster, IPAddresses: p.addresses, DNSCapture: p.allocated, DNSAutoAllocate: p.allocated,
	}
}

func appendAddress(out []string, a string) []string {
	if a == "" || a == registry.UnspecifiedAddress {
		return out // The usual case, which need not be parsed.
	}
	addr, err := netip.ParseAddr(a)
	if addr = addr.Unmap(); err != nil || addr.IsUnspecified() || addr.Zone() != "" {
		return out
	}
	return append(out, bracketed(addr))
}

// bracketed returns an address as it occurs in the authority of a request. IPv6 addresses are in
// brackets.
func bracketed(addr netip.Addr) string {
	if addr.Is6() {
		return "[" + addr.String() + "]"
	}
	return addr.String()
}
