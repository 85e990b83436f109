// SPDX-License-Identifier: Apache-2.0

package route

import (
	"net/netip"
	"slices"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// call is a request on its way through a filter chain. It belongs to one goroutine.
type call struct {
	Request
	// bare is the normalized path without the query.
	bare string
	// read is set while the filters of requests are evaluated. Before, a connection has no headers.
	read bool
	// identity is the identity of the client for policies.
	identity string
	// metadata is the dynamic metadata by the name of the filter.
	metadata map[string]map[string]any
	// changes are the changes of headers by filters.
	changes []HeaderChange
	unknown []string
}

// setPath sets the path, and the part of it that matches compare.
func (c *call) setPath(path string) {
	c.Path, c.bare = path, path
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		c.bare = path[:i]
	}
}

// header returns the value of a header with a canonical name, or of a pseudo header. Several values
// are joined by commas.
func (c *call) header(name string) (value string, ok bool) {
	if !c.read {
		return "", false
	}
	switch name {
	case ":method":
		return c.Method, true
	case ":authority", "Host":
		return c.Authority, true
	case ":path":
		return c.Path, true
	case ":scheme":
		return c.Scheme, true
	}
	values := c.Headers[name]
	switch len(values) {
	case 0:
		return "", false
	case 1:
		return values[0], true
	default:
		return strings.Join(values, ","), true
	}
}

// lacks records an attribute that is needed and unknown.
func (c *call) lacks(attribute string) {
	if i, found := slices.BinarySearch(c.unknown, attribute); !found {
		c.unknown = slices.Insert(c.unknown, i, attribute)
	}
}

// note sets dynamic metadata for later filters.
func (c *call) note(filter, key string, value any) {
	if c.metadata == nil {
		c.metadata = make(map[string]map[string]any)
	}
	if c.metadata[filter] == nil {
		c.metadata[filter] = make(map[string]any)
	}
	c.metadata[filter][key] = value
}

// prefixOf returns the addresses of a range. An invalid range contains none.
func prefixOf(r *core.CidrRange) netip.Prefix {
	first, err := netip.ParseAddr(r.GetAddressPrefix())
	if err != nil {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(first, int(r.GetPrefixLen().GetValue()))
}

// within reports whether an address is in a range; attribute is its name in policies.
func (c *call) within(p netip.Prefix, a netip.Addr, attribute string) bool {
	if !a.IsValid() {
		c.lacks(attribute)
		return false
	}
	return p.Contains(a)
}
