// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

func (f *findings) peerAuthentication(a *objects.PeerAuthentication) func() []Effect {
	root := f.settings.RootNamespace()
	f.unread(a.Unread, "servers take mutual TLS, and nothing else, because the field %s")
	if a.Selective() && a.Namespace == root {
		f.add("spec.selector", "policies of the root namespace are for the mesh: one with a selector is for no workload")
		return nil
	}
	first := f.eldest(a.Namespace)
	of := "of namespace " + a.Namespace
	switch {
	case a.Selective():
		first = f.PeerPolicyOf(a.Namespace, a.Selector)
		of += " with the labels " + a.Selector.String()
	case a.Namespace == root:
		of = "of all namespaces, where their own do not say it"
	}
	switch {
	case first != a && a.Selective():
		f.add("", "PeerAuthentication %s is older, and selects all workloads that this one does", first)
		return nil
	case first != a:
		f.add("", "PeerAuthentication %s is older, and counts alone", first)
		return nil
	}
	if a.Selective() && !f.hasWorkload(a.Namespace, a.Selector) {
		f.add("spec.selector", "no service of the namespace has a workload with these labels")
	} else {
		f.unservedPorts(a)
	}
	f.permissive(a)
	mode := a.Spec.GetMtls().GetMode().String()
	return func() []Effect {
		return []Effect{
			{"gRPC servers " + of, "the connections that they take: " + mode},
			{"sidecars and gateways", "connections to workloads " + of + ": " + mode},
		}
	}
}

// permissive adds findings for PERMISSIVE modes, because gRPC servers cannot accept both mutual TLS
// and plain text.
func (f *findings) permissive(a *objects.PeerAuthentication) {
	const both = "gRPC servers cannot take both: they take plain text, or, with the label security.istio.io/tlsMode: istio on the workload, mutual TLS"
	if a.Spec.GetMtls().GetMode() == objects.Permissive {
		f.add("spec.mtls.mode", both)
	}
	for port, m := range a.Spec.GetPortLevelMtls() {
		if m.GetMode() == objects.Permissive {
			f.add(fmt.Sprintf("spec.portLevelMtls[%d].mode", port), both)
		}
	}
}

// unservedPorts adds findings for ports that no selected workload serves.
func (f *findings) unservedPorts(a *objects.PeerAuthentication) {
	for _, port := range slices.Sorted(maps.Keys(a.Spec.GetPortLevelMtls())) {
		serves := func(w labelled) bool { return slices.Contains(w.ports, port) && a.Selector.SubsetOf(w.labels) }
		if !slices.ContainsFunc(f.workloadsOf(a.Namespace), serves) {
			f.add(fmt.Sprintf("spec.portLevelMtls[%d]", port), "no service of the namespace leads to this port of the workloads, whose ports count here, and not those of services")
		}
	}
}

// hasWorkload reports whether a service has a workload with some labels. An empty namespace stands
// for all.
func (f *findings) hasWorkload(namespace string, selector registry.Labels) bool {
	return slices.ContainsFunc(f.workloadsOf(namespace), func(w labelled) bool { return selector.SubsetOf(w.labels) })
}

// eldest returns the policy for all workloads of a namespace, or nil.
func (f *findings) eldest(namespace string) *objects.PeerAuthentication {
	i := slices.IndexFunc(f.Peers.In(namespace), func(a *objects.PeerAuthentication) bool { return !a.Selective() })
	if i < 0 {
		return nil
	}
	return f.Peers.In(namespace)[i]
}
