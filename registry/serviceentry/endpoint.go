// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
)

// endpointsOf returns the endpoints of a workload for the ports of an entry, in
// their order. address is the workload's as it is written, base its endpoint
// without a port.
func (d *definition) endpointsOf(base *registry.Endpoint, unix bool, portMap map[string]uint32) []registry.Endpoint {
	out := make([]registry.Endpoint, len(d.ports))
	for i, p := range d.ports {
		out[i] = *base
		out[i].ServicePort, out[i].ServicePortName = p.Number, p.Name
		out[i].EndpointPort = d.endpointPort(i, unix, portMap)
	}
	return out
}

// endpointPort returns the port to connect to: none for a unix socket, else the
// workload's port of that name, else the target port, else the service port.
func (d *definition) endpointPort(i int, unix bool, portMap map[string]uint32) uint32 {
	if unix {
		return 0
	}
	if number := portMap[d.ports[i].Name]; number > 0 {
		return number
	}
	if d.targets != nil && d.targets[i] > 0 {
		return d.targets[i]
	}
	return d.ports[i].Number
}

// inlineEndpoints returns the endpoints of one that is written in an entry.
func (c *conversion) inlineEndpoints(d *definition, index int, spec *networking.WorkloadEntry) []registry.Endpoint {
	t := inlineTemplate(d.config, index, spec)
	address := spec.GetAddress()
	base := registry.Endpoint{
		Addresses:    []string{strings.TrimPrefix(address, unixScheme)},
		WorkloadName: t.workloadName(),
		Shared:       c.shared(c.attributes(t)),
	}
	return d.endpointsOf(&base, isUnix(address), spec.GetPorts())
}

// hostEndpoints returns the endpoints of an entry without any, whose hosts are
// resolved themselves.
func (c *conversion) hostEndpoints(d *definition, hostname registry.Hostname) []registry.Endpoint {
	base := registry.Endpoint{
		Addresses:    []string{string(hostname)},
		WorkloadName: d.object.name,
		Shared: c.shared(registry.EndpointAttributes{
			ClusterID: c.options.ClusterID, TLSMode: tlsModeDisabled, Namespace: d.object.namespace,
		}),
	}
	return d.endpointsOf(&base, false, nil)
}

// mayServe reports whether workloads with an address that is not an IP address,
// if it is one, may be endpoints of the entry.
func (d *definition) mayServe(w *registry.WorkloadInstance) bool {
	return !w.DNSServiceEntryOnly || d.resolution.IsDNS()
}

func isUnix(address string) bool { return strings.HasPrefix(address, unixScheme) }
