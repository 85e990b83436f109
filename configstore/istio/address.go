// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"net/netip"
	"strings"

	"github.com/pilotkit/pilotkit/internal/ipaddr"
)

// unixScheme starts the addresses of Unix domain sockets.
const unixScheme = "unix://"

// maxUnixPathLength is what Linux has room for in an address (sun_path) with its
// end. Envoy refuses the whole assignment of a cluster over a longer one.
const maxUnixPathLength = 107

// addressKey is equal for all spellings of one IP address or CIDR block. Other texts are equal only
// to themselves.
type addressKey struct {
	block netip.Prefix
	text  string
}

func addressKeyOf(s string) addressKey {
	if block, ok := ipaddr.ParseBlock(s); ok {
		return addressKey{block: block}
	}
	return addressKey{text: s}
}

// hostKey is equal for the spellings of one host: Envoy compares names without
// regard to case, and refuses a route configuration that has one twice.
func hostKey(host string) string {
	if strings.IndexByte(host, ':') >= 0 {
		return ipaddr.Canonical(host)
	}
	return strings.ToLower(host)
}

func isIP(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

// checkIP rejects strings that are not IP addresses.
func checkIP(at *field, s string) {
	if !isIP(s) {
		at.refuse("must be an IP address, is %q", s)
	}
}

// checkIPOrFQDN rejects strings that are neither IP addresses nor domain names.
func checkIPOrFQDN(at *field, s string) {
	if !isIP(s) && !isFQDN(s) {
		at.refuse("must be an IP address or a domain name, is %q", s)
	}
}

// isSubnet reports whether s is an IP address or, with a slash, a CIDR block.
func isSubnet(s string) bool {
	if strings.IndexByte(s, '/') < 0 {
		return isIP(s)
	}
	_, err := netip.ParsePrefix(s)
	return err == nil
}

// checkSubnet rejects strings that are neither IP addresses nor CIDR blocks.
func checkSubnet(at *field, s string) {
	if !isSubnet(s) {
		at.refuse("must be an IP address or a CIDR block, is %q", s)
	}
}

// checkUnixPath rejects paths that cannot be those of a Unix domain socket. The path is given
// without its scheme: an absolute path of a file, or "@name" in Linux' abstract namespace.
func checkUnixPath(at *field, path string) {
	switch {
	case path == "":
		at.refuse("must name a unix domain socket after %q", unixScheme)
	case len(path) > maxUnixPathLength:
		at.refuse("must be a unix domain socket path of at most %d bytes, has %d", maxUnixPathLength, len(path))
	case path[0] == '@':
	case path[0] != '/':
		at.refuse("must be an absolute unix domain socket path or @name, is %q", path)
	case strings.HasSuffix(path, "/"):
		at.refuse("must be a unix domain socket, not a directory, is %q", path)
	}
}
