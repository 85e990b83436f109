// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
)

// peerAuthentication is a PeerAuthentication. It is immutable.
type peerAuthentication struct {
	objectName
	config   *configstore.Config
	spec     *security.PeerAuthentication
	selector registry.Labels
	// unread are the parts that cannot be read. With some it is STRICT for all ports. general: they say which workloads it is
	// for, so that it is for all of its namespace, also before policies without a selector.
	unread  []configstore.Violation
	general bool
}

func newPeerAuthentication(c *configstore.Config) *peerAuthentication {
	spec, _ := c.Spec.(*security.PeerAuthentication)
	if spec == nil {
		return nil
	}
	out := &peerAuthentication{
		objectName: objectName{c.Namespace, c.Name}, config: c, spec: spec, selector: spec.GetSelector().GetMatchLabels(),
		unread: configstore.Unread(spec),
	}
	if len(out.unread) > 0 {
		out.spec = &security.PeerAuthentication{Mtls: &security.PeerAuthentication_MutualTLS{Mode: strict}}
		if out.general = istio.SelectionUnread(out.unread); out.general {
			out.selector = nil
		}
	}
	return out
}

func comparePeerAuthentications(a, b *peerAuthentication) int {
	return compareConfigs(a.config, b.config)
}

// selective reports whether it is for some workloads only.
func (a *peerAuthentication) selective() bool { return len(a.selector) > 0 }

// The modes, in short.
const (
	unset      = security.PeerAuthentication_MutualTLS_UNSET
	disable    = security.PeerAuthentication_MutualTLS_DISABLE
	permissive = security.PeerAuthentication_MutualTLS_PERMISSIVE
	strict     = security.PeerAuthentication_MutualTLS_STRICT
)

type tlsMode = security.PeerAuthentication_MutualTLS_Mode

// modeOf returns the mode that a policy says, else another one. One that is not known is of a newer
// API: it is taken for the strictest.
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

// peerMode is a mode, and what says it.
type peerMode struct {
	mode tlsMode
	of   *peerAuthentication // nil: nothing does, and it is PERMISSIVE
	// port: it is said of the port.
	port bool
}

// say makes the mode the one that a policy says, if it does.
func (m *peerMode) say(a *peerAuthentication, said *security.PeerAuthentication_MutualTLS, port bool) {
	if mode := modeOf(said, unset); mode != unset {
		*m = peerMode{mode, a, port}
	}
}

// namespaceMode returns the mode of the workloads of a namespace that no policy selects: that of
// the oldest policy of the namespace, else of the oldest of the root namespace.
func (x *index) namespaceMode(namespace string) peerMode {
	m := peerMode{mode: permissive}
	root := x.settings.rootNamespace()
	for _, ns := range []string{root, namespace} {
		for _, a := range x.peers.in(ns) {
			if !a.selective() {
				m.say(a, a.spec.GetMtls(), false)
				break // the oldest of a level counts, also one that says nothing (S21)
			}
		}
		if namespace == root {
			break
		}
	}
	return m
}

// peerPolicyOf returns the policy that selects workloads of a namespace with some labels; nil: none. Those of the
// root namespace select none (S20).
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

// peerMode returns the mode of a port of a workload, which is never UNSET.
func (x *index) peerMode(namespace string, labels registry.Labels, port uint32) peerMode {
	m := x.namespaceMode(namespace)
	if a := x.peerPolicyOf(namespace, labels); a != nil {
		m.say(a, a.spec.GetMtls(), false)
		m.say(a, a.spec.GetPortLevelMtls()[port], true)
	}
	return m
}

// modes yields the modes that workloads of a namespace can have.
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
