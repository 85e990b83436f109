// SPDX-License-Identifier: Apache-2.0

package registry

import "maps"

// ServiceInstance is an endpoint as an instance of one port of one service.
type ServiceInstance struct {
	Service     *Service
	ServicePort *Port
	Endpoint    *Endpoint
}

// WorkloadKind says what a workload is.
type WorkloadKind int

// The kinds of workloads.
const (
	// Pod is a workload that another registry found.
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

// WorkloadKey identifies a workload. Istio 1.30 has only the namespace and name,
// so that workloads of two clusters, or a pod and a WorkloadEntry, collide.
type WorkloadKey struct {
	Cluster   ClusterID
	Kind      WorkloadKind
	Namespace string
	Name      string
}

// String returns "Kind namespace/name", and " of cluster CLUSTER" if it has one.
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
	// Endpoint has everything but the port. Its labels are what selectors see.
	Endpoint *Endpoint
	// PortMap gives the workload's port for a service port name; may be nil.
	PortMap map[string]uint32
	// DNSServiceEntryOnly: the address is a host name or a unix socket, so that
	// only services with DNS resolution may select the workload.
	DNSServiceEntryOnly bool
}

// Key returns the workload's identity.
func (w *WorkloadInstance) Key() WorkloadKey {
	return WorkloadKey{Cluster: w.Cluster, Kind: w.Kind, Namespace: w.Namespace, Name: w.Name}
}

// Equal reports whether everything is equal.
func (w *WorkloadInstance) Equal(x *WorkloadInstance) bool {
	if w == x || w == nil || x == nil {
		return w == x
	}
	return w.Key() == x.Key() && w.DNSServiceEntryOnly == x.DNSServiceEntryOnly &&
		maps.Equal(w.PortMap, x.PortMap) && w.Endpoint.Equal(x.Endpoint)
}
