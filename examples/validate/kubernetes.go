// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"maps"
	"net/netip"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
	registrymemory "github.com/pilotkit/pilotkit/registry/memory"
)

// counts reports whether objects of a kind that is not checked count as what Istio's objects refer to.
func counts(kind configstore.GroupVersionKind) bool {
	return kind.Group == "apps" || kind.Group == "" && (kind.Kind == "Service" || kind.Kind == "Pod" || kind.Kind == "Namespace")
}

// kubernetesObject has the fields that are read of a Kubernetes object, or of a List of objects.
type kubernetesObject struct {
	APIVersion string             `yaml:"apiVersion"`
	Kind       string             `yaml:"kind"`
	Metadata   kubernetesMeta     `yaml:"metadata"`
	Spec       kubernetesSpec     `yaml:"spec"`
	Items      []kubernetesObject `yaml:"items"`
}

type kubernetesMeta struct {
	Name        string            `yaml:"name"`
	Namespace   string            `yaml:"namespace"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// kubernetesSpec has the fields of a Service, and the template of the pods of a workload.
type kubernetesSpec struct {
	Type         string           `yaml:"type"`
	ClusterIP    string           `yaml:"clusterIP"`
	ExternalName string           `yaml:"externalName"`
	Ports        []kubernetesPort `yaml:"ports"`
	// Selector is a map of labels in a Service only.
	Selector yaml.Node `yaml:"selector"`
	Template struct {
		Metadata kubernetesMeta `yaml:"metadata"`
	} `yaml:"template"`
}

type kubernetesPort struct {
	Name        string  `yaml:"name"`
	Port        int32   `yaml:"port"`
	Protocol    string  `yaml:"protocol"`
	AppProtocol *string `yaml:"appProtocol"`
}

// kubernetes has the objects of Kubernetes among the files.
type kubernetes struct {
	services, namespaces []kubernetesObject
	// pods are the labels of pods, and of the templates of pods, by namespace.
	pods map[string][]registry.Labels
}

// read adds the Kubernetes objects of a document of another kind than Istio's. Unreadable objects are ignored.
func (k *kubernetes) read(text []byte, namespace string) {
	var o kubernetesObject
	if yaml.Unmarshal(text, &o) == nil {
		k.add(o, namespace)
	}
}

func (k *kubernetes) add(o kubernetesObject, namespace string) {
	for _, item := range o.Items {
		k.add(item, namespace)
	}
	o.Metadata.Namespace = cmp.Or(o.Metadata.Namespace, namespace)
	labels := o.Spec.Template.Metadata.Labels
	switch {
	case o.APIVersion == "v1" && o.Kind == "Service":
		k.services = append(k.services, o)
	case o.APIVersion == "v1" && o.Kind == "Namespace":
		k.namespaces = append(k.namespaces, o)
	case o.Kind == "Pod":
		labels = o.Metadata.Labels
	}
	if labels != nil {
		if k.pods == nil {
			k.pods = make(map[string][]registry.Labels)
		}
		k.pods[o.Metadata.Namespace] = append(k.pods[o.Metadata.Namespace], labels)
	}
}

// fill sets the services of a registry. A workload that is not among the files may have the labels
// of any subset. Services that the registry does not take are ones that no cluster would.
func (k *kubernetes) fill(to *registrymemory.Registry, domain string, subsets []registry.Labels) {
	for _, o := range k.services {
		svc := o.service(domain)
		_ = to.Set(svc, o.endpoints(svc, k.workloads(o, subsets)))
	}
}

// workloads returns the labels of the pods of a Service.
func (k *kubernetes) workloads(o kubernetesObject, subsets []registry.Labels) (out []registry.Labels) {
	var selector registry.Labels
	_ = o.Spec.Selector.Decode(&selector)
	if len(selector) > 0 {
		for _, labels := range k.pods[o.Metadata.Namespace] {
			if selector.SubsetOf(labels) {
				out = append(out, labels)
			}
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, labels := range append(subsets, nil) {
		all := make(registry.Labels)
		maps.Copy(all, selector)
		maps.Copy(all, labels)
		out = append(out, all)
	}
	return out
}

// service returns the service that a cluster makes of a Service.
func (o kubernetesObject) service(domain string) *registry.Service {
	m := o.Metadata
	svc := &registry.Service{
		Hostname:       registry.Hostname(strings.Join([]string{m.Name, m.Namespace, "svc", domain}, ".")),
		DefaultAddress: registry.UnspecifiedAddress, Resolution: registry.ClientSideLB,
		Attributes: registry.ServiceAttributes{
			Name: m.Name, Namespace: m.Namespace, Labels: m.Labels,
			Kubernetes: &registry.KubernetesAttributes{Type: o.Spec.Type, ExternalName: o.Spec.ExternalName},
		},
	}
	switch _, err := netip.ParseAddr(o.Spec.ClusterIP); {
	case o.Spec.ClusterIP == "None":
		svc.Resolution = registry.Passthrough
	case o.Spec.Type == "ExternalName":
		svc.Resolution, svc.MeshExternal = registry.Alias, true
	case err == nil:
		svc.DefaultAddress = o.Spec.ClusterIP
	}
	for to := range strings.SplitSeq(m.Annotations["networking.istio.io/exportTo"], ",") {
		if to = strings.TrimSpace(to); to != "" {
			svc.Attributes.ExportTo = append(svc.Attributes.ExportTo, registry.Visibility(to))
		}
	}
	for _, p := range o.Spec.Ports {
		port := registry.KubernetesPort{Transport: p.Protocol, Name: p.Name, AppProtocol: p.AppProtocol, Number: p.Port}
		svc.Ports = append(svc.Ports, &registry.Port{Name: p.Name, Number: uint32(p.Port), Protocol: port.Protocol()})
	}
	return svc
}

// endpoints returns one endpoint for each port and set of labels.
func (o kubernetesObject) endpoints(svc *registry.Service, workloads []registry.Labels) (out []*registry.Endpoint) {
	if svc.Resolution == registry.Alias {
		return nil
	}
	address := netip.MustParseAddr("192.0.2.0") // an address for documentation, which no client receives
	for _, labels := range workloads {
		address = address.Next()
		for _, p := range svc.Ports {
			out = append(out, &registry.Endpoint{
				Addresses: []string{address.String()}, EndpointPort: p.Number, ServicePort: p.Number, ServicePortName: p.Name,
				Shared: &registry.EndpointAttributes{Namespace: svc.Attributes.Namespace, Labels: labels},
			})
		}
	}
	return out
}
