// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

func (a *peerAuthentication) report(f *findings) {
	root := f.settings.rootNamespace()
	f.unread(a.unread, "servers take mutual TLS, and nothing else, because the field %s")
	if a.selective() && a.namespace == root {
		f.add("spec.selector", "policies of the root namespace are for the mesh: one with a selector is for no workload")
		return
	}
	for _, older := range f.peers.in(a.namespace) {
		if older == a {
			break
		}
		if !a.selective() && !older.selective() {
			f.add("", "PeerAuthentication %s is older, and counts alone", older)
			return
		}
		if a.selective() && older.selective() && older.selector.SubsetOf(a.selector) {
			f.add("", "PeerAuthentication %s is older, and selects all workloads that this one does", older)
			return
		}
	}
	if a.selective() && !f.hasWorkload(a.namespace, a.selector) {
		f.add("spec.selector", "no service of the namespace has a workload with these labels")
	}
	f.permissive(a)
}

// permissive adds findings for PERMISSIVE modes, because gRPC servers cannot accept both mutual TLS
// and plain text.
func (f *findings) permissive(a *peerAuthentication) {
	const both = "gRPC servers cannot take both: they take plain text, or, with the label security.istio.io/tlsMode: istio on the workload, mutual TLS"
	if a.spec.GetMtls().GetMode() == permissive {
		f.add("spec.mtls.mode", both)
	}
	for port, m := range a.spec.GetPortLevelMtls() {
		if m.GetMode() == permissive {
			f.add(fmt.Sprintf("spec.portLevelMtls[%d].mode", port), both)
		}
	}
}

// hasWorkload reports whether a service has a workload with some labels. An empty namespace stands
// for all.
func (f *findings) hasWorkload(namespace string, selector registry.Labels) bool {
	return slices.ContainsFunc(f.workloadsOf(namespace), func(w labelled) bool { return selector.SubsetOf(w.labels) })
}

// effects returns the servers and clients that the policy applies to.
func (a *peerAuthentication) effects(f *findings) []Effect {
	root := f.settings.rootNamespace()
	of := "of namespace " + a.namespace
	switch {
	case a.namespace == root && a.selective():
		return nil
	case a.namespace == root:
		of = "of all namespaces, where their own do not say it"
	case a.selective() && f.peerPolicyOf(a.namespace, a.selector) != a, !a.selective() && f.eldest(a.namespace) != a:
		return nil
	case a.selective():
		of += " with the labels " + a.selector.String()
	}
	mode := a.spec.GetMtls().GetMode().String()
	return []Effect{
		{"gRPC servers " + of, "the connections that they take: " + mode},
		{"sidecars and gateways", "connections to workloads " + of + ": " + mode},
	}
}

// eldest returns the policy for all workloads of a namespace, or nil.
func (f *findings) eldest(namespace string) *peerAuthentication {
	i := slices.IndexFunc(f.peers.in(namespace), func(a *peerAuthentication) bool { return !a.selective() })
	if i < 0 {
		return nil
	}
	return f.peers.in(namespace)[i]
}
