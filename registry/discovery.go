// SPDX-License-Identifier: Apache-2.0

package registry

// ServiceDiscovery reads services. All results are shared and read-only.
type ServiceDiscovery interface {
	// Services returns all services in the order of CompareServices.
	Services() []*Service

	// GetService returns the service of a host name, or nil. Of several services it returns the
	// first by ComparePrecedence; services of one object, which differ in their addresses, may be
	// in the object's order instead.
	GetService(hostname Hostname) *Service

	// InstancesByPort returns the instances of a service on the service port with a number, or on
	// all ports for 0, sorted by CompareEndpoints.
	InstancesByPort(svc *Service, servicePort uint32) []*ServiceInstance

	// GetProxyServiceInstances returns the instances that run on the proxy's workload. They are
	// found by any of its addresses, in its own namespace if that is known.
	GetProxyServiceInstances(proxy *Proxy) []*ServiceInstance

	// GetProxyWorkloadLabels returns the labels of the proxy's workload. Nil means that the
	// registry does not know the workload; a workload without labels has empty ones.
	GetProxyWorkloadLabels(proxy *Proxy) Labels

	// NetworkGateways returns the gateways of all networks in the order of
	// CompareNetworkGateways.
	NetworkGateways() []NetworkGateway

	// AppendNetworkGatewayHandler adds a function that is called after each change of the gateways.
	AppendNetworkGatewayHandler(handler func())
}
