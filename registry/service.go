// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"maps"
	"slices"
	"time"
)

// UnspecifiedAddress is the DefaultAddress of a service without one.
const UnspecifiedAddress = "0.0.0.0"

// Service is an application that clients call by host name, on one or more ports. One ServiceEntry
// gives one Service for each of its hosts and addresses.
type Service struct {
	Hostname Hostname
	// Ports are in declared order. If there are several, each has a name.
	Ports []*Port
	// DefaultAddress is the virtual IP, UnspecifiedAddress if there is none. It may be a CIDR
	// range.
	DefaultAddress string
	// ClusterVIPs holds the service's addresses by cluster; nil unless the
	// registry reads from clusters with addresses of their own.
	ClusterVIPs map[ClusterID][]string
	// AutoAllocatedIPv4 and AutoAllocatedIPv6 are virtual IPs assigned to a
	// service that declares none; empty if not assigned.
	AutoAllocatedIPv4 string
	AutoAllocatedIPv6 string
	Resolution        Resolution
	// MeshExternal is set if the endpoints are outside the mesh.
	MeshExternal bool
	// ServiceAccounts are the identities (SPIFFE IDs or other subject
	// alternative names) that endpoints may present, in declared order.
	ServiceAccounts []string
	// CreationTime orders services that compete for a host name: the oldest
	// wins. It is not part of Equal.
	CreationTime time.Time
	// ResourceVersion is the resource version of the object behind the service, or an earlier one
	// that gave an equal service. It is not part of Equal.
	ResourceVersion string
	Attributes      ServiceAttributes
}

// ServiceAttributes are the attributes of a service other than its addresses and ports.
type ServiceAttributes struct {
	// Provider is the kind of registry that the service comes from.
	Provider ProviderID
	// Name is the name of the Kubernetes service, or the host of a ServiceEntry.
	Name      string
	Namespace string
	// ObjectName is the name of the object behind the service, for example of
	// the ServiceEntry.
	ObjectName string
	Labels     Labels
	// ExportTo lists the namespaces that may see the service, sorted, without duplicates. Empty
	// means the default, which is every namespace.
	ExportTo []Visibility
	// Visibility is a restriction by the mesh in addition to ExportTo: VisibilityPrivate or
	// VisibilityNone; empty or VisibilityPublic means no restriction.
	Visibility Visibility
	// LabelSelectors selects the workloads behind the service; nil without a selector.
	LabelSelectors Labels
	// PassthroughTargetPorts maps service ports to target ports, for Resolution Passthrough only.
	PassthroughTargetPorts map[uint32]uint32
	// TrafficDistribution is the preference for near endpoints.
	TrafficDistribution TrafficDistribution
	// DNSConnectStrategy is the value of the annotation istio.io/connect-strategy, as Istio 1.30
	// interprets it; empty if not set.
	DNSConnectStrategy string
	// ClusterExternalAddresses has the addresses of the service for clients outside each cluster.
	ClusterExternalAddresses map[ClusterID][]string
	// Kubernetes has the attributes that only a Kubernetes service has; nil for any other.
	Kubernetes *KubernetesAttributes
}

// KubernetesAttributes are the fields of a Kubernetes service without a counterpart elsewhere.
type KubernetesAttributes struct {
	// Type is spec.type: "ClusterIP", "NodePort", "LoadBalancer" or "ExternalName".
	Type string
	// ExternalName is the target host of a service of type ExternalName.
	ExternalName string
	// NodeLocal is set if spec.internalTrafficPolicy is Local, so that clients reach only endpoints
	// on their own node.
	NodeLocal bool
	// PublishNotReadyAddresses is set if endpoints are used even if they are not ready.
	PublishNotReadyAddresses bool
	// ExternalPorts maps service ports to node ports, by cluster. It is nil unless the service is a
	// node port gateway.
	ExternalPorts map[ClusterID]map[uint32]uint32
}

// equal reports whether all fields are equal; nil equals only nil.
func (k *KubernetesAttributes) equal(l *KubernetesAttributes) bool {
	if k == l || k == nil || l == nil {
		return k == l
	}
	return k.Type == l.Type && k.ExternalName == l.ExternalName && k.NodeLocal == l.NodeLocal &&
		k.PublishNotReadyAddresses == l.PublishNotReadyAddresses &&
		maps.EqualFunc(k.ExternalPorts, l.ExternalPorts, maps.Equal[map[uint32]uint32])
}

// TrafficDistribution is a preference for near endpoints.
type TrafficDistribution string

// The preferences of Istio 1.30.
const (
	TrafficDistributionAny            TrafficDistribution = ""
	TrafficDistributionPreferSameZone TrafficDistribution = "PreferSameZone"
	TrafficDistributionPreferSameNode TrafficDistribution = "PreferSameNode"
)

// Port is one port of a service.
type Port struct {
	// Name is unique in the service. It may be empty if the service has only one port.
	Name string
	// Number is the port that clients use, 1–65535.
	Number   uint32
	Protocol Protocol
}

// Resolution is how a proxy finds the endpoints of a service.
type Resolution int

// The resolutions of Istio 1.30.
const (
	// ClientSideLB means that the proxy balances over the endpoints that it is sent.
	ClientSideLB Resolution = iota
	// DNSLB means that the proxy resolves host names and balances over all addresses.
	DNSLB
	// DNSRoundRobinLB means that the proxy resolves one host name and uses one address at a time;
	// there is at most one endpoint per port.
	DNSRoundRobinLB
	// Passthrough means that the proxy connects to the original destination of the connection.
	Passthrough
	// Alias means that the service is another name of a service.
	Alias
	// DynamicDNS means that the host is a wildcard and resolved for each request.
	DynamicDNS
)

// String returns Istio 1.30's name: "ClientSide", "DNS", "DNSRoundRobin",
// "Passthrough", "Alias" or "DynamicDNS".
func (r Resolution) String() string {
	switch r {
	case ClientSideLB:
		return "ClientSide"
	case DNSLB:
		return "DNS"
	case DNSRoundRobinLB:
		return "DNSRoundRobin"
	case Passthrough:
		return "Passthrough"
	case Alias:
		return "Alias"
	case DynamicDNS:
		return "DynamicDNS"
	default:
		return "Resolution(?)"
	}
}

// IsDNS reports whether endpoints are part of the cluster itself, so that a
// change of endpoints changes the cluster: DNSLB and DNSRoundRobinLB.
func (r Resolution) IsDNS() bool { return r == DNSLB || r == DNSRoundRobinLB }

// Key returns "namespace/hostname", or "" for nil.
func (s *Service) Key() string {
	if s == nil {
		return ""
	}
	return s.Attributes.Namespace + "/" + string(s.Hostname)
}

// ResourceName returns "namespace/objectName/hostname/defaultAddress", which is
// unique among the services of ServiceEntries.
func (s *Service) ResourceName() string {
	return s.Attributes.Namespace + "/" + s.Attributes.ObjectName + "/" + string(s.Hostname) + "/" + s.DefaultAddress
}

// Headless reports whether the service is a Kubernetes service without an address of its own.
// Clients call its pods by their addresses and their names, "POD.HOSTNAME".
func (s *Service) Headless() bool {
	return s.Resolution == Passthrough && s.Attributes.Provider == Kubernetes
}

// Port returns the port with a number, or nil.
func (s *Service) Port(number uint32) *Port {
	for _, p := range s.Ports {
		if p.Number == number {
			return p
		}
	}
	return nil
}

// PortByName returns the port with a name, or nil.
func (s *Service) PortByName(name string) *Port {
	for _, p := range s.Ports {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Equal reports whether proxies get the same configuration for both services. It ignores
// CreationTime and ResourceVersion.
func (s *Service) Equal(t *Service) bool {
	if s == t || s == nil || t == nil {
		return s == t
	}
	return s.Hostname == t.Hostname && s.DefaultAddress == t.DefaultAddress &&
		s.Resolution == t.Resolution && s.MeshExternal == t.MeshExternal &&
		s.AutoAllocatedIPv4 == t.AutoAllocatedIPv4 && s.AutoAllocatedIPv6 == t.AutoAllocatedIPv6 &&
		slices.EqualFunc(s.Ports, t.Ports, func(p, q *Port) bool { return p == q || *p == *q }) &&
		slices.Equal(s.ServiceAccounts, t.ServiceAccounts) &&
		equalAddresses(s.ClusterVIPs, t.ClusterVIPs) &&
		s.Attributes.equal(&t.Attributes)
}

// equal reports whether all attributes are equal.
func (a *ServiceAttributes) equal(b *ServiceAttributes) bool {
	return a.Provider == b.Provider && a.Name == b.Name && a.Namespace == b.Namespace &&
		a.ObjectName == b.ObjectName && a.Visibility == b.Visibility &&
		a.TrafficDistribution == b.TrafficDistribution && a.DNSConnectStrategy == b.DNSConnectStrategy &&
		a.Labels.Equal(b.Labels) && a.LabelSelectors.Equal(b.LabelSelectors) &&
		slices.Equal(a.ExportTo, b.ExportTo) &&
		maps.Equal(a.PassthroughTargetPorts, b.PassthroughTargetPorts) &&
		equalAddresses(a.ClusterExternalAddresses, b.ClusterExternalAddresses) &&
		a.Kubernetes.equal(b.Kubernetes)
}

func equalAddresses(a, b map[ClusterID][]string) bool {
	return maps.EqualFunc(a, b, slices.Equal[[]string])
}
