// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// domainForm says in which forms a virtual host has its domains.
type domainForm uint8

const (
	// bareDomains: without ports. Envoys strip the port of requests.
	bareDomains domainForm = iota
	// bothDomains: with and without the port.
	bothDomains
	// portDomains: with the port only.
	portDomains
)

// domainsOf returns names in a form; addresses of IPv6 are in brackets already.
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

// serviceNames returns the names by which requests of a proxy can mean a service:
// its host name, also with a trailing dot, and the short names that the search list
// of the proxy's resolver completes to it.
func serviceNames(host registry.Hostname, namespace, domain string) (names, short []string) {
	full := string(lower(host))
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

// domainOf returns the domain of a host that canonicalHost has returned.
func domainOf(host registry.Hostname) string {
	if strings.Contains(string(host), ":") {
		if addr, err := netip.ParseAddr(string(host)); err == nil {
			return bracketed(addr)
		}
	}
	return string(host)
}

// withPods returns the names of a headless service, and the wildcards that cover those
// of its pods: "POD.NAME".
func withPods(names []string) []string {
	out := slices.Clone(names)
	for _, n := range names {
		out = append(out, "*."+n)
	}
	return out
}

// addressesOf returns the addresses of a service that a proxy can call it by, as
// domains. What is not a single address, or stands for none, is left out.
func addressesOf(svc *service, p *proxy) []string {
	var out []string
	for _, s := range svc.of {
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

// caller returns what of the proxy counts for the addresses of services.
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

// bracketed returns an address as the host of a request has it: that of IPv6 is in
// brackets.
func bracketed(addr netip.Addr) string {
	if addr.Is6() {
		return "[" + addr.String() + "]"
	}
	return addr.String()
}
