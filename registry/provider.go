// SPDX-License-Identifier: Apache-2.0

package registry

// ProviderID names the kind of a registry.
type ProviderID string

// The providers of Istio 1.30, and Memory.
const (
	// Kubernetes is the provider of services of a Kubernetes cluster.
	Kubernetes ProviderID = "Kubernetes"
	// External is the provider of services from ServiceEntries.
	External ProviderID = "External"
	// Memory is the provider of services that the host adds by hand.
	Memory ProviderID = "Memory"
)

// ClusterID names the cluster that a registry reads from; may be empty.
type ClusterID string
