// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/services"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// View is what decides which resources a proxy is sent. Proxies with the same
// view share everything. It is comparable. Its JSON has the client as a word, and Group and
// Policy as text; for more than fmt.Sprint they have a method String.
type View struct {
	// Namespace is where the proxy runs: it limits the services that are visible.
	Namespace string
	// Cluster is where the proxy runs: it limits the endpoints that are visible.
	Cluster registry.ClusterID
	// Addresses says which addresses of services the proxy can use.
	Addresses Addresses
	// Client is the kind of the proxy.
	Client envoy.Client
	// Group is what Options.Group made of the proxy; nil without it. Built-in
	// resources do not depend on it; generators and customizers may.
	Group any
	// Policy is what Provider.Group made of the proxy: each provider is given views with
	// what it made itself, and everybody else with what the first one of
	// Options.Providers made, and has that of another one by SeenBy. Nil without a provider.
	// Built-in resources do not depend on it.
	Policy any
	// policies are what each of several providers made, a policy; nil with one provider.
	policies any
}

// String returns what a reader of logs and errors knows a view by, such as `namespace
// "shop", cluster "east", Envoy, group gold`; what is empty, and what providers made of the
// proxy, is left out. Proxies say their namespaces themselves: long texts are cut.
func (v View) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "namespace %q, ", excerpt.Cut(v.Namespace))
	if v.Cluster != "" {
		fmt.Fprintf(&out, "cluster %q, ", excerpt.Cut(string(v.Cluster)))
	}
	out.WriteString(v.Client.String())
	if v.Group != nil {
		out.WriteString(", group " + textOf(v.Group))
	}
	return out.String()
}

// viewJSON is the JSON of a View.
type viewJSON struct {
	Namespace string             `json:"namespace"`
	Cluster   registry.ClusterID `json:"cluster,omitempty"`
	Addresses addressesJSON      `json:"addresses"`
	Client    string             `json:"client"`
	Group     string             `json:"group,omitempty"`
	Policy    string             `json:"policy,omitempty"`
}

type addressesJSON struct {
	IPv4      bool `json:"ipv4"`
	IPv6      bool `json:"ipv6"`
	Allocated bool `json:"allocated"`
}

// MarshalJSON implements json.Marshaler. Group and Policy may be any values, of which some
// have no JSON and others would fail for all that is beside them, so that they are text.
func (v View) MarshalJSON() ([]byte, error) {
	return json.Marshal(viewJSON{
		Namespace: v.Namespace, Cluster: v.Cluster, Addresses: addressesJSON(v.Addresses),
		Client: v.Client.String(), Group: textOf(v.Group), Policy: textOf(v.Policy),
	})
}

// textOf returns the text of a value, "" for nil.
func textOf(v any) string {
	if v == nil {
		return ""
	}
	return excerpt.Cut(fmt.Sprint(v))
}

// Addresses says which addresses of services a proxy can use. It is comparable. The
// zero value is a proxy of which nothing is known.
type Addresses struct {
	// IPv4 and IPv6: the proxy has addresses of this family. Neither: unknown, which
	// counts as both.
	IPv4, IPv6 bool
	// Allocated: the proxy answers the DNS queries of its application with
	// automatically allocated addresses.
	Allocated bool
}

// addressesOf returns what a proxy can use.
func addressesOf(proxy *registry.Proxy) Addresses {
	a := Addresses{Allocated: proxy.DNSCapture && proxy.DNSAutoAllocate}
	for _, text := range proxy.IPAddresses {
		if parsed, err := netip.ParseAddr(text); err == nil {
			four := parsed.Unmap().Is4()
			a.IPv4, a.IPv6 = a.IPv4 || four, a.IPv6 || !four
		}
	}
	return a
}

// ServiceAddresses returns the addresses under which the proxies of the view reach a
// service, by the rules of registry.Service.AddressesFor.
func (v View) ServiceAddresses(svc *registry.Service) []string {
	return v.ofServices().AddressesOf(svc)
}

// ofServices returns what of the view matters to the resources of services.
func (v View) ofServices() services.View {
	return services.View{Namespace: v.Namespace, Cluster: v.Cluster, Client: v.Client, Addresses: services.Addresses(v.Addresses)}
}

// policy is what a provider has made of a proxy; next is that of another one, or nil. It is
// comparable if of is, and so are views.
type policy struct {
	provider string // its name
	of, next any
}

// group sets what the providers make of a proxy.
func (v *View) group(providers []Provider, node *core.Node, proxy *registry.Proxy) {
	for i, p := range providers {
		made := p.Group(node, proxy)
		if i == 0 {
			v.Policy = made
		}
		if len(providers) > 1 {
			v.policies = policy{p.Name(), made, v.policies}
		}
	}
}

// SeenBy returns the view as the provider of a name is given it: with the Policy that this
// one made, whichever the order of Options.Providers. Views that a provider was given, and
// those that a program makes itself, are returned as they are.
func (v View) SeenBy(provider string) View {
	if v.policies == nil {
		return v
	}
	v.Policy = nil
	for next := v.policies; next != nil; next = next.(policy).next {
		if p := next.(policy); p.provider == provider {
			v.Policy = p.of
		}
	}
	v.policies = nil
	return v
}
