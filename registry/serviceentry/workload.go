// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"net/netip"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
)

const (
	tlsModeIstio    = "istio"
	tlsModeDisabled = "disabled"
	unixScheme      = "unix://"
)

// template is a workload as ServiceEntries and WorkloadEntries describe it.
type template struct {
	name, namespace string
	annotations     map[string]string
	// labels are those of the metadata and of the spec.
	labels registry.Labels
	spec   *networking.WorkloadEntry
}

// workloadTemplate returns the template in a WorkloadEntry, false if the config
// is none.
func workloadTemplate(c *configstore.Config) (template, bool) {
	spec, ok := c.Spec.(*networking.WorkloadEntry)
	if !ok || spec == nil {
		return template{}, false
	}
	return template{
		name: c.Name, namespace: c.Namespace, annotations: c.Annotations,
		labels: mergeLabels(c.Labels, spec.GetLabels()), spec: spec,
	}, true
}

// inlineTemplate returns the template of an endpoint that is written in a
// ServiceEntry. As in Istio 1.30 its name comes from its position.
func inlineTemplate(entry *configstore.Config, index int, spec *networking.WorkloadEntry) template {
	return template{
		name: entry.Name + "-" + strconv.Itoa(index), namespace: entry.Namespace,
		labels: spec.GetLabels(), spec: spec,
	}
}

// workload returns the workload of a WorkloadEntry, or nil if the entry does not
// count because it is not healthy.
func (c *conversion) workload(config *configstore.Config) *registry.WorkloadInstance {
	t, ok := workloadTemplate(config)
	if !ok || (!c.options.IgnoreHealth && !healthy(config)) {
		return nil
	}
	// The instance and all that belongs to it alone is one piece of memory.
	w := &struct {
		registry.WorkloadInstance
		endpoint registry.Endpoint
		address  [1]string
	}{}
	address := t.spec.GetAddress()
	w.address[0] = strings.TrimPrefix(address, unixScheme)
	w.endpoint = registry.Endpoint{
		Addresses: w.address[:], WorkloadName: t.workloadName(), Shared: c.shared(c.attributes(t)),
	}
	w.WorkloadInstance = registry.WorkloadInstance{
		Cluster: c.options.ClusterID, Kind: registry.WorkloadEntry, Namespace: t.namespace, Name: t.name,
		Endpoint: &w.endpoint, PortMap: t.spec.GetPorts(), DNSServiceEntryOnly: !isIP(address) && address != "",
	}
	return &w.WorkloadInstance
}

// attributes returns what all endpoints of a workload have in common.
func (c *conversion) attributes(t template) registry.EndpointAttributes {
	locality := localityOf(t.spec.GetLocality(), t.labels)
	network := c.network(t)
	return registry.EndpointAttributes{
		Labels:         augmentLabels(t.labels, locality, c.options.ClusterID, network),
		ServiceAccount: c.spiffeID(t.namespace, t.spec.GetServiceAccount()),
		Network:        network,
		Locality:       locality,
		ClusterID:      c.options.ClusterID,
		LbWeight:       t.spec.GetWeight(),
		TLSMode:        t.tlsMode(),
		Namespace:      t.namespace,
	}
}

// network returns the network of a workload: the field, else the label, else
// what the host program says. Istio 1.30 does not write the last into the
// endpoint, only into its labels, so that readers of the one and of the other
// disagree.
func (c *conversion) network(t template) string {
	if n := t.spec.GetNetwork(); n != "" {
		return n
	}
	if n := t.labels[labelNetwork]; n != "" {
		return n
	}
	if c.options.NetworkOf == nil {
		return ""
	}
	return c.options.NetworkOf(t.spec.GetAddress(), t.labels)
}

func (t template) tlsMode() string {
	if mode, ok := t.labels[labelTLSMode]; ok {
		return mode
	}
	if t.spec.GetServiceAccount() != "" {
		return tlsModeIstio
	}
	return tlsModeDisabled
}

func (t template) workloadName() string {
	if group := t.annotations[annotationRegistrationGroup]; group != "" {
		return group
	}
	if name := t.labels[labelWorkloadName]; name != "" {
		return name
	}
	return t.name
}

func isIP(address string) bool {
	_, err := netip.ParseAddr(address)
	return err == nil
}
