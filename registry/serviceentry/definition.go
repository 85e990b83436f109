// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
)

// definition is a ServiceEntry without its hosts. It is immutable.
type definition struct {
	config     *configstore.Config
	resolution registry.Resolution
	ports      []*registry.Port
	// targets holds the target port of each port, 0 for none; nil if all are 0.
	targets []uint32
	// selects: endpoints are workloads with all labels of selector. Endpoints in
	// the entry itself are then ignored; validation does not allow them.
	selects  bool
	selector registry.Labels
	// hostIsEndpoint: the proxy resolves the host itself.
	hostIsEndpoint bool
}

// hostDefinition is one host of an entry: a service for each address.
type hostDefinition struct {
	hostname registry.Hostname
	services []*registry.Service
}

// objectName names a config of a kind that is known.
type objectName struct{ namespace, name string }

func nameOf(c *configstore.Config) objectName { return objectName{c.Namespace, c.Name} }

func (n objectName) compare(m objectName) int {
	return cmp.Or(strings.Compare(n.namespace, m.namespace), strings.Compare(n.name, m.name))
}

// definition converts a ServiceEntry; nil if the config is none. Each host is
// returned once; there are none if no address is usable.
func (c *conversion) definition(config *configstore.Config) (*definition, []hostDefinition) {
	spec, ok := config.Spec.(*networking.ServiceEntry)
	if !ok || spec == nil {
		return nil, nil
	}
	d := &definition{config: config, resolution: resolutionOf(spec)}
	d.ports, d.targets = portsOf(spec)
	if s := spec.GetWorkloadSelector(); s != nil {
		d.selects, d.selector = true, s.GetLabels()
	}
	d.hostIsEndpoint = !d.selects && len(spec.GetEndpoints()) == 0 && d.resolution.IsDNS()
	return d, c.hosts(spec, d)
}

func (d *definition) created() time.Time { return d.config.CreationTimestamp }

// inline returns the endpoints that are written in the entry and count.
func (d *definition) inline() []*networking.WorkloadEntry {
	spec, _ := d.config.Spec.(*networking.ServiceEntry)
	if d.selects {
		return nil
	}
	return spec.GetEndpoints()
}

func (c *conversion) hosts(spec *networking.ServiceEntry, d *definition) []hostDefinition {
	addresses := serviceAddresses(spec.GetAddresses())
	if len(addresses) == 0 {
		return nil
	}
	prototype := c.service(spec, d)
	out := make([]hostDefinition, 0, len(spec.GetHosts()))
	for _, host := range spec.GetHosts() {
		hostname := registry.Hostname(host)
		if findHost(out, hostname) != nil {
			continue
		}
		services := make([]*registry.Service, len(addresses))
		v4, v6 := c.allocated(d.config, spec, host)
		for i, address := range addresses {
			s := prototype
			s.Hostname, s.Attributes.Name, s.DefaultAddress = hostname, host, address
			s.AutoAllocatedIPv4, s.AutoAllocatedIPv6 = v4, v6
			services[i] = &s
		}
		out = append(out, hostDefinition{hostname, services})
	}
	return out
}

// findHost returns the one of a host name, or nil.
func findHost(hosts []hostDefinition, hostname registry.Hostname) *hostDefinition {
	i := slices.IndexFunc(hosts, func(h hostDefinition) bool { return h.hostname == hostname })
	if i < 0 {
		return nil
	}
	return &hosts[i]
}

// service returns the common fields of the services of an entry. The services share its maps and
// slices.
func (c *conversion) service(spec *networking.ServiceEntry, d *definition) registry.Service {
	config := d.config
	namespace := c.namespaces[config.Namespace]
	s := registry.Service{
		Ports:           d.ports,
		Resolution:      d.resolution,
		MeshExternal:    spec.GetLocation() == networking.ServiceEntry_MESH_EXTERNAL,
		ServiceAccounts: spec.GetSubjectAltNames(),
		CreationTime:    config.CreationTimestamp,
		ResourceVersion: config.ResourceVersion,
		Attributes: registry.ServiceAttributes{
			Provider:            registry.External,
			Namespace:           config.Namespace,
			ObjectName:          config.Name,
			Labels:              config.Labels,
			ExportTo:            exportTo(spec.GetExportTo()),
			Visibility:          c.mesh.visibility(namespace.Labels),
			LabelSelectors:      d.selector,
			TrafficDistribution: trafficDistribution(config.Annotations, namespace.Annotations),
			DNSConnectStrategy:  connectStrategy(config.Annotations),
		},
	}
	if s.MeshExternal && c.options.CanonicalServiceForMeshExternal {
		s.Attributes.Labels = canonicalLabels(config.Labels, config.Name)
	}
	if d.resolution == registry.Passthrough {
		s.Attributes.PassthroughTargetPorts = d.passthroughTargets()
	}
	return s
}

func (d *definition) passthroughTargets() map[uint32]uint32 {
	out := map[uint32]uint32{}
	for i, target := range d.targets {
		if target != 0 {
			out[d.ports[i].Number] = target
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func resolutionOf(spec *networking.ServiceEntry) registry.Resolution {
	switch spec.GetResolution() {
	case networking.ServiceEntry_NONE:
		return registry.Passthrough
	case networking.ServiceEntry_DNS:
		return registry.DNSLB
	case networking.ServiceEntry_DNS_ROUND_ROBIN:
		return registry.DNSRoundRobinLB
	case networking.ServiceEntry_DYNAMIC_DNS:
		return registry.DynamicDNS
	case networking.ServiceEntry_STATIC:
		return registry.ClientSideLB
	default:
		return registry.ClientSideLB
	}
}

func portsOf(spec *networking.ServiceEntry) (ports []*registry.Port, targets []uint32) {
	all := make([]registry.Port, 0, len(spec.GetPorts()))
	for _, p := range spec.GetPorts() {
		if p == nil {
			continue
		}
		all = append(all, registry.Port{Name: p.GetName(), Number: p.GetNumber(), Protocol: registry.ParseProtocol(p.GetProtocol())})
		if p.GetTargetPort() != 0 && targets == nil {
			targets = make([]uint32, len(all)-1, len(spec.GetPorts()))
		}
		if targets != nil {
			targets = append(targets, p.GetTargetPort())
		}
	}
	ports = make([]*registry.Port, len(all))
	for i := range all {
		ports[i] = &all[i]
	}
	return ports, targets
}

// exportTo returns the values sorted and each once.
func exportTo(values []string) []registry.Visibility {
	if len(values) == 0 {
		return nil
	}
	out := make([]registry.Visibility, len(values))
	for i, v := range values {
		out[i] = registry.Visibility(v)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// trafficDistribution reads the annotation of an entry, or else the annotation of its namespace. An
// unknown value of the entry means no preference.
func trafficDistribution(entry, namespace map[string]string) registry.TrafficDistribution {
	switch strings.ToLower(cmp.Or(entry[annotationTrafficDistribution], namespace[annotationTrafficDistribution])) {
	case "preferclose", "prefersamezone":
		return registry.TrafficDistributionPreferSameZone
	case "prefersamenode":
		return registry.TrafficDistributionPreferSameNode
	default:
		return registry.TrafficDistributionAny
	}
}

// connectStrategy reads the annotation. Istio 1.30 knows only one value.
func connectStrategy(annotations map[string]string) string {
	if strings.EqualFold(annotations[annotationConnectStrategy], "RACE_FIRST_TCP_CONNECT") {
		return "RaceFirstTCPConnect"
	}
	return ""
}

// sameShape reports whether endpoints made for d are right for e, too.
func (d *definition) sameShape(e *definition) bool {
	return slices.Equal(d.targets, e.targets) &&
		slices.EqualFunc(d.ports, e.ports, func(p, q *registry.Port) bool { return p.Name == q.Name && p.Number == q.Number })
}

// sameSelection reports whether d and e select the same workloads.
func (d *definition) sameSelection(e *definition) bool {
	return d.selects == e.selects && maps.Equal(d.selector, e.selector) && d.resolution.IsDNS() == e.resolution.IsDNS()
}
