// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
)

// Call is a request or a connection as the enforcing server sees it. A zero field is unknown and
// matches nothing. A Call is not safe for concurrent use.
type Call struct {
	// Identity is the name in the client's certificate, such as
	// "spiffe://DOMAIN/ns/NAMESPACE/sa/ACCOUNT".
	Identity string
	// Method, Authority and Path belong to a request. Path may have a query.
	Method, Authority, Path string
	// Headers contains the headers by lower-case name.
	Headers map[string]string
	// Direct is the source address of the connection, Remote the client's address, Destination the
	// address of the connection at the enforcing server, and Port its port there.
	Direct, Remote, Destination netip.Addr
	Port                        uint32
	// ServerName is the SNI of the TLS handshake.
	ServerName string
	// Metadata contains the dynamic metadata by the name of the filter.
	Metadata map[string]map[string]any
	// unknown are the unknown attributes that were needed.
	unknown map[string]struct{}
}

// Unknown returns the unknown attributes, such as "source.ip", that rules have needed, sorted. With
// their values the rules may match differently.
func (c *Call) Unknown() []string { return slices.Sorted(maps.Keys(c.unknown)) }

func (c *Call) lacks(attribute string) {
	if c.unknown == nil {
		c.unknown = make(map[string]struct{})
	}
	c.unknown[attribute] = struct{}{}
}

// Note sets dynamic metadata for later filters.
func (c *Call) Note(filter, key string, value any) {
	if c.Metadata == nil {
		c.Metadata = make(map[string]map[string]any)
	}
	if c.Metadata[filter] == nil {
		c.Metadata[filter] = make(map[string]any)
	}
	c.Metadata[filter][key] = value
}

// Match returns the name of the first policy, by name, that matches the call, like Envoy. It
// returns "" if no policy matches.
func (c *Call) Match(rules *rbacv3.RBAC) string {
	for _, name := range slices.Sorted(maps.Keys(rules.GetPolicies())) {
		p := rules.GetPolicies()[name]
		if slices.ContainsFunc(p.GetPermissions(), c.permission) && slices.ContainsFunc(p.GetPrincipals(), c.principal) {
			return name
		}
	}
	return ""
}

func (c *Call) permission(p *rbacv3.Permission) bool {
	switch m := p.GetRule().(type) {
	case *rbacv3.Permission_Any:
		return m.Any
	case *rbacv3.Permission_AndRules:
		return all(m.AndRules.GetRules(), c.permission)
	case *rbacv3.Permission_OrRules:
		return slices.ContainsFunc(m.OrRules.GetRules(), c.permission)
	case *rbacv3.Permission_NotRule:
		return !c.permission(m.NotRule)
	case *rbacv3.Permission_Header:
		return c.header(m.Header)
	case *rbacv3.Permission_UrlPath:
		return matchesText(m.UrlPath.GetPath(), c.path())
	case *rbacv3.Permission_UriTemplate:
		return matchesTemplate(m.UriTemplate.GetTypedConfig(), c.path())
	case *rbacv3.Permission_DestinationIp:
		return c.InRange(m.DestinationIp, c.Destination, "destination.ip")
	case *rbacv3.Permission_DestinationPort:
		return m.DestinationPort == c.Port
	case *rbacv3.Permission_RequestedServerName:
		return matchesText(m.RequestedServerName, c.ServerName)
	case *rbacv3.Permission_SourcedMetadata:
		return c.HasMetadata(m.SourcedMetadata.GetMetadataMatcher())
	default: // Permission_Metadata, which is always absent in gRPC servers
		return false
	}
}

func (c *Call) principal(p *rbacv3.Principal) bool {
	switch m := p.GetIdentifier().(type) {
	case *rbacv3.Principal_Any:
		return m.Any
	case *rbacv3.Principal_AndIds:
		return all(m.AndIds.GetIds(), c.principal)
	case *rbacv3.Principal_OrIds:
		return slices.ContainsFunc(m.OrIds.GetIds(), c.principal)
	case *rbacv3.Principal_NotId:
		return !c.principal(m.NotId)
	case *rbacv3.Principal_Authenticated_:
		return c.Identity != "" && matchesText(m.Authenticated.GetPrincipalName(), c.Identity)
	case *rbacv3.Principal_DirectRemoteIp:
		return c.InRange(m.DirectRemoteIp, c.Direct, "source.ip")
	case *rbacv3.Principal_RemoteIp:
		return c.InRange(m.RemoteIp, c.Remote, "remote.ip")
	case *rbacv3.Principal_Header:
		return c.header(m.Header)
	case *rbacv3.Principal_SourcedMetadata:
		return c.HasMetadata(m.SourcedMetadata.GetMetadataMatcher())
	default: // Principal_Metadata, which is always absent in gRPC servers
		return false
	}
}

func all[M any](list []M, matches func(M) bool) bool {
	return !slices.ContainsFunc(list, func(m M) bool { return !matches(m) })
}

// path returns the path without the query.
func (c *Call) path() string {
	if end := strings.IndexAny(c.Path, "?#"); end >= 0 {
		return c.Path[:end]
	}
	return c.Path
}

// InRange reports whether an address is in a range; attribute is the address's name in policies.
func (c *Call) InRange(r *core.CidrRange, a netip.Addr, attribute string) bool {
	if !a.IsValid() {
		c.lacks(attribute)
		return false
	}
	first, err := netip.ParseAddr(r.GetAddressPrefix())
	return err == nil && netip.PrefixFrom(first, int(r.GetPrefixLen().GetValue())).Contains(a.Unmap())
}
