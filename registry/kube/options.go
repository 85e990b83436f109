// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/kube/internal/reach"
)

// Options configure a Controller. The zero value works.
type Options struct {
	// ClusterID is the cluster of the shard, of the endpoints and of the proxies. The default is
	// the empty name.
	ClusterID registry.ClusterID

	// DomainSuffix is the suffix of the host names of services: "name.namespace.svc.suffix". The
	// default is "cluster.local".
	DomainSuffix string

	// SystemNamespace is the namespace whose label topology.istio.io/network is the network of the
	// cluster. The default is "istio-system".
	SystemNamespace string

	// Mesh is the initial state of the mesh; UpdateMesh replaces it. The zero value has the trust
	// domain "cluster.local", watches all namespaces and has no networks.
	Mesh Mesh

	// DualStack gives an endpoint all addresses of its pod, if its service has several addresses,
	// too, and gives handlers the workload with all addresses. By default they have only the first
	// address.
	DualStack bool

	// FindProxiesByAddress looks up a proxy by its addresses if its ID does not name an existing
	// pod. By default only the ID is trusted, and otherwise the proxy's own labels and ports are
	// used.
	FindProxiesByAddress bool

	// Optional are the kinds of objects, with the names in SourceError.Kind, that the API server
	// may reject. A kind that it forbids, or does not know, counts as listed, without objects. By
	// default HasSynced waits until all kinds may be read. Therefore a host that starts before it
	// is granted access does not mistake an empty mesh for the complete one.
	Optional []string

	// MaxBackoff is the maximum backoff of requests to the API server, before a jitter of up to
	// half of it. The default is 5 seconds.
	MaxBackoff time.Duration

	// Logger receives problems that an operator can fix, and an error for each panic of a function
	// of the host, with the stack. Nil discards. klog is not used, with one exception: client-go's
	// traces of lists that take longer than ten seconds, in a host that has set the verbosity of
	// klog to 2 or more.
	Logger *slog.Logger
}

// Mesh is the part of the mesh's configuration that a registry needs.
type Mesh struct {
	// TrustDomain is the first part of every identity. Empty means "cluster.local".
	TrustDomain string

	// DiscoverySelectors select the watched namespaces by their labels; one match is enough.
	// Without selectors every namespace is watched, even if its object is missing. An invalid
	// selector matches nothing.
	DiscoverySelectors []metav1.LabelSelector

	// Networks are the networks that are not defined by labels, in any order.
	Networks []Network
}

// Network is a part of the mesh. Other networks reach its addresses only through gateways.
type Network struct {
	// Name is unique.
	Name string
	// Registries are the clusters, and Ranges the addresses, of the network. Of several ranges that
	// contain an address the smallest one wins, of equal ones that of the first network by name. Of
	// several networks with the same cluster the first one wins, too.
	Registries []registry.ClusterID
	Ranges     []netip.Prefix
	// Gateways are services of the clusters in Registries.
	Gateways []NetworkGatewayService
}

// NetworkGatewayService is a service whose external addresses are gateways.
type NetworkGatewayService struct {
	Hostname registry.Hostname
	// Port is the number of the service port.
	Port uint32
}

func (o Options) withDefaults() Options {
	if o.DomainSuffix == "" {
		o.DomainSuffix = "cluster.local"
	}
	if o.SystemNamespace == "" {
		o.SystemNamespace = "istio-system"
	}
	if o.MaxBackoff <= 0 {
		o.MaxBackoff = reach.DefaultMaxBackoff
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// mesh is a Mesh, prepared for one cluster.
type mesh struct {
	trustDomain string
	selectors   []labels.Selector // nil selects every namespace
	// network is the cluster's network according to Mesh.Networks, "" if none has the cluster.
	network string
	// ranges are sorted: of the ranges that contain an address, the first wins.
	ranges []networkRange
	// gateways are the gateway ports of services.
	gateways map[registry.Hostname][]registry.NetworkGateway
}

type networkRange struct {
	prefix  netip.Prefix
	network string
}

func newMesh(m Mesh, cluster registry.ClusterID) *mesh {
	out := &mesh{trustDomain: m.TrustDomain, gateways: map[registry.Hostname][]registry.NetworkGateway{}}
	if out.trustDomain == "" {
		out.trustDomain = "cluster.local"
	}
	for i := range m.DiscoverySelectors {
		s, err := metav1.LabelSelectorAsSelector(&m.DiscoverySelectors[i])
		if err != nil {
			s = labels.Nothing()
		}
		out.selectors = append(out.selectors, s)
	}
	networks := slices.SortedFunc(slices.Values(m.Networks), func(a, b Network) int { return strings.Compare(a.Name, b.Name) })
	for _, n := range networks {
		out.addNetwork(n, cluster)
	}
	slices.SortStableFunc(out.ranges, func(a, b networkRange) int { return b.prefix.Bits() - a.prefix.Bits() })
	return out
}

func (m *mesh) addNetwork(n Network, cluster registry.ClusterID) {
	for _, p := range n.Ranges {
		m.ranges = append(m.ranges, networkRange{p.Masked(), n.Name})
	}
	if !slices.Contains(n.Registries, cluster) {
		return
	}
	if m.network == "" {
		m.network = n.Name
	}
	for _, g := range n.Gateways {
		m.gateways[g.Hostname] = append(m.gateways[g.Hostname], registry.NetworkGateway{
			Network: n.Name, Cluster: cluster, Port: g.Port,
		})
	}
}

// selects reports whether a namespace is watched. Labels are nil if its object is missing.
func (m *mesh) selects(known bool, namespaceLabels registry.Labels) bool {
	if m.selectors == nil {
		return true
	}
	return known && slices.ContainsFunc(m.selectors, func(s labels.Selector) bool {
		return s.Matches(labels.Set(namespaceLabels))
	})
}

// networkAt returns the network of an address according to the ranges, "" if no range contains it.
func (m *mesh) networkAt(address string) string {
	if len(m.ranges) == 0 {
		return ""
	}
	a, err := netip.ParseAddr(address)
	if err != nil {
		return ""
	}
	for _, r := range m.ranges {
		if r.prefix.Contains(a) {
			return r.network
		}
	}
	return ""
}
