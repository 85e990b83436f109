// SPDX-License-Identifier: Apache-2.0

package registry

// ProviderID names the kind of a registry.
type ProviderID string

// The providers that Istio 1.30 knows, and Memory.
const (
	// Kubernetes: services of a Kubernetes cluster.
	Kubernetes ProviderID = "Kubernetes"
	// External: services from ServiceEntries.
	External ProviderID = "External"
	// Memory: services that the program adds by hand.
	Memory ProviderID = "Memory"
)

// ClusterID names the cluster that a registry reads from; may be empty.
type ClusterID string
