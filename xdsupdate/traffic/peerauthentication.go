// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
)

// peerAuthentication is a PeerAuthentication. It is immutable. With unreadable parts it is STRICT for
// all ports.
type peerAuthentication struct {
	stored
	spec     *security.PeerAuthentication
	selector registry.Labels
	// general is set if the selection is unreadable: the policy then applies to its whole
	// namespace, and before policies without a selector.
	general bool
}

func newPeerAuthentication(c *configstore.Config, spec *security.PeerAuthentication) *peerAuthentication {
	out := &peerAuthentication{stored: newPolicy(c), spec: spec, selector: spec.GetSelector().GetMatchLabels()}
	if len(out.unread) > 0 {
		out.spec = &security.PeerAuthentication{Mtls: &security.PeerAuthentication_MutualTLS{Mode: strict}}
		if out.general = istio.SelectionUnread(out.unread); out.general {
			out.selector = nil
		}
	}
	return out
}

// selective reports whether the policy has a selector.
func (a *peerAuthentication) selective() bool { return len(a.selector) > 0 }

// Abbreviations of the modes.
const (
	unset      = security.PeerAuthentication_MutualTLS_UNSET
	disable    = security.PeerAuthentication_MutualTLS_DISABLE
	permissive = security.PeerAuthentication_MutualTLS_PERMISSIVE
	strict     = security.PeerAuthentication_MutualTLS_STRICT
)

type tlsMode = security.PeerAuthentication_MutualTLS_Mode

// modeOf returns the mode of a policy, or else a default. An unknown mode comes from a newer API
// and is treated as STRICT.
func modeOf(m *security.PeerAuthentication_MutualTLS, otherwise tlsMode) tlsMode {
	switch mode := m.GetMode(); mode {
	case unset:
		return otherwise
	case disable, permissive, strict:
		return mode
	default:
		return strict
	}
}

// peerMode is a mode with its origin.
type peerMode struct {
	mode tlsMode
	of   *peerAuthentication // nil if no policy sets the mode, which then is PERMISSIVE
	// port is set if the mode is for the port.
	port bool
}

// say sets the mode to that of a policy, if the policy has one.
func (m *peerMode) say(a *peerAuthentication, said *security.PeerAuthentication_MutualTLS, port bool) {
	if mode := modeOf(said, unset); mode != unset {
		*m = peerMode{mode, a, port}
	}
}

// namespaceMode returns the mode of the workloads in a namespace that no policy selects. It comes
// from the oldest policy of the namespace, or else from the oldest policy of the root namespace.
func (x *index) namespaceMode(namespace string) peerMode {
	m := peerMode{mode: permissive}
	root := x.settings.rootNamespace()
	for _, ns := range []string{root, namespace} {
		for _, a := range x.peers.in(ns) {
			if !a.selective() {
				m.say(a, a.spec.GetMtls(), false)
				break // only the oldest policy of a level counts, even if it is UNSET (S21)
			}
		}
		if namespace == root {
			break
		}
	}
	return m
}

// peerPolicyOf returns the policy that selects workloads of a namespace with some labels, or nil.
// Policies of the root namespace select none (S20).
func (x *index) peerPolicyOf(namespace string, labels registry.Labels) *peerAuthentication {
	if namespace == x.settings.rootNamespace() {
		return nil
	}
	for _, a := range x.peers.in(namespace) {
		if (a.selective() || a.general) && a.selector.SubsetOf(labels) {
			return a
		}
	}
	return nil
}

// peerMode returns the mode of a port of a workload. It is never UNSET.
func (x *index) peerMode(namespace string, labels registry.Labels, port uint32) peerMode {
	m := x.namespaceMode(namespace)
	if a := x.peerPolicyOf(namespace, labels); a != nil {
		m.say(a, a.spec.GetMtls(), false)
		m.say(a, a.spec.GetPortLevelMtls()[port], true)
	}
	return m
}

// modes returns the modes that workloads of a namespace can have.
func (x *index) modes(namespace string) (out []tlsMode) {
	general := x.namespaceMode(namespace).mode
	out = append(out, general)
	if namespace == x.settings.rootNamespace() {
		return out
	}
	for _, a := range x.peers.in(namespace) {
		if !a.selective() && !a.general {
			continue
		}
		mode := modeOf(a.spec.GetMtls(), general)
		out = append(out, mode)
		for _, port := range a.spec.GetPortLevelMtls() {
			out = append(out, modeOf(port, mode))
		}
	}
	return out
}
