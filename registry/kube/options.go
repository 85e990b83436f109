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
	// ClusterID is the cluster that is read: that of the shard, of the endpoints and
	// of the proxies. The default is the empty name.
	ClusterID registry.ClusterID

	// DomainSuffix ends the host names of services: "name.namespace.svc.suffix". The
	// default is "cluster.local".
	DomainSuffix string

	// SystemNamespace is the namespace whose label topology.istio.io/network is the
	// network of the cluster. The default is "istio-system".
	SystemNamespace string

	// Mesh is the initial state of the mesh; UpdateMesh replaces it. The zero value
	// has the trust domain "cluster.local", watches all namespaces and knows no
	// networks.
	Mesh Mesh

	// DualStack: an endpoint of a pod with several addresses has all of them, if its
	// service has several addresses, too, and so has the workload that handlers get.
	// The default is the first address only.
	DualStack bool

	// FindProxiesByAddress: a proxy whose ID names no pod that exists is looked up by
	// its addresses. The default is to trust only its ID, and else its own labels and
	// ports.
	FindProxiesByAddress bool

	// Optional are kinds of objects that the API server may refuse, as SourceError.Kind
	// names them: one that it forbids, or does not know, counts as listed, without
	// objects. The default is none: HasSynced waits until everything may be read, so that
	// a program that starts before its rights do does not take an empty mesh for the whole.
	Optional []string

	// MaxBackoff is the longest time between two attempts to reach the API server; the
	// first follow faster, and each is late by up to half of its time, by chance. The
	// default is 5 seconds.
	MaxBackoff time.Duration

	// Logger gets what an operator can fix, and an error for each function of the program
	// that panicked, with the stack. The default is nil: nothing is logged. Nothing goes to
	// klog, but for client-go's traces of lists that take longer than ten seconds, in a
	// program that has set the verbosity of klog to 2 or more.
	Logger *slog.Logger
}

// Mesh is what a registry needs to know of the mesh.
type Mesh struct {
	// TrustDomain is the first part of every identity. Empty means "cluster.local".
	TrustDomain string

	// DiscoverySelectors say which namespaces are watched: those whose labels one of
	// them matches. None at all means every namespace, known or not. A selector that
	// is not valid matches nothing.
	DiscoverySelectors []metav1.LabelSelector

	// Networks are those that are not named by labels, in any order.
	Networks []Network
}

// Network is a part of the mesh whose addresses the others reach through gateways
// only.
type Network struct {
	// Name is unique.
	Name string
	// Registries are clusters, and Ranges are addresses, that are part of the network.
	// Of several ranges that contain an address the smallest one counts, of equal ones
	// that of the first network by name; likewise the first of several networks that
	// claim a cluster.
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

// mesh is a Mesh as one cluster uses it.
type mesh struct {
	trustDomain string
	selectors   []labels.Selector // nil: every namespace
	// network is that of the cluster by Mesh.Networks; "" if none claims it.
	network string
	// ranges are sorted: of those that contain an address the first counts.
	ranges []networkRange
	// gateways are the ports of services that are gateways.
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

// selects reports whether a namespace is watched; labels are nil if it is not
// known.
func (m *mesh) selects(known bool, namespaceLabels registry.Labels) bool {
	if m.selectors == nil {
		return true
	}
	return known && slices.ContainsFunc(m.selectors, func(s labels.Selector) bool {
		return s.Matches(labels.Set(namespaceLabels))
	})
}

// networkAt returns the network of an address by the ranges; "" if none has it.
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
