// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"maps"
	"net/netip"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// Labels of a workload's topology. Every proxy has them.
const (
	regionLabel  = "topology.kubernetes.io/region"
	zoneLabel    = "topology.kubernetes.io/zone"
	subzoneLabel = "topology.istio.io/subzone"
	networkLabel = "topology.istio.io/network"
	clusterLabel = "topology.istio.io/cluster"
)

// group contains the properties of a proxy that influence its resources, apart from those in its
// view. It is comparable. All proxies with the same view and group have the same resources.
type group struct {
	router bool
	// labels are the labels that some policy uses, as "key=value", sorted by key and separated by
	// NUL bytes.
	labels            string
	locality, network string
	// addresses are the unspecified addresses of the proxy's IP families, separated by commas.
	addresses string
	// config is the proxy's own ProxyConfig, see proxyConfigOf.
	config string
	// targets are the target ports of a router, as "port=target", separated by commas.
	targets string
	// server lists the addresses of a gRPC client that may be a server, separated by commas. Each
	// such client is a group of its own, because its listeners are found by its addresses.
	server string
	// node is set if the gRPC server uses grpc-js.
	node bool
	// services are the services that a router is an endpoint of, separated by commas.
	services string
}

// String describes the group for the JSON of proxies.
func (g group) String() string {
	var out []string
	for _, part := range []struct {
		said bool
		text string
	}{
		{g.router, "router"},
		{g.labels != "", "labels " + strings.ReplaceAll(g.labels, "\x00", ",")},
		{g.locality != "", "locality " + g.locality},
		{g.network != "", "network " + g.network},
		{g.addresses != "", "addresses " + g.addresses},
		{g.targets != "", "targets " + g.targets},
		{g.server != "", "server " + g.server},
		{g.node, "grpc-js"},
		{g.services != "", "services " + g.services},
		{g.config != "", "a ProxyConfig of its own"},
	} {
		if part.said {
			out = append(out, part.text)
		}
	}
	return strings.Join(out, "; ")
}

// Group implements ads.Provider.
func (p *Policies) Group(node *core.Node, proxy *registry.Proxy) any {
	g := group{router: strings.HasPrefix(node.GetId(), "router~"), network: proxy.Network, config: proxyConfigOf(node)}
	labels, locality := topology(proxy)
	g.locality = locality
	keys := *p.keys.Load()
	maps.DeleteFunc(labels, func(key, _ string) bool {
		_, used := keys[key]
		return !used
	})
	g.labels = strings.TrimSuffix(objects.JoinLabels(labels), "\x00")
	g.addresses = strings.Join(familiesOf(proxy.IPAddresses), ",")
	if !g.router && ads.ClientOf(node) != envoy.ForGRPC {
		return g
	}
	switch there := p.places.Of(proxy.Namespace, proxy.IPAddresses, g.router); {
	case g.router:
		g.targets, g.services = there.Ports.String(), strings.Join(there.Services, ",")
	case len(there.Services) > 0:
		g.server = strings.Join(there.Addresses, ",")
		g.node = strings.HasPrefix(node.GetUserAgentName(), "gRPC Node")
	}
	return g
}

// topology returns the labels of a proxy, completed with topology labels, and its locality. Region
// or zone labels override the locality of the proxy (Istio 1.30).
func topology(proxy *registry.Proxy) (registry.Labels, string) {
	labels := make(registry.Labels, len(proxy.Labels)+5)
	maps.Copy(labels, proxy.Labels)
	locality := proxy.Locality
	if labels[regionLabel] != "" || labels[zoneLabel] != "" {
		locality = strings.TrimRight(labels[regionLabel]+"/"+labels[zoneLabel]+"/"+labels[subzoneLabel], "/")
	}
	parts := append(strings.Split(locality, "/"), "", "")
	for key, value := range map[string]string{
		regionLabel: parts[0], zoneLabel: parts[1], subzoneLabel: parts[2],
		networkLabel: proxy.Network, clusterLabel: string(proxy.ClusterID),
	} {
		if value != "" && labels[key] == "" {
			labels[key] = value
		}
	}
	return labels, locality
}

// familiesOf returns the unspecified address of each IP family.
func familiesOf(addresses []string) []string {
	four, six := false, false
	for _, a := range addresses {
		if parsed, err := netip.ParseAddr(a); err == nil {
			four, six = four || parsed.Unmap().Is4(), six || !parsed.Unmap().Is4()
		}
	}
	var out []string
	if four {
		out = append(out, "0.0.0.0")
	}
	if six {
		out = append(out, "::")
	}
	return out
}

// proxyOf returns the proxy that stands for all proxies of a view.
func proxyOf(v ads.View) *proxy {
	g, _ := v.Policy.(group)
	p := &proxy{
		Proxy: objects.Proxy{Namespace: v.Namespace, Labels: make(registry.Labels)}, cluster: v.Cluster, locality: g.locality, network: g.network,
		allocated: v.Addresses.Allocated, config: parseProxyConfig(g.config),
	}
	switch {
	case g.router:
		p.Role = objects.Router
	case v.Client == envoy.ForGRPC:
		p.Role = objects.GRPCClient
	default:
		p.Role = objects.SidecarProxy
	}
	if g.labels != "" {
		for pair := range strings.SplitSeq(g.labels, "\x00") {
			key, value, _ := strings.Cut(pair, "=")
			p.Labels[key] = value
		}
	}
	p.targetPorts = mesh.ParseTargetPorts(g.targets)
	if g.server != "" {
		p.server, p.node = strings.Split(g.server, ","), g.node
	}
	if g.services != "" {
		p.Services = strings.Split(g.services, ",")
	}
	if g.addresses != "" {
		p.addresses = strings.Split(g.addresses, ",")
	}
	p.registered = p.registryProxy()
	return p
}
