// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"net/netip"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/topo"
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
	// metadata are the labels of the object. They override the labels of the spec.
	metadata map[string]string
	spec     *networking.WorkloadEntry
}

// workloadTemplate returns the template in a WorkloadEntry, false if the config
// is none.
func workloadTemplate(c *configstore.Config) (template, bool) {
	spec, ok := c.Spec.(*networking.WorkloadEntry)
	if !ok || spec == nil {
		return template{}, false
	}
	return template{
		name: c.Name, namespace: c.Namespace, annotations: c.Annotations, metadata: c.Labels, spec: spec,
	}, true
}

// inlineTemplate returns the template of an endpoint that is written in a
// ServiceEntry. As in Istio 1.30 its name comes from its position. former is the
// name that an endpoint at the position had, which is probably the same.
func inlineTemplate(entry *configstore.Config, index int, spec *networking.WorkloadEntry, former string) template {
	var buffer [20]byte
	position := strconv.AppendInt(buffer[:0], int64(index), 10)
	name := former
	if n := len(entry.Name); len(name) != n+1+len(position) || name[:n] != entry.Name || name[n] != '-' || name[n+1:] != string(position) {
		name = entry.Name + "-" + string(position)
	}
	return template{name: name, namespace: entry.Namespace, spec: spec}
}

// label returns the value of a label.
func (t *template) label(key string) (string, bool) {
	if v, ok := t.metadata[key]; ok {
		return v, true
	}
	v, ok := t.spec.GetLabels()[key]
	return v, ok
}

// draft returns what all endpoints of a workload have in common.
func (c *conversion) draft(t *template) draft {
	locality, network := t.locality(), c.network(t)
	var identity spiffe
	if account := t.spec.GetServiceAccount(); account != "" {
		identity = spiffe{c.mesh.trustDomain(), t.namespace, account}
	}
	return draft{
		EndpointAttributes: registry.EndpointAttributes{
			Network:   network,
			Locality:  locality,
			ClusterID: c.options.ClusterID,
			LbWeight:  t.spec.GetWeight(),
			TLSMode:   t.tlsMode(),
			Namespace: t.namespace,
		},
		identity: identity,
		metadata: t.metadata, spec: t.spec.GetLabels(),
		topology: topologyOf(locality, c.options.ClusterID, t.networkLabel(network)),
	}
}

// network returns the network of a workload: the field, else the label, else the result of
// NetworkOf. Istio 1.30 writes the last two only into the labels of the endpoint, so its readers of
// the field and of the labels disagree.
func (c *conversion) network(t *template) string {
	if n := t.spec.GetNetwork(); n != "" {
		return n
	}
	if n, _ := t.label(topo.Network); n != "" {
		return n
	}
	if c.options.NetworkOf == nil {
		return ""
	}
	return c.networkOf(t.spec.GetAddress(), mergeLabels(t.metadata, t.spec.GetLabels()))
}

// networkLabel returns the label to set for a network: none if there is one.
func (t *template) networkLabel(network string) string {
	if n, _ := t.label(topo.Network); n != "" {
		return ""
	}
	return network
}

func (t *template) locality() string {
	if l := t.spec.GetLocality(); l != "" {
		return l
	}
	value, ok := t.label(topo.Locality)
	if !ok {
		value, _ = t.label(topo.LegacyLocality)
	}
	return topo.FromLabel(value)
}

func (t *template) tlsMode() string {
	if mode, ok := t.label(labelTLSMode); ok {
		return mode
	}
	if t.spec.GetServiceAccount() != "" {
		return tlsModeIstio
	}
	return tlsModeDisabled
}

// workloadName is the registration group, or else the value of a label, even an empty one, or else
// the name of the object. As in Istio 1.30 the label counts in the metadata only, not in the spec.
func (t *template) workloadName() string {
	if group, ok := t.annotations[annotationRegistrationGroup]; ok {
		return group
	}
	if name, ok := t.metadata[labelWorkloadName]; ok {
		return name
	}
	return t.name
}

// address returns the address without its scheme.
func (t *template) address() string { return strings.TrimPrefix(t.spec.GetAddress(), unixScheme) }

func isUnix(address string) bool { return strings.HasPrefix(address, unixScheme) }

func isIP(address string) bool {
	_, err := netip.ParseAddr(address)
	return err == nil
}
