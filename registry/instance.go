// SPDX-License-Identifier: Apache-2.0

package registry

import "maps"

// ServiceInstance is an endpoint as an instance of one port of one service.
type ServiceInstance struct {
	Service     *Service
	ServicePort *Port
	Endpoint    *Endpoint
}

// WorkloadKind is the kind of a workload.
type WorkloadKind int

// The kinds of workloads.
const (
	// Pod is a workload found by another registry.
	Pod WorkloadKind = iota
	// WorkloadEntry is a workload from a WorkloadEntry.
	WorkloadEntry
)

// String returns "Pod" or "WorkloadEntry".
func (k WorkloadKind) String() string {
	if k == WorkloadEntry {
		return "WorkloadEntry"
	}
	return "Pod"
}

// WorkloadKey identifies a workload. Istio 1.30's key has only the namespace and name, so workloads
// of two clusters, or a pod and a WorkloadEntry, collide there.
type WorkloadKey struct {
	Cluster   ClusterID
	Kind      WorkloadKind
	Namespace string
	Name      string
}

// String returns "Kind namespace/name", followed by " of cluster CLUSTER" if the key has a cluster.
func (k WorkloadKey) String() string {
	text := k.Kind.String() + " " + k.Namespace + "/" + k.Name
	if k.Cluster != "" {
		text += " of cluster " + string(k.Cluster)
	}
	return text
}

// WorkloadInstance is a workload that services may select by its labels.
type WorkloadInstance struct {
	Cluster   ClusterID
	Kind      WorkloadKind
	Namespace string
	Name      string
	// Endpoint has all attributes except the port. Selectors match its labels.
	Endpoint *Endpoint
	// PortMap maps a service port name to the workload's port; may be nil.
	PortMap map[string]uint32
	// DNSServiceEntryOnly is set if the address is a host name or a unix socket, so that only
	// services with DNS resolution may select the workload.
	DNSServiceEntryOnly bool
}

// Key returns the workload's identity.
func (w *WorkloadInstance) Key() WorkloadKey {
	return WorkloadKey{Cluster: w.Cluster, Kind: w.Kind, Namespace: w.Namespace, Name: w.Name}
}

// Equal reports whether both are equal in every field.
func (w *WorkloadInstance) Equal(x *WorkloadInstance) bool {
	if w == x || w == nil || x == nil {
		return w == x
	}
	return w.Key() == x.Key() && w.DNSServiceEntryOnly == x.DNSServiceEntryOnly &&
		maps.Equal(w.PortMap, x.PortMap) && w.Endpoint.Equal(x.Endpoint)
}
