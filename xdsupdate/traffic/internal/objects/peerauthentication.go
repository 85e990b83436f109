// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"slices"

	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
)

// PeerAuthentication is a PeerAuthentication. It is immutable. With unreadable parts it is STRICT for
// all ports.
type PeerAuthentication struct {
	Stored
	Spec     *security.PeerAuthentication
	Selector registry.Labels
	// general is set if the selection is unreadable: the policy then applies to its whole
	// namespace, and before policies without a selector.
	general bool
}

func newPeerAuthentication(c *configstore.Config, spec *security.PeerAuthentication) *PeerAuthentication {
	out := &PeerAuthentication{Stored: newPolicy(c), Spec: spec, Selector: spec.GetSelector().GetMatchLabels()}
	if len(out.Unread) > 0 {
		out.Spec = &security.PeerAuthentication{Mtls: &security.PeerAuthentication_MutualTLS{Mode: Strict}}
		if out.general = istio.SelectionUnread(out.Unread); out.general {
			out.Selector = nil
		}
	}
	return out
}

// Selective reports whether the policy has a selector.
func (a *PeerAuthentication) Selective() bool { return len(a.Selector) > 0 }

// Abbreviations of the modes.
const (
	unset      = security.PeerAuthentication_MutualTLS_UNSET
	Disable    = security.PeerAuthentication_MutualTLS_DISABLE
	Permissive = security.PeerAuthentication_MutualTLS_PERMISSIVE
	Strict     = security.PeerAuthentication_MutualTLS_STRICT
)

type tlsMode = security.PeerAuthentication_MutualTLS_Mode

// modeOf returns the mode of a policy, or else a default. An unknown mode comes from a newer API
// and is treated as STRICT.
func modeOf(m *security.PeerAuthentication_MutualTLS, otherwise tlsMode) tlsMode {
	switch mode := m.GetMode(); mode {
	case unset:
		return otherwise
	case Disable, Permissive, Strict:
		return mode
	default:
		return Strict
	}
}

// PeerMode is a mode with its origin.
type PeerMode struct {
	Mode tlsMode
	Of   *PeerAuthentication // nil if no policy sets the mode, which then is PERMISSIVE
	// Port is set if the mode is for the port.
	Port bool
}

// say sets the mode to that of a policy, if the policy has one.
func (m *PeerMode) say(a *PeerAuthentication, said *security.PeerAuthentication_MutualTLS, port bool) {
	if mode := modeOf(said, unset); mode != unset {
		*m = PeerMode{mode, a, port}
	}
}

// namespaceMode returns the mode of the workloads in a namespace that no policy selects. It comes
// from the oldest policy of the namespace, or else from the oldest policy of the root namespace.
func (x *Index) namespaceMode(namespace string) PeerMode {
	m := PeerMode{Mode: Permissive}
	root := x.Settings.RootNamespace()
	for _, ns := range []string{root, namespace} {
		for _, a := range x.Peers.In(ns) {
			if !a.Selective() {
				m.say(a, a.Spec.GetMtls(), false)
				break // only the oldest policy of a level counts, even if it is UNSET (S21)
			}
		}
		if namespace == root {
			break
		}
	}
	return m
}

// PeerPolicyOf returns the policy that selects workloads of a namespace with some labels, or nil.
// Policies of the root namespace select none (S20).
func (x *Index) PeerPolicyOf(namespace string, labels registry.Labels) *PeerAuthentication {
	if namespace == x.Settings.RootNamespace() {
		return nil
	}
	for _, a := range x.Peers.In(namespace) {
		if (a.Selective() || a.general) && a.Selector.SubsetOf(labels) {
			return a
		}
	}
	return nil
}

// PeerMode returns the mode of a port of a workload. It is never UNSET.
func (x *Index) PeerMode(namespace string, labels registry.Labels, port uint32) PeerMode {
	m := x.namespaceMode(namespace)
	if a := x.PeerPolicyOf(namespace, labels); a != nil {
		m.say(a, a.Spec.GetMtls(), false)
		m.say(a, a.Spec.GetPortLevelMtls()[port], true)
	}
	return m
}

// modes returns the modes that workloads of a namespace can have.
func (x *Index) modes(namespace string) (out []tlsMode) {
	general := x.namespaceMode(namespace).Mode
	out = append(out, general)
	if namespace == x.Settings.RootNamespace() {
		return out
	}
	for _, a := range x.Peers.In(namespace) {
		if !a.Selective() && !a.general {
			continue
		}
		mode := modeOf(a.Spec.GetMtls(), general)
		out = append(out, mode)
		for _, port := range a.Spec.GetPortLevelMtls() {
			out = append(out, modeOf(port, mode))
		}
	}
	return out
}

// SomeDisabled reports whether some workloads of a namespace do not accept mutual TLS.
func (x *Index) SomeDisabled(namespace string) bool {
	return x.HasPeers() && slices.Contains(x.modes(namespace), Disable)
}

// AllDisabled reports whether no workload of a namespace accepts mutual TLS (S30).
func (x *Index) AllDisabled(namespace string) bool {
	return x.HasPeers() && !slices.ContainsFunc(x.modes(namespace), func(m tlsMode) bool { return m != Disable })
}

// HasPeers reports whether there are PeerAuthentications.
func (x *Index) HasPeers() bool { return x.Peers.Len() > 0 }

// AnyDisabled reports whether some workloads in any namespace do not accept mutual TLS.
func (x *Index) AnyDisabled() bool {
	for namespace := range x.Peers.All() {
		if x.SomeDisabled(namespace) {
			return true
		}
	}
	return false
}

func (*PeerAuthentication) labelKeys() []string { return nil }
