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

// Call is a request or a connection, as those see it that enforce rules. What is zero is not known, and
// matches nothing. It is for one goroutine.
type Call struct {
	// Identity is the name in the certificate of the client, such as "spiffe://DOMAIN/ns/NAMESPACE/sa/ACCOUNT".
	Identity string
	// Method, Authority and Path are a request's. Path may have a query.
	Method, Authority, Path string
	// Headers are by name in lower case.
	Headers map[string]string
	// Direct is the address that the connection comes from, Remote that of the client, Destination that of the
	// connection at who enforces the rules, and Port its port there.
	Direct, Remote, Destination netip.Addr
	Port                        uint32
	// ServerName is that of the TLS handshake.
	ServerName string
	// Metadata is what filters have found out, by their names.
	Metadata map[string]map[string]any
	// unknown are the attributes that were looked at and are not known.
	unknown map[string]struct{}
}

// Unknown returns the attributes, such as "source.ip", that were looked at and are not known, sorted: with
// them rules may match otherwise.
func (c *Call) Unknown() []string { return slices.Sorted(maps.Keys(c.unknown)) }

func (c *Call) lacks(attribute string) {
	if c.unknown == nil {
		c.unknown = make(map[string]struct{})
	}
	c.unknown[attribute] = struct{}{}
}

// Note has filters that come later know what one has found out.
func (c *Call) Note(filter, key string, value any) {
	if c.Metadata == nil {
		c.Metadata = make(map[string]map[string]any)
	}
	if c.Metadata[filter] == nil {
		c.Metadata[filter] = make(map[string]any)
	}
	c.Metadata[filter][key] = value
}

// Match returns the name of the policy of some rules that matches the call, the first by name, which is the one that
// Envoy names; "": none does.
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
	default: // Permission_Metadata, which gRPC servers have nothing for
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
	default: // Principal_Metadata, which gRPC servers have nothing for
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

// InRange reports whether an address is in a range; attribute is what policies call it.
func (c *Call) InRange(r *core.CidrRange, a netip.Addr, attribute string) bool {
	if !a.IsValid() {
		c.lacks(attribute)
		return false
	}
	first, err := netip.ParseAddr(r.GetAddressPrefix())
	return err == nil && netip.PrefixFrom(first, int(r.GetPrefixLen().GetValue())).Contains(a.Unmap())
}
